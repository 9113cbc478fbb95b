//! Messages that show one person everything: sent one after the other, tried again for a while, and told in words when they cannot be sent.

use gatepost_channel::{Failure, Listener, MessageRef, ReplyTone};

use super::super::claim::Claimed;
use super::super::fixture::{carry_out, claim, fresh, record, settle_down};
use super::*;
use crate::confirmation::fixture::{World, terms};

/// A request whose cards stand, and the first of its messages to Noor, claimed.
fn asked(otherwise: &str) -> (World, ConfirmationId, Claimed) {
    let mut world = World::default();
    let id = fresh(&mut world, terms(1));
    settle_down(&mut world);
    let card = world.row(&id).deliveries[0].clone();
    world.memory.run(&QueueView {
        id: OutboxId::fresh(&world.ids),
        confirmation: id.clone(),
        channel: card.channel,
        delivery: card.id,
        user: "ou_noor".to_owned(),
        revision: 1,
        otherwise: otherwise.to_owned(),
    });
    let claimed = claim(&mut world).remove(0);
    (world, id, claimed)
}

fn failures(world: &World) -> usize {
    world
        .memory
        .kinds()
        .into_iter()
        .filter(|kind| *kind == "view.failed")
        .count()
}

fn refused() -> Sent {
    Sent::PostFailed(Failure::Target {
        why: "230013".to_owned(),
    })
}

#[test]
fn whoever_cannot_be_sent_it_is_told_in_words_below_the_card() {
    let (mut world, id, claimed) = asked("It is in the console.");
    record(&mut world, &claimed, refused());
    let told = claim(&mut world);
    let [told] = told.as_slice() else {
        panic!("{told:?}")
    };
    let stands = world.row(&id).deliveries[0].standing[0].at.clone();
    assert_eq!(
        told.item.errand,
        Errand::Whisper {
            to: Listener {
                user: "ou_noor".to_owned(),
                chat: stands.chat,
                message: Some(stands.message),
            },
            tone: ReplyTone::Warning,
            text: "It is in the console.".to_owned(),
            shows: None,
        }
    );
    carry_out(&mut world, told);
    assert!(claim(&mut world).is_empty(), "told once");
    assert_eq!(failures(&world), 1);
}

#[test]
fn what_may_succeed_later_is_tried_again_and_then_told() {
    let (mut world, _, mut claimed) = asked("It is in the console.");
    for attempt in 1..PATIENCE {
        let busy = Failure::Retry {
            after: None,
            why: "429".to_owned(),
        };
        record(&mut world, &claimed, Sent::PostFailed(busy));
        assert_eq!(failures(&world), 0);
        world.memory.now = world.memory.now.plus(APART);
        claimed = claim(&mut world).remove(0);
        assert!(
            matches!(claimed.item.errand, Errand::View { page: 0, .. }),
            "{attempt}: {claimed:?}"
        );
    }
    record(&mut world, &claimed, Sent::PostUnknown("silence".to_owned()));
    assert!(matches!(
        claim(&mut world).remove(0).item.errand,
        Errand::Whisper { .. }
    ));
}

#[test]
fn the_words_go_from_message_to_message_and_rows_of_before_hold_none() {
    let (mut world, _, claimed) = asked("It is in the console.");
    record(&mut world, &claimed, Sent::Page { last: None });
    world.memory.now = world.memory.now.plus(APART);
    let second = claim(&mut world).remove(0);
    assert!(
        matches!(&second.item.errand, Errand::View { page: 1, otherwise, .. } if otherwise == "It is in the console."),
        "{second:?}"
    );
    record(&mut world, &second, refused());
    assert_eq!(claim(&mut world).len(), 1);

    let mut stored = serde_json::to_value(&claimed.item.errand).unwrap();
    stored.as_object_mut().unwrap().remove("otherwise");
    let read: Errand = serde_json::from_value(stored).unwrap();
    assert!(matches!(read, Errand::View { otherwise, .. } if otherwise.is_empty()));
    let (mut world, _, claimed) = asked("");
    record(&mut world, &claimed, refused());
    assert!(claim(&mut world).is_empty(), "nothing is said without words");
    assert_eq!(failures(&world), 1);
}

#[test]
fn the_last_message_is_a_standing_of_the_card() {
    let (mut world, id, claimed) = asked("It is in the console.");
    let at = MessageRef {
        chat: "p2p".to_owned(),
        message: "om_last".to_owned(),
    };
    let last = Some((at.clone(), 1));
    record(&mut world, &claimed, Sent::Page { last });
    let standing = world.row(&id).deliveries[0].standing.clone();
    assert!(
        standing
            .iter()
            .any(|message| message.at == at && message.reader.is_some())
    );
}

fn last_at(name: &str) -> MessageRef {
    MessageRef {
        chat: "p2p".to_owned(),
        message: name.to_owned(),
    }
}

/// Whoever asks again and again has no more than a few messages that can be answered: of the oldest the answers are taken away before
/// it is forgotten.
#[test]
fn the_oldest_of_many_messages_loses_its_answers_before_it_is_let_go() {
    let (mut world, id, mut claimed) = asked("");
    let card = |world: &World| world.row(&id).deliveries[0].clone();
    let edition = world.row(&id).confirmation.edition;
    for number in 0..=MOST_VIEWS {
        if number > 0 {
            world.memory.run(&QueueView {
                id: OutboxId::fresh(&world.ids),
                confirmation: id.clone(),
                channel: card(&world).channel,
                delivery: card(&world).id,
                user: "ou_noor".to_owned(),
                revision: 1,
                otherwise: String::new(),
            });
            claimed = claim(&mut world).remove(0);
        }
        let last = Some((last_at(&format!("om_{number}")), edition));
        record(&mut world, &claimed, Sent::Page { last });
    }
    let place = |world: &World, name: &str| {
        let places = card(world).standing.into_iter();
        places.into_iter().find(|place| place.at == last_at(name))
    };
    let oldest = place(&world, "om_0").expect("it still stands");
    assert!(
        oldest.is_leaving() && oldest.edition == 0,
        "it is shown anew, as not seen"
    );
    let due = claim(&mut world);
    assert!(
        due.iter()
            .any(|one| matches!(one.item.errand, Errand::Card { .. })),
        "{due:?}"
    );
    for one in &due {
        carry_out(&mut world, one);
    }
    assert_eq!(place(&world, "om_0"), None, "forgotten once it shows no answer");
    for number in 1..=MOST_VIEWS {
        let place = place(&world, &format!("om_{number}")).expect("it can be answered");
        assert!(!place.is_leaving());
    }
}

/// Where no message can be edited the list does not grow without end.
#[test]
fn what_waits_to_lose_its_answers_is_bounded() {
    let (mut world, id, claimed) = asked("");
    for number in 0..50 {
        let last = Some((last_at(&format!("om_{number}")), 1));
        world
            .memory
            .outbox
            .insert(claimed.item.id.clone(), claimed.item.clone());
        record(&mut world, &claimed, Sent::Page { last });
    }
    let standing = &world.row(&id).deliveries[0].standing;
    assert_eq!(standing.len(), 1 + MOST_VIEWS + MOST_LEAVING);
}

/// A message that the platform will not have edited for good is let go of: it is not tried without end while people are asked.
#[test]
fn what_one_person_was_shown_and_cannot_be_edited_is_let_go() {
    let (mut world, id, claimed) = asked("");
    let at = last_at("om_last");
    let last = Some((at.clone(), 0));
    record(&mut world, &claimed, Sent::Page { last });
    let due = claim(&mut world);
    let host = world.row(&id).deliveries[0].id.clone();
    let edit = due
        .iter()
        .find(|one| matches!(&one.item.errand, Errand::Card { delivery, .. } if *delivery == host));
    let failed = vec![(
        at.clone(),
        Failure::Content {
            why: "230028".to_owned(),
        },
    )];
    let sent = Sent::Edited {
        edition: world.row(&id).confirmation.edition,
        done: vec![],
        failed,
    };
    record(&mut world, edit.expect("it is behind"), sent);
    let card = &world.row(&id).deliveries[0];
    assert!(card.standing.iter().all(|place| place.at != at));
    assert!(card.stands(), "the card of the group is none the worse");
    for one in &due {
        carry_out(&mut world, one);
    }
    assert!(claim(&mut world).is_empty(), "nothing is left to try");
}

/// Each message is claimed once; whatever is claimed more often may stand already.
#[test]
fn a_message_that_is_tried_again_may_stand() {
    let (mut world, _, claimed) = asked("");
    assert!(!may_stand(&claimed.item, 0));
    record(&mut world, &claimed, Sent::Page { last: None });
    world.memory.now = world.memory.now.plus(APART);
    let second = claim(&mut world).remove(0);
    assert!(!may_stand(&second.item, 1));
    record(&mut world, &second, Sent::PostUnknown("silence".to_owned()));
    world.memory.now = world.memory.now.plus(APART);
    let again = claim(&mut world).remove(0);
    assert!(may_stand(&again.item, 1), "its answer was lost");
    // The sender died.
    world.memory.now.0 += 45_000;
    let taken_over = claim(&mut world).remove(0);
    assert!(may_stand(&taken_over.item, 1));
}

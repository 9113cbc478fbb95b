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

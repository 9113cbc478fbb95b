//! Persons, not accounts: what platforms said of people, inside the deciding and the consuming transaction.

use std::sync::Arc;

use gatepost_channel::Bar;
use gatepost_channel::Decision::{self, Approve, Reject};

use super::consume::{Consume, NotGranted};
use super::decide::{Ballot, Decide, Refusal, Ruling};
use super::fixture::{ORG, World, terms};
use super::roll::{Found, Roll, Standing, Voter};
use super::{Account, Status};
use crate::ids::{ConfirmationId, OperatorId, Org, PermitId, TokenName};

fn found(id: &str, roles: &[&str]) -> Found {
    Found {
        voter: Voter {
            id: OperatorId::from(id),
            name: id.to_owned(),
            orgs: vec![Org::from(ORG)],
            roles: roles.iter().copied().map(str::to_owned).collect(),
        },
        also: vec![],
        standing: Standing::Good,
        perhaps: vec![],
    }
}

fn press(world: &mut World, id: &ConfirmationId, person: &str, decision: Decision, roll: &Roll) -> Decide {
    let press = world.press(id, 0, Ballot::Person(OperatorId::from(person)), decision);
    Decide {
        roll: Arc::new(roll.clone()),
        ..press
    }
}

fn votes(world: &mut World, id: &ConfirmationId, person: &str, decision: Decision, roll: &Roll) -> Ruling {
    let press = press(world, id, person, decision, roll);
    world.memory.run(&press).ruling
}

fn consume(world: &World, id: &ConfirmationId, roll: &Roll) -> Consume {
    Consume {
        id: id.clone(),
        token: TokenName::from("agent"),
        digest: world.row(id).confirmation.asked.digest,
        judged: world.row(id).confirmation.call().digest,
        permit: PermitId::fresh(&world.ids),
        roll: Arc::new(roll.clone()),
        denied_by: None,
        grant: None,
        offered: None,
    }
}

/// E53: whoever is in the group decides, and only while they are.
#[test]
fn a_member_of_a_group_decides_and_nobody_else_does() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    let base = (*world.roll).clone();
    let stranger = votes(&mut world, &id, "noor@example.com", Approve, &base);
    assert_eq!(stranger, Ruling::Refused(Refusal::NotAuthorised));
    let member = base.with([found("noor@example.com", &["finance"])]);
    assert_eq!(
        votes(&mut world, &id, "noor@example.com", Approve, &member),
        Ruling::Settled
    );
    // At consume the group is asked again; who left it no longer backs the call.
    assert_eq!(
        world.memory.run(&consume(&world, &id, &base)),
        Err(NotGranted::NotAuthorised)
    );
    assert!(world.memory.run(&consume(&world, &id, &member)).is_ok());
}

/// RH-305: several accounts of one person count once, whichever of them is seen first.
#[test]
fn several_identities_of_one_person_count_once() {
    let mut world = World::default();
    let id = world.asked(terms(2), &[]);
    let base = (*world.roll).clone();
    let unseen = base.with([found("chat:U1", &["finance"])]);
    assert_eq!(
        votes(&mut world, &id, "chat:U1", Approve, &unseen),
        Ruling::Counted
    );
    let mut seen = found("noor@example.com", &["finance"]);
    seen.also = vec![OperatorId::from("chat:U1")];
    let seen = base.with([seen]);
    let again = votes(&mut world, &id, "noor@example.com", Approve, &seen);
    assert_eq!(
        again,
        Ruling::Refused(Refusal::AlreadyVoted),
        "first by account, then by address"
    );
    // An entry in the configuration that is written later is the same person too.
    let entered = base
        .clone()
        .knowing([(OperatorId::from("chat:U1"), OperatorId::from("tomas"))]);
    let again = votes(&mut world, &id, "tomas", Approve, &entered);
    assert_eq!(again, Ruling::Refused(Refusal::AlreadyVoted));
    assert_eq!(votes(&mut world, &id, "mira", Approve, &unseen), Ruling::Settled);
    // Two votes that turn out to be one person's do not fill the quorum at consume.
    let one = base.with([{
        let mut one = found("mira", &[]);
        one.also = vec![OperatorId::from("chat:U1")];
        one
    }]);
    assert_eq!(
        world.memory.run(&consume(&world, &id, &one)),
        Err(NotGranted::NotAuthorised)
    );
}

/// E51: self-approval is noticed whatever the requester was called by.
#[test]
fn nobody_approves_under_another_name_what_they_asked_for() {
    let asked_by = |world: &mut World, requester: &str| {
        let id = world.asked(terms(1), &[]);
        let row = world.memory.dossiers.get_mut(&id).expect("stored");
        row.confirmation.asked.requester = Some(requester.to_owned());
        id
    };
    let mut world = World::default();
    let roll = world.roll.with([found("noor@example.com", &["finance"])]);
    for requester in ["noor@example.com", " NOOR@example.COM ", "U1", "chat:U1"] {
        let id = asked_by(&mut world, requester);
        let mut press = press(&mut world, &id, "noor@example.com", Approve, &roll);
        press.insight.handles = vec!["noor@example.com".into(), "U1".into(), "chat:U1".into()];
        assert_eq!(
            world.memory.run(&press).ruling,
            Ruling::Refused(Refusal::SelfApproval),
            "{requester}"
        );
    }
    // Found by another platform, just before the decision.
    let id = asked_by(&mut world, "W9");
    let mut other = press(&mut world, &id, "noor@example.com", Approve, &roll);
    other.insight.behind = vec![OperatorId::from("noor@example.com")];
    assert_eq!(
        world.memory.run(&other).ruling,
        Ruling::Refused(Refusal::SelfApproval)
    );
    // Who the requester is could not be asked: an approval waits, a rejection does not.
    let mut unsure = press(&mut world, &id, "noor@example.com", Approve, &roll);
    unsure.insight.requester_unsure = true;
    assert_eq!(
        world.memory.run(&unsure).ruling,
        Ruling::Refused(Refusal::LookUpFailed)
    );
    let mut no = press(&mut world, &id, "noor@example.com", Reject, &roll);
    no.insight.requester_unsure = true;
    assert_eq!(world.memory.run(&no).ruling, Ruling::Settled);
}

/// E54: an account that may not decide casts no vote, and each reason is on record under its own word.
#[test]
fn a_barred_account_casts_no_vote() {
    for bar in Bar::ALL {
        let mut world = World::default();
        let id = world.asked(terms(1), &[]);
        let kept = Ballot::Kept("U1".into(), Refusal::Barred(bar));
        let press = world.press(&id, 0, kept, Approve);
        assert_eq!(
            world.memory.run(&press).ruling,
            Ruling::Refused(Refusal::Barred(bar))
        );
        assert_eq!(world.last_refusal().as_deref(), Some(bar.as_str()));
        assert!(world.row(&id).votes.is_empty());
        // It is an answer: the same press gets it again.
        assert_eq!(
            world.memory.run(&press).ruling,
            Ruling::Replayed(bar.as_str().to_owned())
        );
    }
}

/// A look-up that fails is no answer: the very same press counts once the platform answers.
#[test]
fn a_failed_look_up_is_not_remembered() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    let press = world.press(&id, 0, Ballot::Kept("U1".into(), Refusal::LookUpFailed), Approve);
    for _ in 0..2 {
        assert_eq!(
            world.memory.run(&press).ruling,
            Ruling::Refused(Refusal::LookUpFailed)
        );
    }
    assert!(world.row(&id).votes.is_empty());
    let healed = Decide {
        ballot: Ballot::Person(OperatorId::from("dana")),
        ..press
    };
    assert_eq!(world.memory.run(&healed).ruling, Ruling::Settled);
}

/// A role that hangs on a look-up that failed is neither held nor denied.
#[test]
fn a_role_that_could_not_be_asked_about_is_tried_again() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    let mut perhaps = found("ines", &[]);
    perhaps.perhaps = vec!["finance".into()];
    let roll = world.roll.with([perhaps]);
    let ruling = votes(&mut world, &id, "ines", Approve, &roll);
    assert_eq!(ruling, Ruling::Refused(Refusal::LookUpFailed));
    let mut other = found("ines", &[]);
    other.perhaps = vec!["platform".into()];
    let roll = world.roll.with([other]);
    let ruling = votes(&mut world, &id, "ines", Approve, &roll);
    assert_eq!(
        ruling,
        Ruling::Refused(Refusal::NotAuthorised),
        "no look-up would have helped"
    );
}

/// Where an earlier voter cannot be looked up, no vote is wasted: the one that might settle is asked for again.
#[test]
fn an_earlier_voter_who_cannot_be_looked_up_holds_the_settling_vote_back() {
    let mut world = World::default();
    let id = world.asked(terms(2), &[]);
    let member = world.roll.with([found("noor@example.com", &["finance"])]);
    assert_eq!(
        votes(&mut world, &id, "noor@example.com", Approve, &member),
        Ruling::Counted
    );
    let mut unsure = found("noor@example.com", &[]);
    unsure.standing = Standing::Unsure;
    unsure.perhaps = vec!["finance".into()];
    let unsure = world.roll.with([unsure]);
    let ruling = votes(&mut world, &id, "dana", Approve, &unsure);
    assert_eq!(ruling, Ruling::Refused(Refusal::LookUpFailed));
    assert_eq!(world.row(&id).votes.len(), 1);
    assert_eq!(votes(&mut world, &id, "dana", Approve, &member), Ruling::Settled);

    // At consume the same: refused, and the permit stays usable.
    assert_eq!(
        world.memory.run(&consume(&world, &id, &unsure)),
        Err(NotGranted::LookUpFailed)
    );
    assert_eq!(world.row(&id).confirmation.state.status(), Status::Approved);
    let mut barred = found("noor@example.com", &["finance"]);
    barred.standing = Standing::Barred;
    let barred = world.roll.with([barred]);
    assert_eq!(
        world.memory.run(&consume(&world, &id, &barred)),
        Err(NotGranted::NotAuthorised)
    );
    assert!(world.memory.run(&consume(&world, &id, &member)).is_ok());
}

#[test]
fn a_vote_remembers_the_account_through_which_it_came() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    let account = Account {
        channel: "chat-a".into(),
        id: "U1".into(),
        name: Some("Dana".into()),
    };
    let mut press = world.press(&id, 0, Ballot::Person(OperatorId::from("dana")), Approve);
    press.insight.account = Some(account.clone());
    assert_eq!(world.memory.run(&press).ruling, Ruling::Settled);
    assert_eq!(world.row(&id).votes[0].content.account, Some(account));
}

/// E48: an empty set stands for nobody, with groups as without.
#[test]
fn a_group_that_holds_nobody_lets_nobody_decide() {
    let mut world = World::default();
    let id = world.asked(terms(1), &[]);
    let nobody = Roll::default().with([found("noor@example.com", &[])]);
    let ruling = votes(&mut world, &id, "noor@example.com", Approve, &nobody);
    assert_eq!(ruling, Ruling::Refused(Refusal::NotAuthorised));
}

/// What stands on a card names nobody by their whole address: whole groups read it.
#[test]
fn whoever_is_not_in_the_configuration_is_shown_without_their_address() {
    let roll = World::default().roll;
    let account = |name: Option<&str>| Account {
        channel: "chat-a".into(),
        id: "U9".into(),
        name: name.map(str::to_owned),
    };
    let noor = OperatorId::from("noor@example.com");
    assert_eq!(roll.name(&noor), "noor");
    assert_eq!(roll.name(&"chat:U9".into()), "chat:U9");
    assert_eq!(roll.name_of(&noor, None), "noor");
    assert_eq!(roll.name_of(&noor, Some(&account(None))), "U9");
    assert_eq!(
        roll.name_of(&noor, Some(&account(Some("Dana Kim")))),
        "Dana Kim (U9)",
        "a name that its owner chose proves nothing"
    );
    let dana = OperatorId::from("dana");
    assert_eq!(
        roll.name_of(&dana, Some(&account(Some("Boss")))),
        roll.name(&dana)
    );
}

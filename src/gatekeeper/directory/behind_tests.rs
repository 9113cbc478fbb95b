//! Who stands behind a call, over several platforms: by what other ids they may answer it, and what is done where nobody can tell.

use std::time::Duration;

use gatepost_channel::{AppKey, Bar, Failure, Unfound};

use super::again::Behind;
use super::fixture::{Entry, Fake, ORG, World, world};
use super::requester::{For, Stated};
use super::{AT_A_CLICK, Who};
use crate::confirmation::insight::Doubt;
use crate::confirmation::roll::Roll;
use crate::ids::{OperatorId, Org};

const DANA: Entry = ("dana", None, &[("chat", "U1")]);
const MIRA: Entry = ("mira", Some("mira@x.example"), &[]);

fn failed() -> Unfound {
    Unfound::Failed(Failure::Retry {
        after: None,
        why: "http_503".into(),
    })
}

fn may_not() -> Unfound {
    Unfound::MayNotAsk {
        why: "missing_scope".into(),
    }
}

fn hidden() -> Unfound {
    Unfound::Hidden {
        why: "user_not_visible".into(),
    }
}

fn app(kind: &'static str) -> AppKey {
    AppKey {
        kind: kind.into(),
        id: "app".into(),
    }
}

impl World {
    async fn behind(&self, person: &str) -> Behind {
        let persons = [&OperatorId::from(person)];
        let org = Org::from(ORG);
        self.directories.behind(&org, &persons, AT_A_CLICK).await
    }

    async fn stated(&self, name: &str) -> Stated {
        let org = Org::from(ORG);
        self.directories
            .requester(&org, name, For::Person, AT_A_CLICK)
            .await
    }

    async fn ours(&self, id: &str) -> Who {
        let home = self.registry.get("chat").unwrap();
        let ids = [id.to_owned()];
        let vouched = self.people.clicker(&home.org, "chat", "chat", &ids);
        self.directories.look(home, &ids, vouched, AT_A_CLICK).await
    }
}

fn ids(stated: &Stated) -> Vec<&str> {
    stated.persons.iter().map(OperatorId::as_str).collect()
}

/// Dana has an entry with an account of the one platform; the account of the other has the same address, and is in a group.
#[tokio::test]
async fn the_other_account_of_whoever_asks_is_theirs() {
    let (chat, talk) = (Fake::new("chat"), Fake::new("talk"));
    let world = world(&[&chat, &talk], &[DANA], &[("talk", "g1", "finance")]);
    chat.knows("U1", Some("dana@x.example"));
    let behind = world.behind("dana").await;
    assert_eq!(behind.doubt, None);
    let roll = Roll::default().with(behind.found);
    assert!(roll.is_same(&"dana".into(), &"dana@x.example".into()));
}

/// What would tell is not shown, or could not be asked: people without an entry are not told from those behind the call.
#[tokio::test]
async fn where_nobody_can_tell_there_is_doubt() {
    for (expected, instead) in [
        (Some(Doubt::NotToldApart), None),
        (Some(Doubt::NotToldApart), Some(may_not())),
        (Some(Doubt::NotToldApart), Some(hidden())),
        (Some(Doubt::NotToldApart), Some(Unfound::NoSuch)),
        (Some(Doubt::LookUpFailed), Some(failed())),
    ] {
        let (chat, talk) = (Fake::new("chat"), Fake::new("talk"));
        let world = world(&[&chat, &talk], &[DANA, MIRA], &[("talk", "g1", "finance")]);
        chat.knows("U1", None);
        talk.knows("ou_2", Some("mira@x.example"));
        chat.said.lock().unwrap().instead[0] = instead.clone();
        assert_eq!(world.behind("dana").await.doubt, expected, "{instead:?}");
        let told = world.behind("mira").await.doubt;
        let failed = matches!(instead, Some(Unfound::Failed(_)));
        assert!(told.is_none() || failed, "her address tells: {told:?}");
        assert_eq!(world.behind("the nightly job").await.doubt, None);
    }
}

/// With one platform an account is told apart by its id; and where people are in the configuration alone, nothing is asked.
#[tokio::test]
async fn one_platform_and_identities_alone_leave_no_doubt() {
    let chat = Fake::new("chat");
    let one = world(&[&chat], &[DANA], &[("chat", "S1", "finance")]);
    chat.knows("U1", None);
    assert_eq!(one.behind("dana").await.doubt, None);
    let (chat, talk) = (Fake::new("chat"), Fake::new("talk"));
    let plain = world(&[&chat, &talk], &[DANA], &[]);
    assert_eq!(plain.behind("dana").await, Behind::default());
    assert_eq!((chat.asked(), talk.asked()), (0, 0));
}

/// A requester named by an account that shows no address is found by the addresses of operators, as somebody who clicks is.
#[tokio::test]
async fn a_requester_whose_account_shows_no_address_is_known_by_theirs() {
    let (chat, talk) = (Fake::new("chat"), Fake::new("talk"));
    let world = world(&[&chat, &talk], &[MIRA], &[]);
    chat.knows("U2", Some("mira@x.example"));
    assert_eq!(ids(&world.stated("mira@x.example").await).len(), 3);
    chat.knows("U2", None);
    world.clock.advance(Duration::from_mins(5));
    let stated = world.stated("U2").await;
    assert_eq!(ids(&stated), ["chat:U2", "mira"]);
    assert!(!stated.unsure && !stated.may_be(&app("talk"), true));
    // Of somebody else's account nobody can tell whose it is on the other platform; on its own it is told apart by its id.
    chat.knows("U3", None);
    let stated = world.stated("U3").await;
    assert_eq!(ids(&stated), ["chat:U3"]);
    assert!(stated.may_be(&app("talk"), true) && !stated.may_be(&app("chat"), true));
    world.clock.advance(Duration::from_hours(1));
    chat.said.lock().unwrap().instead[1] = Some(failed());
    assert!(
        world.stated("U3").await.unsure,
        "the addresses could not be asked about"
    );
}

/// A requester who could not be asked about is not nobody.
#[tokio::test]
async fn a_requester_who_may_not_be_asked_about_may_be_anybody_without_an_entry() {
    for why in [may_not(), hidden()] {
        let chat = Fake::new("chat");
        let world = world(&[&chat], &[DANA], &[("chat", "S1", "finance")]);
        chat.said.lock().unwrap().instead = [Some(why.clone()), Some(why.clone()), None];
        let stated = world.stated("bo@x.example").await;
        assert!(stated.may_be(&app("chat"), false), "{why}");
        assert!(
            !stated.may_be(&app("chat"), true),
            "by an address of their own: {why}"
        );
        let stated = world.stated("U9").await;
        assert!(stated.may_be(&app("talk"), true) && !stated.may_be(&app("chat"), false));
        assert_eq!(world.stated("the nightly job").await, Stated::default());
    }
    let chat = Fake::new("chat");
    let world = world(&[&chat], &[DANA], &[("chat", "S1", "finance")]);
    assert_eq!(
        world.stated("nobody@x.example").await,
        Stated::default(),
        "the platform said so"
    );
}

/// What a platform refuses to say of a name that an agent chose is believed of nobody else.
#[tokio::test]
async fn an_agents_requester_closes_no_kind_of_question() {
    for why in [may_not(), hidden()] {
        let chat = Fake::new("chat");
        let world = world(&[&chat], &[DANA], &[("chat", "S1", "finance")]);
        chat.knows("U1", None);
        chat.change("U1", |profile| profile.bar = Some(Bar::Deactivated));
        chat.said.lock().unwrap().refused.insert("U0000".into(), why);
        let org = Org::from(ORG);
        for sake in [For::Agent, For::Person] {
            let asked = world.directories.requester(&org, "U0000", sake, AT_A_CLICK);
            assert!(asked.await.may_be(&app("talk"), true));
        }
        assert!(
            matches!(world.ours("U1").await, Who::Kept(_)),
            "she is asked about"
        );
        let home = world.registry.get("chat").unwrap();
        assert_eq!(world.directories.missing(home), None);
    }
}

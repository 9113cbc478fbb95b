use std::time::Duration;

use gatepost_channel::{Bar, Failure, Unfound};

use super::again::Cast;
use super::fixture::{Entry, Fake, ORG, World, world};
use super::requester::For;
use super::{AT_A_CLICK, Who};
use crate::confirmation::Account;

use crate::confirmation::roll::{Roll, Standing};
use crate::delivery::mention::Acquaintance as _;
use crate::ids::{OperatorId, Org};

const DANA: Entry = ("dana", Some("dana@example.com"), &[("chat", "U1")]);
const MIRA: Entry = ("mira", Some("mira@example.com"), &[]);

fn failed() -> Unfound {
    Unfound::Failed(Failure::Retry {
        after: None,
        why: "http_503".into(),
    })
}

fn may_not() -> Unfound {
    Unfound::MayNotAsk {
        why: "missing_scope (users:read)".into(),
    }
}

impl World {
    async fn clicks(&self, channel: &str, id: &str) -> Who {
        let home = self.registry.get(channel).unwrap();
        let ids = [id.to_owned()];
        let vouched = self.people.clicker(&home.org, channel, home.channel.kind(), &ids);
        self.directories.look(home, &ids, vouched, AT_A_CLICK).await
    }

    /// Who it is, in a word.
    async fn says(&self, channel: &str, id: &str) -> String {
        match self.clicks(channel, id).await {
            Who::Person(known) => known.id.0,
            Who::Kept(refusal) => refusal.as_str().to_owned(),
            Who::Nobody => "nobody".to_owned(),
        }
    }

    async fn roles(&self, channel: &str, id: &str) -> Vec<String> {
        match self.clicks(channel, id).await {
            Who::Person(known) => known.found.map(|found| found.voter.roles).unwrap_or_default(),
            other => panic!("{other:?}"),
        }
    }
}

/// E54: each kind of account that may not decide, whatever the configuration says of it.
#[tokio::test]
async fn an_account_that_may_not_decide_is_kept_out() {
    for bar in Bar::ALL {
        let chat = Fake::new("chat");
        let world = world(&[&chat], &[DANA], &[]);
        chat.knows("U1", None);
        assert_eq!(world.says("chat", "U1").await, "dana");
        chat.change("U1", |profile| profile.bar = Some(bar));
        assert_eq!(
            world.says("chat", "U1").await,
            "dana",
            "within the time that answers are believed"
        );
        world.clock.advance(Duration::from_mins(5));
        assert_eq!(world.says("chat", "U1").await, bar.as_str());
    }
}

/// Three failures, three meanings, for an identity of the configuration and for people who are only found.
#[tokio::test]
async fn a_failure_a_missing_right_and_nobody_are_three_things() {
    for (instead, vouched, found) in [
        (failed(), "look_up_failed", "look_up_failed"),
        (may_not(), "dana", "nobody"),
        (
            Unfound::Hidden {
                why: "code 41050".into(),
            },
            "dana",
            "nobody",
        ),
        (Unfound::NoSuch, "account_unknown", "nobody"),
    ] {
        let chat = Fake::new("chat");
        let world = world(&[&chat], &[DANA, MIRA], &[("chat", "S1", "finance")]);
        chat.group("S1", &["U2"]);
        chat.knows("U2", Some("mira@example.com"));
        chat.said.lock().unwrap().instead[0] = Some(instead.clone());
        assert_eq!(world.says("chat", "U1").await, vouched, "{instead}");
        assert_eq!(world.says("chat", "U2").await, found, "{instead}");
    }
}

/// A missing right is one question and one warning, not one for each click.
#[tokio::test]
async fn what_the_app_may_not_ask_is_not_asked_again_and_again() {
    let chat = Fake::new("chat");
    let world = world(&[&chat], &[DANA, ("noor", None, &[("chat", "U3")])], &[]);
    chat.said.lock().unwrap().instead[0] = Some(may_not());
    for id in ["U1", "U3", "U1", "U3"] {
        assert_ne!(world.says("chat", id).await, "nobody");
    }
    assert_eq!(chat.asked(), 1);
    let listed = world.registry.get("chat").unwrap();
    assert_eq!(
        world.directories.missing(listed).as_deref(),
        Some("cannot look up accounts (missing_scope (users:read))")
    );
    chat.said.lock().unwrap().instead[0] = None;
    chat.knows("U1", None);
    chat.change("U1", |profile| profile.bar = Some(Bar::Guest));
    world.clock.advance(Duration::from_mins(5));
    assert_eq!(
        world.says("chat", "U1").await,
        "account_guest",
        "the scope was granted meanwhile"
    );
    assert_eq!(world.directories.missing(listed), None);
}

#[tokio::test]
async fn a_failure_is_not_remembered_and_not_hammered() {
    let chat = Fake::new("chat");
    let world = world(&[&chat], &[DANA], &[]);
    chat.knows("U1", None);
    chat.said.lock().unwrap().instead[0] = Some(failed());
    for _ in 0..5 {
        assert_eq!(world.says("chat", "U1").await, "look_up_failed");
    }
    assert_eq!(chat.asked(), 1);
    chat.said.lock().unwrap().instead[0] = None;
    world.clock.advance(Duration::from_secs(1));
    assert_eq!(world.says("chat", "U1").await, "dana");

    // What the platform asks for holds for everybody.
    chat.said.lock().unwrap().instead[0] = Some(Unfound::Failed(Failure::Retry {
        after: Some(Duration::from_secs(20)),
        why: "ratelimited".into(),
    }));
    world.clock.advance(Duration::from_mins(5));
    let before = chat.asked();
    assert_eq!(world.says("chat", "U1").await, "look_up_failed");
    world.clock.advance(Duration::from_secs(19));
    assert_eq!(world.says("chat", "U1").await, "look_up_failed");
    assert_eq!(chat.asked(), before + 1);
}

#[tokio::test]
async fn an_operator_is_found_by_their_address() {
    let chat = Fake::new("chat");
    let world = world(&[&chat], &[DANA, MIRA], &[]);
    chat.knows("U2", Some("mira@example.com"));
    chat.knows("U8", Some("somebody@example.com"));
    chat.knows("U9", Some("dana@example.com"));
    assert_eq!(world.says("chat", "U2").await, "mira");
    assert_eq!(world.says("chat", "U8").await, "nobody");
    // An address can be changed; it does not lead to an operator whose account the configuration names.
    assert_eq!(world.says("chat", "U9").await, "nobody");
}

/// Where accounts do not show their address, the address still leads to the account.
#[tokio::test]
async fn an_address_that_is_not_shown_is_asked_about() {
    let chat = Fake::new("chat");
    let world = world(&[&chat], &[MIRA], &[]);
    chat.knows("U2", Some("mira@example.com"));
    assert_eq!(
        world
            .directories
            .requester(&Org::from(ORG), "mira@example.com", For::Person, AT_A_CLICK)
            .await
            .persons
            .len(),
        3
    );
    // From now on the account shows nothing; what the address leads to is still believed.
    chat.knows("U2", None);
    world.clock.advance(Duration::from_mins(5));
    assert_eq!(world.says("chat", "U2").await, "mira");
    chat.knows("U3", None);
    assert_eq!(world.says("chat", "U3").await, "nobody");
    world.clock.advance(Duration::from_hours(1));
    chat.said.lock().unwrap().instead[1] = Some(failed());
    assert_eq!(world.says("chat", "U2").await, "look_up_failed");
}

/// E46, E53: who is in the group holds its roles, and only while they are in it.
#[tokio::test]
async fn members_of_a_group_hold_its_roles() {
    let chat = Fake::new("chat");
    let world = world(
        &[&chat],
        &[DANA],
        &[("chat", "S1", "finance"), ("chat", "S2", "platform")],
    );
    for id in ["U1", "U5", "U6", "U7"] {
        chat.knows(id, Some(&format!("{}@example.com", id.to_lowercase())));
    }
    chat.group("S1", &["U5", "U1"]);
    chat.group("S2", &["U5"]);
    assert_eq!(world.says("chat", "U5").await, "u5@example.com");
    assert_eq!(world.roles("chat", "U5").await, ["finance", "platform"]);
    assert_eq!(
        world.says("chat", "U1").await,
        "dana",
        "a configured operator keeps their id"
    );
    assert_eq!(world.roles("chat", "U1").await, ["finance"]);
    assert_eq!(world.says("chat", "U6").await, "nobody");
    // Members by department are in it too.
    chat.said
        .lock()
        .unwrap()
        .departments
        .insert("U7".into(), "S1".into());
    assert_eq!(world.roles("chat", "U7").await, ["finance"]);

    chat.group("S1", &["U6"]);
    chat.group("S2", &[]);
    assert_eq!(
        world.says("chat", "U5").await,
        "u5@example.com",
        "within the minute"
    );
    world.clock.advance(Duration::from_mins(1));
    assert_eq!(world.says("chat", "U5").await, "nobody");
    assert_eq!(world.says("chat", "U6").await, "u6@example.com");
    assert!(world.roles("chat", "U1").await.is_empty());

    chat.change("U6", |profile| profile.bar = Some(Bar::Deactivated));
    world.clock.advance(Duration::from_mins(5));
    assert_eq!(world.says("chat", "U6").await, "account_deactivated");
}

#[tokio::test]
async fn a_group_that_cannot_be_asked_about_gives_nothing_for_certain() {
    let chat = Fake::new("chat");
    let world = world(&[&chat], &[DANA], &[("chat", "S1", "finance")]);
    chat.knows("U1", None);
    chat.knows("U5", None);
    chat.said.lock().unwrap().instead[2] = Some(failed());
    assert_eq!(world.says("chat", "U5").await, "look_up_failed");
    match world.clicks("chat", "U1").await {
        Who::Person(known) => assert_eq!(known.found.unwrap().perhaps, ["finance"]),
        other => panic!("{other:?}"),
    }
    chat.said.lock().unwrap().instead[2] = Some(may_not());
    world.clock.advance(Duration::from_mins(1));
    assert_eq!(world.says("chat", "U5").await, "nobody");
    assert!(world.roles("chat", "U1").await.is_empty());
}

/// Several identities count once: over platforms the address tells, and without one nobody is taken for a second person.
#[tokio::test]
async fn one_person_on_two_platforms_is_one_person() {
    let (chat, talk) = (Fake::new("chat"), Fake::new("talk"));
    let groups = [("chat", "S1", "finance"), ("talk", "g1", "finance")];
    let world = world(&[&chat, &talk], &[DANA], &groups);
    chat.group("S1", &["U5", "U6"]);
    talk.group("g1", &["ou_5", "ou_6", "ou_1"]);
    chat.knows("U5", Some("noor@example.com"));
    talk.knows("ou_5", Some("noor@example.com"));
    assert_eq!(world.says("chat", "U5").await, "noor@example.com");
    assert_eq!(world.says("talk", "ou_5").await, "noor@example.com");
    talk.knows("ou_1", Some("dana@example.com"));
    assert_eq!(
        world.says("talk", "ou_1").await,
        "dana",
        "merged with the configured operator"
    );
    chat.knows("U6", None);
    talk.knows("ou_6", None);
    assert_eq!(world.says("chat", "U6").await, "not_told_apart");
    assert_eq!(world.says("talk", "ou_6").await, "not_told_apart");
}

/// With one platform there is nobody to be mistaken for: the account is the person.
#[tokio::test]
async fn on_one_platform_the_account_is_the_person() {
    let chat = Fake::new("chat");
    let world = world(&[&chat], &[], &[("chat", "S1", "finance")]);
    chat.group("S1", &["U5"]);
    chat.knows("U5", None);
    assert_eq!(world.says("chat", "U5").await, "chat:U5");
    // The address shows up later: the same person by both names.
    chat.knows("U5", Some("noor@example.com"));
    world.clock.advance(Duration::from_mins(5));
    let Who::Person(known) = world.clicks("chat", "U5").await else {
        panic!("a person");
    };
    let roll = Roll::default().with(known.found);
    assert!(roll.is_same(&"chat:U5".into(), &"noor@example.com".into()));
}

/// Strangers cost the platform nothing where nobody could be found by asking.
#[tokio::test]
async fn nobody_is_asked_about_in_vain() {
    let chat = Fake::new("chat");
    let world = world(&[&chat], &[DANA], &[]);
    assert_eq!(world.says("chat", "U7").await, "nobody");
    assert_eq!(chat.asked(), 0);
    let stated = world
        .directories
        .requester(&Org::from(ORG), "U7", For::Agent, AT_A_CLICK)
        .await;
    assert!(stated.persons.is_empty() && chat.asked() == 0);
}

async fn again(world: &World, casts: &[(&str, Option<&str>)]) -> Vec<(String, Standing)> {
    let casts: Vec<(OperatorId, Option<Account>)> = casts
        .iter()
        .map(|(person, id)| {
            let account = id.map(|id| Account {
                channel: "chat".into(),
                id: id.to_owned(),
                name: None,
            });
            (OperatorId::from(*person), account)
        })
        .collect();
    let casts: Vec<Cast<'_>> = casts
        .iter()
        .map(|(person, account)| Cast {
            person,
            account: account.as_ref(),
        })
        .collect();
    let found = world.directories.again(&Org::from(ORG), &casts, AT_A_CLICK).await;
    found
        .into_iter()
        .map(|found| (found.voter.id.0, found.standing))
        .collect()
}

/// Whoever voted is asked about by the account through which they did.
#[tokio::test]
async fn voters_are_asked_about_again() {
    let chat = Fake::new("chat");
    let world = world(&[&chat], &[DANA, MIRA], &[("chat", "S1", "finance")]);
    chat.knows("U1", None);
    chat.knows("U2", Some("mira@example.com"));
    chat.knows("U5", Some("noor@example.com"));
    chat.group("S1", &["U5"]);
    let casts = [
        ("dana", Some("U1")),
        ("mira", Some("U2")),
        ("noor@example.com", Some("U5")),
    ];
    let standings = |standing: Standing| casts.map(|(person, _)| (person.to_owned(), standing)).to_vec();
    assert_eq!(again(&world, &casts).await, standings(Standing::Good));

    for id in ["U1", "U2", "U5"] {
        chat.change(id, |profile| profile.bar = Some(Bar::Resigned));
    }
    world.clock.advance(Duration::from_mins(5));
    assert_eq!(again(&world, &casts).await, standings(Standing::Barred));

    chat.said.lock().unwrap().instead[0] = Some(failed());
    world.clock.advance(Duration::from_mins(5));
    assert_eq!(again(&world, &casts).await, standings(Standing::Unsure));

    // The app may no longer ask: the configuration vouches for its own identities, and for nobody else.
    chat.said.lock().unwrap().instead[0] = Some(may_not());
    world.clock.advance(Duration::from_mins(5));
    let found = again(&world, &casts).await;
    let barred = |person: &str| (person.to_owned(), Standing::Barred);
    assert_eq!(found, [barred("mira"), barred("noor@example.com")]);
}

/// An account whose address changed hands no longer speaks for who voted through it.
#[tokio::test]
async fn an_account_that_is_somebody_elses_now_backs_nothing() {
    let chat = Fake::new("chat");
    let world = world(&[&chat], &[MIRA], &[("chat", "S1", "finance")]);
    chat.group("S1", &["U2"]);
    chat.knows("U2", Some("other@example.com"));
    assert_eq!(
        again(&world, &[("mira", Some("U2"))]).await,
        [("mira".to_owned(), Standing::Barred)]
    );
}

/// An operator who answers by the console holds the roles of their groups too.
#[tokio::test]
async fn an_answer_without_an_account_counts_the_groups_of_the_operator() {
    let chat = Fake::new("chat");
    let world = world(
        &[&chat],
        &[DANA, MIRA, ("li", None, &[])],
        &[("chat", "S1", "finance")],
    );
    chat.group("S1", &["U1", "U2"]);
    chat.knows("U1", None);
    chat.knows("U2", Some("mira@example.com"));
    let found = again(&world, &[("dana", None), ("mira", None), ("li", None)]).await;
    let good = |person: &str| (person.to_owned(), Standing::Good);
    assert_eq!(found, [good("dana"), good("mira")]);
    chat.said.lock().unwrap().instead[1] = Some(failed());
    world.clock.advance(Duration::from_hours(1));
    let casts = [Cast {
        person: &"mira".into(),
        account: None,
    }];
    let unsure = world.directories.again(&Org::from(ORG), &casts, AT_A_CLICK).await;
    assert_eq!(unsure[0].perhaps, ["finance"]);
}

/// E51: the requester may be named by what only a platform knows.
#[tokio::test]
async fn a_requester_is_every_name_of_the_person() {
    let (chat, talk) = (Fake::new("chat"), Fake::new("talk"));
    let world = world(&[&chat, &talk], &[MIRA], &[("chat", "S1", "finance")]);
    chat.knows("U5", Some("noor@example.com"));
    chat.knows("U2", Some("mira@example.com"));
    let named = async |name: &str| {
        let stated = world
            .directories
            .requester(&Org::from(ORG), name, For::Person, AT_A_CLICK)
            .await;
        assert!(!stated.unsure);
        stated
            .persons
            .into_iter()
            .map(|person| person.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(named("U5").await, ["chat:U5", "noor@example.com"]);
    assert_eq!(named(" Noor@Example.com ").await, ["chat:U5", "noor@example.com"]);
    assert_eq!(named("U2").await, ["chat:U2", "mira", "mira@example.com"]);
    assert!(named("the nightly job").await.is_empty());
    assert!(named("U404").await.is_empty());
    world.clock.advance(Duration::from_mins(5));
    chat.said.lock().unwrap().instead[0] = Some(failed());
    let stated = world
        .directories
        .requester(&Org::from(ORG), "U5", For::Person, AT_A_CLICK)
        .await;
    assert!(stated.unsure && stated.persons.is_empty());
}

/// An agent that names people without end does not use up what those who decide need.
#[tokio::test]
async fn look_ups_for_agents_are_bounded() {
    let chat = Fake::new("chat");
    let world = world(&[&chat], &[MIRA], &[]);
    let org = Org::from(ORG);
    let named =
        async |name: String, sake: For| world.directories.requester(&org, &name, sake, AT_A_CLICK).await;
    for number in 0..50 {
        named(format!("U{number}"), For::Agent).await;
    }
    assert_eq!(chat.asked(), 20);
    assert!(
        !named("U0".into(), For::Agent).await.unsure,
        "what is known costs nothing"
    );
    assert!(named("U99".into(), For::Agent).await.unsure);
    assert!(!named("U99".into(), For::Person).await.unsure);
    world.clock.advance(Duration::from_mins(1));
    assert!(!named("U77".into(), For::Agent).await.unsure);
}

/// Without directories the configuration is all there is.
#[tokio::test]
async fn without_directories_the_configuration_decides() {
    let chat = Fake::new("chat");
    let world = world(&[&chat], &[DANA], &[]);
    let home = world.registry.get("chat").unwrap();
    let none = super::Directories::none();
    let dana = OperatorId::from("dana");
    let who = none.look(home, &["U1".into()], Some(&dana), AT_A_CLICK).await;
    assert!(matches!(who, Who::Person(known) if known.id == dana && known.found.is_none()));
    assert_eq!(
        none.look(home, &["U1".into()], None, AT_A_CLICK).await,
        Who::Nobody
    );
    assert_eq!(chat.asked(), 0);
}

/// Who else may answer by being in a group: listed, in a group that gives the role, with an account that may decide, and not too
/// many of them.
#[tokio::test]
async fn the_company_of_a_role_is_looked_at_and_bounded() {
    let chat = Fake::new("chat");
    chat.knows("U1", Some("mira@example.com"));
    chat.knows("U2", None);
    chat.change("U3", |profile| profile.bar = Some(Bar::Guest));
    chat.knows("U4", Some("dana@example.com"));
    chat.group("S1", &["U1", "U2", "U3", "U4", "U-nobody"]);
    chat.group("S2", &["U1"]);
    let operators: &[Entry] = &[("dana", Some("dana@example.com"), &[])];
    let world = world(
        &[&chat],
        operators,
        &[("chat", "S1", "finance"), ("chat", "S2", "sales")],
    );
    let home = world.registry.get("chat").expect("the channel");
    let company = async |role: &str| {
        let roles = [role.to_owned()].into_iter().collect();
        world.directories.members(home, &roles).await
    };
    let mut found: Vec<_> = company("finance")
        .await
        .into_iter()
        .map(|member| (member.id, member.found.voter.id.0, member.found.voter.roles))
        .collect();
    found.sort();
    let finance = vec!["finance".to_owned()];
    let expected = [("U1", "mira@example.com"), ("U2", "chat:U2"), ("U4", "dana")];
    assert_eq!(
        found,
        expected.map(|(id, person)| (id.to_owned(), person.to_owned(), finance.clone()))
    );
    assert_eq!(company("sales").await.len(), 1);
    assert!(company("legal").await.is_empty());
    assert_eq!(
        world.directories.id_on(home, &"dana".into()).await,
        Some("U4".to_owned())
    );
    assert_eq!(world.directories.id_on(home, &"mira".into()).await, None);

    let many: Vec<String> = (0..40).map(|number| format!("U9{number:02}")).collect();
    for id in &many {
        chat.knows(id, None);
    }
    chat.group("S1", &many.iter().map(String::as_str).collect::<Vec<_>>());
    world.clock.advance(Duration::from_secs(61));
    let before = chat.asked();
    assert_eq!(company("finance").await.len(), 30);
    assert_eq!(chat.asked() - before, 31, "one list, and as many accounts");
}

//! What backs an answer beside the person's word is kept, counted and found again: armed approvals, second persons, codes that
//! were used, and the glass.

use std::sync::Arc;

use gatepost_channel::Decision;

use super::{Ask, Place, decide, roll};
use crate::audit::Opening;
use crate::confirmation::break_glass::Glass;
use crate::confirmation::decide::{Backing, Decide, Refusal, Ruling};
use crate::confirmation::roll::Roll;
use crate::confirmation::step_up::Waiting;
use crate::confirmation::{Basis, Status};
use crate::gate::authority::{BreakGlass, StepUp};
use crate::gate::code::CodeKey;
use crate::gate::policy::Approvers;
use crate::ids::{ConfirmationId, OperatorId, Org};
use crate::storage::ConfirmationFilter;

async fn asked(place: &Place, call: &str, step_up: StepUp) -> ConfirmationId {
    let mut create = Ask::call(call).create(place);
    create.terms.decision.step_up = step_up;
    create.terms.decision.break_glass = Some(BreakGlass {
        lists: vec![Approvers {
            operators: vec!["finn".to_owned()],
            ..Approvers::default()
        }],
        uses: 1,
        per_ms: 60_000,
    });
    let id = create.id.clone();
    place.store.run(create).await.expect("create");
    id
}

pub(super) async fn an_armed_approval_is_kept_until_a_second_person_confirms(place: &Place) {
    let step = StepUp {
        code: false,
        second_person: true,
    };
    let id = asked(place, "second", step).await;
    let said = "a \u{1a} reason with \"basis\":{\"break_glass\": in it, 理由";
    let arms = Decide {
        reason: Some(Opening::new(said, &*place.ids)),
        ..decide(&id, "dana", Decision::Approve)
    };
    let armed = place.store.run(arms).await.expect("run");
    assert_eq!(armed.ruling, Ruling::Armed(Waiting::SecondPerson));
    let kept = place.dossier(&id).await.confirmation.progress.armed;
    assert_eq!(kept.len(), 1);
    assert_eq!(
        kept[0].reason.as_ref().map(|reason| reason.value.as_str()),
        Some(said)
    );
    assert_eq!(broken(place).await, [], "a reason that looks like it is none");
    assert_eq!(place.approve(&id, "erin").await.ruling, Ruling::Settled);
    let dossier = place.dossier(&id).await;
    assert_eq!(dossier.confirmation.progress.armed, []);
    let vote = &dossier.votes[0];
    assert_eq!(
        (vote.person.as_str(), vote.reason.as_deref()),
        ("dana", Some(said))
    );
    let second = vote.content.second.as_ref().map(|second| second.person.as_str());
    assert_eq!(second, Some("erin"));
    place.verify().await;
}

pub(super) async fn of_sixteen_uses_of_one_code_one_counts(place: &Place) {
    let key = CodeKey::from_base32(&"A".repeat(32)).expect("a secret");
    let coded = Roll::clone(&roll()).with_codes([(OperatorId::from("dana"), key.clone())]);
    let coded = Arc::new(coded);
    let step = StepUp {
        code: true,
        second_person: false,
    };
    let now = place.store.read().now().await.expect("now");
    let code = key.shown_at(now);
    let mut racers = Vec::new();
    for n in 0..16 {
        let id = asked(place, &format!("code-{n}"), step).await;
        let answer = Decide {
            backing: Backing {
                code: Some(code.clone()),
                glass: None,
            },
            roll: Arc::clone(&coded),
            ..decide(&id, "dana", Decision::Approve)
        };
        racers.push(place.store.run(answer));
    }
    let rulings: Vec<Ruling> = futures_util::future::join_all(racers)
        .await
        .into_iter()
        .map(|decided| decided.expect("run").ruling)
        .collect();
    let count = |wanted: &Ruling| rulings.iter().filter(|ruling| *ruling == wanted).count();
    assert_eq!(count(&Ruling::Settled), 1, "{rulings:?}");
    // The others are wrong codes by now, of which five are read.
    assert_eq!(count(&Ruling::Refused(Refusal::WrongCode)), 5, "{rulings:?}");
    assert_eq!(count(&Ruling::Refused(Refusal::TooManyCodes)), 10, "{rulings:?}");
    place.verify().await;
}

async fn broken(place: &Place) -> Vec<ConfirmationId> {
    let filter = ConfirmationFilter {
        orgs: vec![Org::from("acme")],
        break_glass: true,
        limit: 10,
        ..ConfirmationFilter::default()
    };
    let page = place.store.read().confirmations(&filter).await.expect("a page");
    page.items
        .into_iter()
        .map(|dossier| dossier.confirmation.id)
        .collect()
}

pub(super) async fn a_broken_glass_is_kept_counted_and_listed(place: &Place) {
    let breaks = |id: &ConfirmationId| Decide {
        reason: Some(Opening::new("nobody answers", &*place.ids)),
        backing: Backing {
            code: None,
            glass: Some(Glass {
                rule: Some("big-payments".to_owned()),
                notices: Vec::new(),
            }),
        },
        ..decide(id, "finn", Decision::Approve)
    };
    let (one, two) = (
        asked(place, "one", StepUp::default()).await,
        asked(place, "two", StepUp::default()).await,
    );
    let settled = place.store.run(breaks(&one)).await.expect("run");
    assert_eq!(settled.ruling, Ruling::Settled);
    let row = place.dossier(&one).await.confirmation;
    assert_eq!(row.state.status(), Status::Approved);
    let stored = row.progress.basis.as_ref().and_then(Basis::broken).expect("kept");
    assert_eq!(
        (stored.person.as_str(), stored.reason.as_str()),
        ("finn", "nobody answers")
    );
    let refused = place.store.run(breaks(&two)).await.expect("run");
    assert_eq!(refused.ruling, Ruling::Refused(Refusal::BreakGlassUsedUp));
    assert_eq!(broken(place).await, [one]);
    place.verify().await;
}

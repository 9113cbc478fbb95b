//! When the terms of an edited call ask for more than people were asked for. Whole edits are tried in `http::v1::confirmation::edit_tests`.

use super::*;
use crate::confirmation::fixture::terms;
use crate::gate::policy::Approvers;
use crate::gate::{EditScope, EditTerms, RequireReason};

#[test]
fn other_or_more_people_less_time_or_another_answer_is_more() {
    let asked = || Terms {
        redact: vec!["/a".parse().unwrap(), "/b".parse().unwrap()],
        ..terms(2)
    };
    let fine: [fn(&mut Terms); 6] = [
        |_| {},
        |terms| terms.quorum = 1,
        |terms| terms.channels = vec!["elsewhere".to_owned()],
        |terms| terms.timeout_ms += 1,
        |terms| terms.redact.reverse(),
        |terms| {
            terms.decision.edits = Some(EditTerms {
                scope: EditScope::Any,
                carried: false,
            });
        },
    ];
    for change in fine {
        let mut wanted = asked();
        change(&mut wanted);
        assert!(is_met_by(&wanted, &asked()), "{wanted:?}");
    }
    let more: [fn(&mut Terms); 9] = [
        |terms| terms.quorum = 3,
        |terms| terms.approvers.roles = vec!["board".to_owned()],
        |terms| {
            terms.also = vec![Approvers {
                roles: vec!["board".to_owned()],
                ..Approvers::default()
            }];
        },
        |terms| {
            terms.decision.stages = vec![crate::gate::Stage {
                name: "board".to_owned(),
                approvers: terms.approvers.clone(),
                quorum: 2,
            }];
        },
        |terms| terms.permit_ttl_ms -= 1,
        |terms| terms.timeout_ms -= 1,
        |terms| terms.decision.require_reason = RequireReason::Approve,
        |terms| terms.decision.confirm_step = true,
        |terms| terms.redact.push("/c".parse().unwrap()),
    ];
    for change in more {
        let mut wanted = asked();
        change(&mut wanted);
        assert!(!is_met_by(&wanted, &asked()), "{wanted:?}");
    }
    let mut lenient = asked();
    lenient.self_approval = true;
    assert!(
        !is_met_by(&asked(), &lenient),
        "who stands behind the call could have approved it"
    );
}

#[test]
fn what_may_not_be_changed_is_named_inert_and_bounded() {
    let allowed = ["/amount".to_owned()];
    assert_eq!(
        out_of_scope(&["/note".to_owned(), "/a\u{202e}\nb".to_owned()], &allowed),
        "the rule does not let people change /note, /a\\u{202E}\\nb, only /amount"
    );
    let many: Vec<String> = (0..100_000)
        .map(|at| format!("/{at}{}", "x".repeat(200)))
        .collect();
    let said = out_of_scope(&many, &allowed);
    assert!(said.len() < 700 && said.contains("x…, …, only /amount"), "{said}");
    assert!(out_of_scope(&[], &allowed).starts_with("the rule does not let people"));
}

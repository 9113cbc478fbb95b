//! Jobs whose calls a person edits: what the tool gets, and what the model is told.

use gatepost_channel::Decision;
use serde_json::json;

use super::fixture::{Lab, call, calls, complete};
use crate::confirmation::decide::{Refusal, Ruling, Surface};
use crate::confirmation::edit::EditRefusal;
use crate::gate::Arguments;
use crate::gate::json::ReadLimits;
use crate::gatekeeper::{Ruled, Saying};
use crate::ids::ConfirmationId;
use crate::job::fixture::{dana, org};

fn args(text: &str) -> Arguments {
    Arguments::read(text.as_bytes(), ReadLimits::bytes(1000)).unwrap()
}

async fn edit(lab: &Lab, id: &ConfirmationId, text: &str) -> Ruled {
    let args = args(text);
    let saying = Saying {
        edited_args: Some(&args),
        ..Saying::plain(Decision::Approve)
    };
    lab.gatekeeper
        .answer(&dana(), &org(), id, saying, Surface::Api)
        .await
        .unwrap()
}

#[tokio::test]
async fn the_tool_gets_the_edited_call_and_the_model_hears_who_changed_what() {
    let lab = Lab::new(vec![
        calls(vec![call("t_edit", &json!({"amount": 60000, "to": "x"}))]),
        complete("success", "paid"),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    let request = lab.pending().remove(0);
    // Judged by the tool's own schema.
    let ruled = edit(&lab, &request, r#"{"amount":"much","to":"x"}"#).await;
    assert_eq!(
        ruled.decided.ruling,
        Ruling::Refused(Refusal::Edit(EditRefusal::Misfit))
    );
    let detail = &ruled.unfit().unwrap().detail;
    assert!(detail.contains("amount") && !detail.contains("much"), "{detail}");
    assert!(lab.ledger.all().is_empty());

    let ruled = edit(&lab, &request, r#"{"amount":4000.10,"to":"x"}"#).await;
    assert_eq!(ruled.decided.ruling, Ruling::Settled);
    lab.work().await;
    let [run] = &lab.ledger.all()[..] else {
        panic!("one execution")
    };
    assert_eq!(run.args, r#"{"amount":4000.1,"to":"x"}"#);
    let told = &lab.results(&id)[0];
    assert!(
        told.starts_with(
            "note: before this call was approved, Dana Kim changed /amount from 60000 to 4000.1."
        ) && told.ends_with(&format!("t_edit did {}", run.args)),
        "{told}"
    );
    let row = lab.world.request(&request);
    assert_eq!(row.asked.args, r#"{"amount":60000,"to":"x"}"#);
    assert!(row.ledger.executed_at.is_some());
    assert!(lab.world.chain_is_sound());
}

#[tokio::test]
async fn an_edited_call_that_somebody_tampers_with_is_not_made() {
    let lab = Lab::new(vec![
        calls(vec![call("t_edit", &json!({"amount": 1}))]),
        complete("aborted", ""),
    ]);
    let id = lab.submit().await;
    lab.work().await;
    let request = lab.pending().remove(0);
    assert_eq!(
        edit(&lab, &request, r#"{"amount":2}"#).await.decided.ruling,
        Ruling::Settled
    );
    lab.world.tamper_request(&request, |row| {
        row.progress.edit.as_mut().unwrap().args = r#"{"amount":3}"#.to_owned();
    });
    lab.work().await;
    assert!(lab.ledger.all().is_empty());
    assert!(lab.results(&id)[0].starts_with("denied (args_changed)"));
}

//! `gatepost demo --auto`: the whole way of a call, through the real server, in one command.

use serde_json::Value;

use super::{gatepost, gatepost_in};
use crate::support::temp_dir::TempDir;

#[test]
fn the_story_is_told_in_order_and_ends_well() {
    let ran = gatepost(&["demo", "--auto"]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.out, ran.err);
    let mut rest = ran.out.as_str();
    for line in [
        "server   listens on http://127.0.0.1:",
        "agent    submits the job pay-invoice",
        "gate     oa__purchase_pay needs a person: Payments of 50,000 or more need a person",
        "job      is parked",
        "desk     finance-desk shows the card:",
        "\"amount\": 84250",
        "dana     may decide, once, at this address",
        "http://127.0.0.1:",
        "gatepost approve cr_",
        "dana     approved it",
        "job      resumes with exactly the call that was approved",
        "bank     received exactly one request: {",
        "with Idempotency-Key: pm_",
        "job      completed: Invoice INV-4711 is paid, receipt R-0001.",
        "audit    the chain of ",
        "Approved once, paid once",
    ] {
        let Some((_, after)) = rest.split_once(line) else {
            panic!("`{line}` does not follow in:\n{}", ran.out);
        };
        rest = after;
    }
    assert!(!ran.out.contains('\u{1b}'), "no colours outside a terminal");
}

#[test]
fn the_result_is_json_and_a_kept_folder_holds_a_sound_configuration() {
    let outer = TempDir::new();
    let ran = gatepost_in(&outer, &["demo", "--auto", "--json", "--keep", "kept"]);
    let told: Value = serde_json::from_str(&ran.out).expect("nothing but JSON on stdout");
    assert_eq!(
        (ran.code, &told["ok"], &told["payments"]),
        (0, &Value::Bool(true), &Value::from(1)),
        "{}",
        ran.err
    );
    let check = gatepost_in(&outer, &["check", "--config", "kept/gatepost.yaml"]);
    assert_eq!(check.code, 0, "{}", check.out);
    let again = gatepost_in(&outer, &["demo", "--auto", "--keep", "kept"]);
    assert!(
        again.code == 2 && again.err.contains("kept"),
        "a folder that is there already is left alone: {}",
        again.err
    );
}

//! Modals: `views.open` with its one-time trigger, `views.update`, and their limits.

use serde_json::{Value, json};

use super::block_kit::{self, units};
use super::methods::{Failure, Outcome, name_blocks, refused};
use super::world::{View, World};

/// A trigger lives three seconds.
const TRIGGER_MS: i64 = 3_000;

pub(super) fn open(world: &mut World, args: &Value, now_ms: i64) -> Outcome {
    let id = args["trigger_id"].as_str().unwrap_or_default();
    let trigger = world.triggers.get_mut(id).ok_or("invalid_trigger_id")?;
    if trigger.used {
        return Err("exchanged_trigger_id".into());
    }
    if now_ms - trigger.issued_ms > TRIGGER_MS {
        return Err("expired_trigger_id".into());
    }
    check(&args["view"])?;
    trigger.used = true;
    let user = trigger.user.clone();
    let mut view = args["view"].clone();
    name_blocks(world, &mut view["blocks"]);
    let id = format!("V{:09}", world.next());
    view["id"] = json!(id);
    view["hash"] = json!(format!("{now_ms}.h"));
    world.views.push(View {
        id,
        user,
        content: view.clone(),
        closed: false,
    });
    Ok(json!({"view": view}))
}

/// Replaces what an open modal shows.
pub(super) fn update(world: &mut World, args: &Value) -> Outcome {
    check(&args["view"])?;
    let mut view = args["view"].clone();
    name_blocks(world, &mut view["blocks"]);
    let id = args["view_id"].as_str().unwrap_or_default();
    let open = world.views.iter_mut().find(|view| view.id == id && !view.closed);
    let open = open.ok_or("not_found")?;
    view["id"] = json!(id);
    open.content = view.clone();
    Ok(json!({"view": view}))
}

fn check(view: &Value) -> Result<(), Failure> {
    if view["type"] != "modal" {
        return Err("invalid_arguments".into());
    }
    let answers = view["blocks"].as_array().into_iter().flatten();
    if answers.clone().any(|block| block["type"] == "input") && view["submit"].is_null() {
        return Err("invalid_arguments".into());
    }
    block_kit::check(&view["blocks"], 100).or_else(|refusal| match refusal {
        // A view has its own, much wider total.
        block_kit::Refusal::TooLong => Ok(()),
        invalid @ block_kit::Refusal::Invalid(_) => Err(refused(invalid)),
    })?;
    for name in ["title", "submit", "close"] {
        let text = view[name]["text"].as_str().unwrap_or_default();
        if units(text) > 24 || (name == "title" && text.is_empty()) {
            return Err("invalid_arguments".into());
        }
    }
    for (name, most) in [("private_metadata", 3_000), ("callback_id", 255)] {
        if view[name].as_str().is_some_and(|text| units(text) > most) {
            return Err("invalid_arguments".into());
        }
    }
    if view.to_string().len() > 250_000 {
        return Err("view_too_large".into());
    }
    Ok(())
}

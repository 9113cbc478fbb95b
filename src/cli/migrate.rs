//! `gatepost migrate`: brings the database up to date and ends. On PostgreSQL it is run before the servers of a new version start.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::config::load;
use super::stop::{Done, Stop};
use super::{ConfigArgs, print};
use crate::clock::SystemClock;
use crate::lifecycle::Tasks;
use crate::storage::open::shown;
use crate::storage::{Settings, open};

/// How long the writer may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Migrates.
pub async fn run(args: &ConfigArgs, as_json: bool) -> Done {
    let config = load(args)?.config;
    let settings = Settings::new(config.storage.url.expose(), Arc::new(SystemClock));
    let tasks = Tasks::new();
    let store = open(&settings, &tasks).await?;
    tasks.ask_to_stop();
    drop(store);
    if !tasks.drain(PATIENCE).await {
        return Err(Stop::failed(
            "the database was migrated, but its writer did not end",
        ));
    }
    let database = shown(&settings.url);
    if as_json {
        print::json(&json!({"migrated": true, "database": database}));
    } else {
        print::line(&format!("{} is up to date.", print::foreign(&database)));
    }
    Ok(())
}

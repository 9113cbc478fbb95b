//! `gatepost doctor`: would it work now? Asks every platform, follows the public address, compares clocks, starts every MCP
//! server, looks at the database and the server's key.
//!
//! It posts nothing and makes no key. A SQLite file of an older version is brought up to date, as by every command that opens it.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::json;

use super::config::load;
use super::stop::{Done, Stop};
use super::table::{Column, table};
use super::{ConfigArgs, print};
use crate::app::channels;
use crate::clock::{Clock, SystemClock, UtcMillis, rfc3339};
use crate::config::agent::ToolConfig;
use crate::config::server_key::load_or_create;
use crate::config::{Backend, Config, KeySource};
use crate::lifecycle::Tasks;
use crate::mcp::{Health, Limits, Server};
use crate::storage::open::shown;
use crate::storage::{OpenError, Settings, open};

mod channel;
mod finding;
mod outside;
mod people;

use finding::Finding;

/// The machine's clock cannot be right when it shows less: the first day of 2026, in milliseconds.
const EARLIEST: UtcMillis = UtcMillis(1_767_225_600_000);

/// Looks at everything, tells, and stops when something is ill.
pub async fn run(args: &ConfigArgs, as_json: bool) -> Done {
    let config = load(args)?.config;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mut found = vec![
        Finding::new("clock", time(&*clock)),
        Finding::new("server key", key(&config.server.key)),
        Finding::new("database", database(&config, &clock).await),
    ];
    match channels::http_client() {
        Ok(http) => {
            found.extend(outside::clocks(&config, &http, &*clock).await);
            found.extend(outside::public_url(&config, &http).await);
            found.extend(channel::ask(&config, &http, &clock).await);
            found.extend(people::ask(&config, &http, &clock).await);
            found.extend(ask_servers(&config, &http).await);
        }
        Err(error) => found.push(Finding::new("network", Err(error.without_url().to_string()))),
    }
    let healthy = found.iter().all(Finding::healthy);
    if as_json {
        print::json(&json!({"healthy": healthy, "checks": found}));
    } else {
        let rows: Vec<_> = found.iter().map(Finding::row).collect();
        table(
            &[
                Column::Fixed("CHECK"),
                Column::Fixed("STATE"),
                Column::Text("DETAIL"),
            ],
            &rows,
        );
    }
    if healthy { Ok(()) } else { Err(Stop::Told) }
}

fn time(clock: &dyn Clock) -> Result<String, String> {
    let now = clock.now();
    if now < EARLIEST {
        return Err(format!(
            "it shows {}: set it, signatures and deadlines are judged by it",
            rfc3339(now)
        ));
    }
    Ok(rfc3339(now))
}

/// A key that stands nowhere yet is made by the first start, not here.
fn key(source: &KeySource) -> Result<String, String> {
    match source {
        KeySource::Given(_) => Ok("given in the configuration".to_owned()),
        KeySource::File(path) if !exists(path) => {
            Ok(format!("{} is made at the first start", path.display()))
        }
        KeySource::File(path) => match load_or_create(path, &|_| {}) {
            Ok(_) => Ok(format!("{} is readable by its owner only", path.display())),
            Err(error) => Err(error.to_string()),
        },
    }
}

fn exists(path: &Path) -> bool {
    path.try_exists().unwrap_or(true)
}

async fn database(config: &Config, clock: &Arc<dyn Clock>) -> Result<String, String> {
    let mut settings = Settings::new(config.storage.url.expose(), Arc::clone(clock));
    settings.migrate = false;
    settings.readers = 1;
    let name = shown(&settings.url);
    if config.storage.backend == Backend::Sqlite && !file_of(&settings.url).is_some_and(exists) {
        return Ok(format!("{name} is made at the first start"));
    }
    let tasks = Tasks::new();
    let opened = open(&settings, &tasks).await;
    tasks.ask_to_stop();
    let looked = match opened {
        Ok(store) => store
            .read()
            .now()
            .await
            .map_err(|error| error.to_string())
            .and_then(|now| {
                let apart = now.0.abs_diff(clock.now().0) / 1000;
                if apart > 60 {
                    return Err(format!(
                        "{name}: its clock is {} away from this machine's",
                        print::span(apart)
                    ));
                }
                Ok(format!("{name} is reachable and up to date"))
            }),
        // A server has it open: that it works is for the server's own health to say.
        Err(OpenError::InUse(_)) => Ok(format!("{name} is in use by a running server")),
        Err(error) => Err(error.to_string()),
    };
    tasks.drain(crate::app::PATIENCE).await;
    looked
}

fn file_of(url: &str) -> Option<&Path> {
    let path = url.strip_prefix("sqlite:")?;
    Some(Path::new(path.strip_prefix("//").unwrap_or(path)))
}

/// Starts or reaches every MCP server once, and says what it offers.
async fn ask_servers(config: &Config, http: &reqwest::Client) -> Vec<Finding> {
    let tasks = Tasks::new();
    let asked = config.agent.tools.iter().filter_map(|tool| match tool {
        ToolConfig::Mcp(server) => Some(Server::new(server.clone(), http.clone(), Limits::default())),
        ToolConfig::Http(..) | ToolConfig::Command(..) => None,
    });
    let found = join_all(asked.map(async |server| {
        let server = Arc::new(server);
        tasks.spawn(Arc::clone(&server).keep(tasks.clone()));
        server.settled().await;
        server.release();
        let looked = match server.health() {
            Health::Ready {
                server,
                tools,
                left_out,
            } => {
                let mut detail = format!("{server}: {} tools ({})", tools.len(), tools.join(", "));
                if !left_out.is_empty() {
                    detail.push_str("; left out: ");
                    detail.push_str(&left_out.join("; "));
                }
                Ok(detail)
            }
            Health::Down(why) => Err(why),
            Health::Starting => Err("it is still starting".to_owned()),
        };
        Finding::new(format!("mcp {}", server.name()), looked)
    }))
    .await;
    tasks.ask_to_stop();
    tasks.drain(crate::app::PATIENCE).await;
    found
}

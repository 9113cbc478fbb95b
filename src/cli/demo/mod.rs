//! `gatepost demo`: the main job with nothing to set up. An agent wants to pay an invoice, a person decides, the job goes on.
//!
//! The server is the real one, started from a real configuration text; agent, person and auditor use its HTTP API with their
//! own tokens. Only the model and the bank are scripted ([`model`], [`bank`]), and both are real HTTP servers on loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use clap::Args;
use serde_json::json;
use tokio::net::TcpListener;

use super::api::{Api, ServerArgs};
use super::serve::Signals;
use super::stop::{Done, Stop};
use super::{environment, print};
use crate::app::{Outside, PATIENCE, Server};
use crate::lifecycle::Tasks;
use crate::telemetry::logging;

mod bank;
mod desk;
mod model;
mod play;
mod stage;
mod story;

#[cfg(test)]
mod desk_tests;

use bank::Bank;
use desk::Desk;
use play::{Cards, Cast, Ending};
use stage::Stage;
use story::Story;

/// A demo that decides by itself is over long before.
const AUTO_PATIENCE: Duration = Duration::from_secs(30);

/// Arguments of `gatepost demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Let a scripted operator approve; exit code 0 only if the payment arrived exactly once and the audit chain holds
    #[arg(long)]
    auto: bool,
    /// Leave configuration, database and tokens in this folder, which must not exist yet
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Plays the demo.
pub async fn run(args: DemoArgs, as_json: bool) -> Done {
    if let Some(filter) = environment("GATEPOST_LOG") {
        logging::install(logging::Format::Text, Some(&filter))?;
    }
    let mut signals = Signals::new()?;
    let story = Story::begin(as_json);
    let stage = Stage::set(args.keep.as_deref())?;
    let (tasks, bank) = (Tasks::new(), Bank::default());
    let model_at = host(&tasks, |_| model::router()).await?;
    let bank_at = host(&tasks, |_| bank.router()).await?;
    let server = Server::start(&stage.load(model_at, bank_at)?, Outside::default()).await?;
    let demo = Demo {
        story: &story,
        stage: &stage,
        server: &server,
        tasks: &tasks,
        bank,
    };
    let played = tokio::select! {
        played = demo.play(args.auto) => played,
        () = signals.next() => Err(Stop::failed("the demo was stopped before its end")),
    };
    let stopped = server.stop().await;
    tasks.ask_to_stop();
    tasks.drain(PATIENCE).await;
    let mut ending = played?;
    if !stopped {
        ending.wrong.push("the server did not stop in time".to_owned());
    }
    if args.keep.is_some() {
        story.say(&format!(
            "\nEverything is kept in {}.",
            print::foreign(&stage.path().display().to_string())
        ));
    }
    tell(&story, &ending, as_json)
}

struct Demo<'a> {
    story: &'a Story,
    stage: &'a Stage,
    server: &'a Server,
    tasks: &'a Tasks,
    bank: Bank,
}

impl Demo<'_> {
    async fn play(&self, auto: bool) -> Result<Ending, Stop> {
        if !auto {
            return self.acts(false).await;
        }
        let acts = tokio::time::timeout(AUTO_PATIENCE, self.acts(true)).await;
        acts.unwrap_or_else(|_| Err(Stop::failed("the demo did not come to its end in time")))
    }

    async fn acts(&self, auto: bool) -> Result<Ending, Stop> {
        let address = self
            .server
            .addresses()
            .first()
            .ok_or_else(|| Stop::failed("the server listens nowhere"))?;
        let url = format!("http://{address}");
        let api = |token: &str| {
            Api::new(&ServerArgs {
                url: url.clone(),
                token: token.to_owned(),
            })
        };
        self.story
            .say("Gatepost demo: an agent wants to pay an invoice, and a person decides.\n");
        self.story.step(
            "server",
            &format!("listens on {url}, one channel, one rule, SQLite in a folder of its own"),
        );
        let cast = Cast {
            story: self.story,
            agent: api(&self.stage.agent)?,
            auditor: api(&self.stage.auditor)?,
            bank: self.bank.clone(),
            cards: Cards(self.server.gatekeeper().clone()),
        };
        let parked = cast.until_parked().await?;
        let person = api(&self.stage.operator)?;
        let desk = self
            .open_desk(&parked, &cast.cards, api(&self.stage.operator)?)
            .await?;
        self.story
            .step("dana", "may decide, once, at this address (this machine only):");
        self.story.more(&desk.address());
        self.story.more("or with this command:");
        self.story.more(&format!(
            "{} approve {} --url {url} --token {}",
            program(),
            parked.request,
            self.stage.operator
        ));
        if auto {
            play::approve(&person, &parked.request).await?;
        } else {
            self.story
                .more("or with `reject` and --reason TEXT in place of `approve`; Ctrl-C ends the demo. Waiting for you.");
        }
        cast.until_the_end(&parked).await
    }

    async fn open_desk(&self, parked: &play::Parked, cards: &Cards, person: Api) -> Result<Arc<Desk>, Stop> {
        let mut desk = None;
        host(self.tasks, |at| {
            let opened = Arc::new(Desk {
                secret: stage::draw(),
                at,
                request: parked.request.clone(),
                cards: cards.clone(),
                person,
            });
            desk = Some(Arc::clone(&opened));
            opened.router()
        })
        .await?;
        desk.ok_or_else(|| Stop::failed("the page for the decision cannot be served"))
    }
}

/// This program as a shell takes it: after `cargo run` nothing of its name is on the PATH.
fn program() -> String {
    let path = std::env::current_exe().ok();
    let plain = |path: &String| {
        path.chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'))
    };
    let path = path.and_then(|path| path.into_os_string().into_string().ok());
    path.filter(plain).unwrap_or_else(|| "gatepost".to_owned())
}

/// Serves on a free loopback port until the demo ends.
async fn host(tasks: &Tasks, router: impl FnOnce(SocketAddr) -> Router) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let at = listener.local_addr()?;
    let (router, stop) = (router(at), tasks.clone());
    tasks.spawn(async move {
        let serving =
            axum::serve(listener, router).with_graceful_shutdown(async move { stop.stopping().await });
        // An endpoint that ends early shows in the story: whoever calls it fails.
        let _ended = serving.await;
    });
    Ok(at)
}

fn tell(story: &Story, ending: &Ending, as_json: bool) -> Done {
    let ok = ending.wrong.is_empty();
    if as_json {
        print::json(&json!({
            "ok": ok,
            "decision": ending.decision,
            "job_status": ending.job,
            "payments": ending.payments,
            "audit_events": ending.events,
            "seconds": story.seconds(),
            "wrong": ending.wrong,
        }));
    }
    for wrong in &ending.wrong {
        story.step("WRONG", wrong);
    }
    let seconds = story.seconds();
    match (ok, ending.payments) {
        (true, 0) => story.end(
            true,
            &format!("Not approved, so nothing was paid, and the log says why. ({seconds:.1}s)"),
        ),
        (true, _) => story.end(
            true,
            &format!("Approved once, paid once, and the log proves it. ({seconds:.1}s)"),
        ),
        (false, _) => story.end(false, "Something is not as it should be."),
    }
    if ok { Ok(()) } else { Err(Stop::Told) }
}

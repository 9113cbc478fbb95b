//! `gatepost serve`: the server, from the configuration to the last acknowledged write.
//!
//! The first SIGTERM or SIGINT asks it to stop and finish what it accepted; a second one ends the process at once.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

use super::config::load;
use super::stop::{Done, Stop};
use super::{ConfigArgs, environment};
use crate::app::{Outside, Server};
use crate::telemetry::{logging, metrics};

/// Serves until a signal asks it to stop.
pub async fn run(args: &ConfigArgs, as_json: bool) -> Done {
    let loaded = load(args)?;
    let format = if as_json {
        logging::Format::Json
    } else {
        logging::Format::Text
    };
    logging::install(format, environment("GATEPOST_LOG").as_deref())?;
    let outside = Outside {
        metrics: Some(metrics::install()?),
        ..Outside::default()
    };
    // Before anything is accepted, so that no signal finds its default, which kills.
    let mut signals = Signals::new()?;
    let server = Server::start(&loaded, outside).await?;
    signals.next().await;
    info!("stopping: what was accepted is finished; a second signal stops at once");
    tokio::select! {
        ended = server.stop() => {
            if ended {
                info!("stopped");
                Ok(())
            } else {
                Err(Stop::failed("what was accepted could not be finished in time"))
            }
        }
        () = signals.next() => {
            warn!("stopped at once");
            Err(Stop::Told)
        }
    }
}

/// The signals that end the server.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Catches them from now on.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

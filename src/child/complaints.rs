//! Standard error of a child that is talked to: read as long as there is any, so that a talkative child never blocks on it, and
//! its end kept for whoever has to say why the child is gone. Must not know what is talked about.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Heard, How, Keep, Sampler};
use crate::lifecycle::Tasks;

/// What is kept: the end.
const KEPT: usize = 4 * 1024;
/// How long the pipe is still read after the server was asked to stop: its runs end first, and a stray process that holds the
/// pipe must not hold the server.
const LINGER: Duration = Duration::from_secs(8);
/// How long the end of a child that closed its output is waited for, and then the end of what it said.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// See the module.
pub struct Complaints {
    heard: Arc<Mutex<Heard>>,
    /// Closed when everything was read.
    drained: watch::Receiver<()>,
    sampler: Sampler,
}

impl Complaints {
    /// Begins to read. `sampler` is that of the child's entry: what is quoted holds none of its secrets.
    pub fn read(stderr: ChildStderr, sampler: Sampler, tasks: &Tasks) -> Self {
        let heard = Arc::new(Mutex::new(Heard::new(Keep::Tail(KEPT))));
        let (draining, drained) = watch::channel(());
        tasks.spawn(drain(stderr, Arc::clone(&heard), draining, tasks.clone()));
        Self {
            heard,
            drained,
            sampler,
        }
    }

    /// This reason, with the end of what the child said. A child that ended said it before; one of its own may hold the pipe for
    /// longer, and is not waited for.
    pub async fn after(&mut self, why: String) -> String {
        // Closed and late are both the end of waiting.
        let _ = timeout(LAST_WORDS, self.drained.changed()).await;
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = self.sampler.tail(&heard);
        if tail.is_empty() {
            why
        } else {
            format!("{why}: {tail}")
        }
    }
}

/// How a child ended that does not answer any more; one that lives on has closed its output.
pub async fn how_it_ended(child: &mut Child) -> String {
    timeout(LAST_WORDS, child.wait()).await.map_or_else(
        |_| "it closed its output".to_owned(),
        |ended| How::from(ended).to_string(),
    )
}

async fn drain(mut stderr: ChildStderr, heard: Arc<Mutex<Heard>>, draining: watch::Sender<()>, tasks: Tasks) {
    let read = async {
        let mut chunk = vec![0; 8 * 1024];
        while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
            let read = chunk.get(..count).unwrap_or_default();
            heard.lock().unwrap_or_else(PoisonError::into_inner).take(read);
        }
    };
    let stopped = async {
        tasks.stopping().await;
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        () = read => {}
        () = stopped => {}
    }
    drop(draining);
}

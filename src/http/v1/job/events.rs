//! `GET /api/jobs/{id}/events`: server-sent events, one `job` event whenever the job changed, until it has ended; between them what
//! goes on in its run (`turn_started`, `model_answered`, `tool_started`, `tool_finished`, `movement_changed`, `parked`, `resumed`,
//! `ended`).
//!
//! A `job` event is the truth, read from the store. The others are told by the process that runs the job and kept for a short while:
//! a listener at another server, or one that comes back late, gets the job as it stands and what follows. `ended` comes always.
//!
//! A stream holds a little memory, a place among those who wait, and no worker. It ends when the job does or when the server stops; who comes back with
//! `Last-Event-ID` is not told again what it has seen.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{known, whole_view};
use crate::http::Api;
use crate::http::auth::Reader;
use crate::http::guard::Wait;
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::http::v1::WhichJob;
use crate::ids::JobId;
use crate::job::Job;
use crate::job::progress::{Feed, Progress, Told};
use crate::storage::wake::Watch;

/// The slow poll behind the wake-ups.
const POLL: Duration = Duration::from_secs(2);

/// One listener.
struct Listener {
    api: Api,
    reader: Reader,
    id: JobId,
    watch: Watch,
    /// What goes on, where this process can tell.
    feed: Option<(Feed, watch::Receiver<u64>)>,
    /// Told, and not sent yet.
    told: VecDeque<Told>,
    at: Place,
    /// The job as it stood when the listener came.
    first: Option<Job>,
    /// The end was told.
    over: bool,
    /// The last snapshot was sent.
    ended: bool,
    _place: Wait,
}

/// Streams them.
pub async fn handle(
    State(api): State<Api>,
    reader: Reader,
    WhichJob(id): WhichJob,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, Problem> {
    params.finish()?;
    let feed = api.desk().and_then(|desk| desk.feed()).cloned();
    let before = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    // What is told from here on is not missed: it is remembered until the listener asks.
    let at = Place::after(before, feed.as_ref());
    let first = known(&api, &reader, &id).await?;
    let place = api.crowd().may_wait(&reader.waiter())?;
    let feed = feed.map(|feed| {
        let newest = feed.listen(&id);
        (feed, newest)
    });
    let listener = Listener {
        watch: api.gatekeeper().store().wakes().job(&id),
        at,
        first: Some(first),
        feed,
        told: VecDeque::new(),
        over: false,
        api,
        reader,
        id,
        ended: false,
        _place: place,
    };
    let events = unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), listener))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

/// How far a listener heard: the version of the job that it saw, and what of this process's feed.
#[derive(Debug, Clone, Copy)]
struct Place {
    seen: i64,
    heard: u64,
}

impl Place {
    /// After the event of this id. Of what other processes told nothing can be told again; whoever is new starts with how the
    /// job stands.
    fn after(id: Option<&str>, feed: Option<&Feed>) -> Self {
        let mut parts = id.unwrap_or_default().split('.');
        let seen = parts
            .next()
            .and_then(|version| version.parse().ok())
            .unwrap_or(-1);
        let same = parts
            .next()
            .is_some_and(|instance| feed.is_some_and(|feed| feed.instance() == instance));
        let heard = parts
            .next()
            .filter(|_| same)
            .and_then(|number| number.parse().ok());
        Self {
            seen,
            heard: heard.unwrap_or_else(|| feed.map_or(0, Feed::newest)),
        }
    }

    fn id(self, feed: Option<&Feed>) -> String {
        let instance = feed.map_or("0", Feed::instance);
        format!("{}.{instance}.{}", self.seen, self.heard)
    }
}

impl Listener {
    /// The next event; nothing at the end.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(Told { number, progress }) = self.told.pop_front() {
                self.at.heard = number;
                self.over |= matches!(progress, Progress::Ended { .. });
                return self.event(progress.word(), &progress);
            }
            if self.ended {
                return None;
            }
            // Read first, then wait: the wake-up is only a hint.
            let job = match self.first.take() {
                Some(job) => job,
                None => known(&self.api, &self.reader, &self.id).await.ok()?,
            };
            // A listener that has not seen the job yet sees it first.
            if let Some((feed, newest)) = self.feed.as_mut().filter(|_| self.at.seen >= 0) {
                newest.mark_unchanged();
                self.told.extend(feed.after(&self.id, self.at.heard));
                if !self.told.is_empty() {
                    continue;
                }
            }
            let is_final = job.state.status().is_final();
            if job.version != self.at.seen {
                if is_final && !self.over {
                    // The worker that ended it may be elsewhere, or no worker did.
                    self.over = true;
                    let status = job.state.status().as_str();
                    let progress = Progress::Ended { status };
                    return self.event(progress.word(), &progress);
                }
                self.at.seen = job.version;
                self.ended = is_final;
                let view = whole_view(&self.api, &job);
                return self.event("job", &view);
            }
            if is_final {
                return None;
            }
            tokio::select! {
                _ = timeout(POLL, self.watch.changed()) => {}
                () = heard(&mut self.feed) => {}
                () = self.api.tasks().stopping() => return None,
            }
        }
    }

    fn event(&self, name: &str, data: &impl Serialize) -> Option<Event> {
        let id = self.at.id(self.feed.as_ref().map(|(feed, _)| feed));
        Event::default().id(id).event(name).json_data(data).ok()
    }
}

/// Resolves when something of the job is told; never, where nothing is.
async fn heard(feed: &mut Option<(Feed, watch::Receiver<u64>)>) {
    if let Some((_, newest)) = feed
        && newest.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

//! `GET /api/jobs/{id}/events`: server-sent events, one `job` event whenever the job changed, until it has ended.
//!
//! A stream holds a little memory, a place among those who wait, and no worker. It ends when the job does or when the server stops; who comes back with
//! `Last-Event-ID` is not told again what it has seen.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use tokio::time::timeout;

use super::{known, whole_view};
use crate::http::Api;
use crate::http::auth::Reader;
use crate::http::guard::Wait;
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::http::v1::WhichJob;
use crate::ids::JobId;
use crate::storage::wake::Watch;

/// The slow poll behind the wake-ups.
const POLL: Duration = Duration::from_secs(2);

/// One listener.
struct Listener {
    api: Api,
    reader: Reader,
    id: JobId,
    watch: Watch,
    seen: i64,
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
    known(&api, &reader, &id).await?;
    let place = api.crowd().may_wait(&reader.waiter())?;
    let seen = headers
        .get("last-event-id")
        .and_then(|id| id.to_str().ok()?.parse().ok())
        .unwrap_or(-1);
    let listener = Listener {
        watch: api.gatekeeper().store().wakes().job(&id),
        api,
        reader,
        id,
        seen,
        ended: false,
        _place: place,
    };
    let events = unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), listener))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

impl Listener {
    /// The next change; nothing at the end.
    async fn next(&mut self) -> Option<Event> {
        while !self.ended {
            // Read first, then wait: the wake-up is only a hint.
            let job = known(&self.api, &self.reader, &self.id).await.ok()?;
            self.ended = job.state.status().is_final();
            if job.version != self.seen {
                self.seen = job.version;
                let event = Event::default().id(job.version.to_string()).event("job");
                return event.json_data(whole_view(&self.api, &job)).ok();
            }
            if self.ended {
                return None;
            }
            tokio::select! {
                _ = timeout(POLL, self.watch.changed()) => {}
                () = self.api.tasks().stopping() => return None,
            }
        }
        None
    }
}

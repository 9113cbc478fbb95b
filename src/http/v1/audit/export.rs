//! `GET /api/audit/export`: the events as JSON lines, read page by page while they are sent. A store that fails midway breaks
//! the connection off, so that a cut export is not taken for a whole one.

use std::collections::VecDeque;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::try_unfold;

use super::{filter, view};
use crate::http::Api;
use crate::http::auth::Auditor;
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::storage::AuditFilter;

/// Events read at once.
const PAGE: usize = 500;

/// Exports them.
pub async fn handle(
    State(api): State<Api>,
    auditor: Auditor,
    mut params: Params,
) -> Result<Response, Problem> {
    let bounded = params.has("limit");
    let mut filter = filter(auditor.org, &mut params)?;
    params.finish()?;
    let most = if bounded { filter.limit } else { usize::MAX };
    filter.limit = PAGE.min(most);
    let mut walk = Walk {
        api,
        filter,
        left: most,
        ended: false,
        lines: VecDeque::new(),
    };
    // What can be refused is refused with a status, before the first line.
    walk.turn().await?;
    let lines = try_unfold(walk, |mut walk| async move {
        while walk.lines.is_empty() && !walk.ended {
            walk.turn()
                .await
                .map_err(|problem| std::io::Error::other(problem.code().as_str()))?;
        }
        Ok::<_, std::io::Error>(walk.lines.pop_front().map(|line| (line, walk)))
    });
    let mut response = Body::from_stream(lines).into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/x-ndjson"),
    );
    headers.insert(
        header::CONTENT_DISPOSITION,
        HeaderValue::from_static("attachment; filename=\"gatepost-audit.jsonl\""),
    );
    Ok(response)
}

/// A walk over all pages.
struct Walk {
    api: Api,
    filter: AuditFilter,
    left: usize,
    ended: bool,
    lines: VecDeque<Bytes>,
}

impl Walk {
    /// Reads the next page into lines.
    async fn turn(&mut self) -> Result<(), Problem> {
        let page = self.api.gatekeeper().store().read().audit(&self.filter).await?;
        for event in page.items.into_iter().take(self.left) {
            let mut line = serde_json::to_vec(&view(event, true)?)
                .map_err(|_| Problem::internal("an event could not be written"))?;
            line.push(b'\n');
            self.lines.push_back(line.into());
            self.left -= 1;
        }
        self.ended = self.left == 0 || page.next_cursor.is_none();
        self.filter.cursor = page.next_cursor;
        Ok(())
    }
}

//! `GET /api/audit/verify`: walks the organisation's chain from its start and compares its end with the head in the store and
//! with heads that were kept elsewhere (`head=ORG:SEQ:HASH`), which is how a cut tail is found.

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use crate::audit::{Break, ChainHead, Checker};
use crate::http::Api;
use crate::http::auth::Auditor;
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::ids::Org;
use crate::storage::{AuditFilter, ReadError, StoreError};

/// Events read at once.
const PAGE: usize = 1_000;

/// What the walk found.
#[derive(Debug, Serialize)]
pub struct Verified {
    ok: bool,
    /// How many events hold.
    events: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_bad: Option<Break>,
    /// The end of the chain, to be kept elsewhere.
    head: ChainHead,
}

/// Verifies.
pub async fn handle(
    State(api): State<Api>,
    auditor: Auditor,
    mut params: Params,
) -> Result<Json<Verified>, Problem> {
    let kept = params.parsed("head", "ORG:SEQ:HASH, as an earlier check gave it", |text| {
        parse_head(text).filter(|head| head.org == auditor.org)
    })?;
    params.finish()?;
    let read = api.gatekeeper().store().read();
    // Read before the events: what is appended meanwhile is checked too and lies behind this head.
    let stored = read
        .heads()
        .await?
        .into_iter()
        .find(|head| head.org == auditor.org)
        .unwrap_or_else(|| ChainHead::start(auditor.org.clone()));
    let heads: Vec<_> = std::iter::once(stored).chain(kept).collect();
    let mut checker = Checker::new(auditor.org.clone());
    let mut filter = AuditFilter {
        orgs: vec![auditor.org],
        limit: PAGE,
        ..AuditFilter::default()
    };
    let mut bad = None;
    'walk: loop {
        let page = match read.audit(&filter).await {
            // One event of the page was edited so that it means nothing any more: the walk goes on in single steps up to it.
            Err(ReadError::Store(StoreError::Inconsistent { .. })) if filter.limit > 1 => {
                filter.limit = 1;
                continue;
            }
            Err(ReadError::Store(StoreError::Inconsistent { .. })) => {
                bad = Some(Break {
                    org: checker.head().org.clone(),
                    seq: checker.head().seq + 1,
                    what: "unreadable",
                });
                break;
            }
            page => page?,
        };
        for event in &page.items {
            let step = checker.take(event).and_then(|()| {
                // A head in the middle of what stands now must name the same event.
                let mut named = heads.iter().filter(|head| head.seq == event.seq);
                named.try_for_each(|head| checker.end(head))
            });
            if let Err(fault) = step {
                bad = Some(fault);
                break 'walk;
            }
        }
        filter.cursor = page.next_cursor;
        if filter.cursor.is_none() {
            break;
        }
    }
    let bad = bad.or_else(|| heads.iter().find_map(|head| checker.end(head).err()));
    if let Some(fault) = &bad {
        tracing::error!(
            seq = fault.seq,
            what = fault.what,
            "the audit chain does not hold"
        );
    }
    Ok(Json(Verified {
        ok: bad.is_none(),
        events: checker.events(),
        first_bad: bad,
        head: checker.head().clone(),
    }))
}

fn parse_head(text: &str) -> Option<ChainHead> {
    let (rest, hash) = text.rsplit_once(':')?;
    let (org, seq) = rest.rsplit_once(':')?;
    let well_formed = hash.len() == 64
        && hash
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'));
    let seq = seq.parse::<i64>().ok().filter(|seq| *seq >= 0)?;
    (well_formed && !org.is_empty()).then(|| ChainHead {
        org: Org(org.to_owned()),
        seq,
        hash: hash.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_head_is_read_whole() {
        let hash = "a".repeat(64);
        let head = parse_head(&format!("a:b:7:{hash}")).unwrap();
        assert_eq!((head.org.as_str(), head.seq), ("a:b", 7));
        for bad in [
            "",
            "acme",
            "acme:7",
            &format!("acme:-1:{hash}"),
            &format!(":7:{hash}"),
            &format!("acme:7:{}", "A".repeat(64)),
            "acme:7:abc",
        ] {
            assert!(parse_head(bad).is_none(), "{bad}");
        }
    }
}

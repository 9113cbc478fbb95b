//! How a request is decided, as the API shows it: what an answer needs, what else can be answered, and what came of it.

use serde::Serialize;

use crate::confirmation::{Basis, Dossier, Progress, Status, grant, stage};
use crate::gate::RequireReason;

/// See the module. Members that hold nothing are `null`.
#[derive(Debug, Serialize)]
pub(super) struct DecisionView {
    /// Which answers need a reason: `reject`, `approve` or `both`.
    require_reason: Option<&'static str>,
    confirm_step: bool,
    /// The stages in order; empty where everybody is asked at once.
    stages: Vec<StageView>,
    /// The stage that people vote in, from 1; nothing without stages.
    stage: Option<u32>,
    /// The scopes that an Approve may ask for, so that later calls run too.
    grants_offered: Vec<String>,
    /// The grant that approved it, where no person did.
    approved_by_grant: Option<String>,
    /// The grant that its approval made.
    grant_id: Option<String>,
}

#[derive(Debug, Serialize)]
struct StageView {
    name: String,
    quorum: u32,
    approvals: usize,
}

/// Shows it. Every field of the progress is named here.
pub(super) fn view(dossier: &Dossier) -> DecisionView {
    let row = &dossier.confirmation;
    let Progress {
        stage,
        basis,
        granted,
    } = &row.progress;
    let stages: Vec<_> = stage::each(&row.terms)
        .filter_map(|stage| {
            Some(StageView {
                name: stage.name?.to_owned(),
                quorum: stage.quorum,
                approvals: stage.approvals(&dossier.votes),
            })
        })
        .collect();
    let offered = match row.state.status() {
        Status::Pending => grant::offers(row),
        _ => Vec::new(),
    };
    DecisionView {
        require_reason: match row.terms.decision.require_reason {
            RequireReason::Never => None,
            RequireReason::Reject => Some("reject"),
            RequireReason::Approve => Some("approve"),
            RequireReason::Both => Some("both"),
        },
        confirm_step: row.terms.decision.confirm_step,
        stage: (!stages.is_empty()).then_some(stage + 1),
        stages,
        grants_offered: offered.iter().map(ToString::to_string).collect(),
        approved_by_grant: basis.as_ref().and_then(Basis::grant).map(ToString::to_string),
        grant_id: granted.as_ref().map(ToString::to_string),
    }
}

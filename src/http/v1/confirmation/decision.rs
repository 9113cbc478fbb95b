//! How a request is decided, as the API shows it: what an answer needs, what else can be answered, and what came of it.

use serde::Serialize;

use serde_json::value::RawValue;

use super::super::raw;
use crate::clock::rfc3339;
use crate::confirmation::{Basis, Confirmation, Dossier, Progress, Status, grant, stage};
use crate::delivery::escalate;
use crate::gate::json::Pointer;
use crate::gate::policy::Approvers;
use crate::gate::{Digest, EditScope, EditTerms, RequireReason, shown_canonical, shown_changes};
use crate::http::problem::Problem;

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
    /// The steps of its escalation; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    escalation: Vec<StepView>,
    /// Whether the permit's time passed before anybody used it; left out while that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    permit_lapsed: Option<bool>,
    /// What an Approve may change of the arguments: `true` for all of them, or the places; `false` where nothing may be changed.
    edits_accepted: EditsView,
    /// What an approval takes beside the press: `code`, `second_person` or `both`.
    step_up: Option<&'static str>,
    /// Approvals that count nothing yet. One whose time has passed waits for nothing any more.
    armed: Vec<ArmView>,
    /// Whether somebody may approve alone in need.
    break_glass_offered: bool,
    /// Who approved it alone.
    break_glass: Option<BrokenView>,
}

#[derive(Debug, Serialize)]
struct ArmView {
    operator: String,
    acting_for: Option<String>,
    waits_for: &'static str,
    until: String,
}

#[derive(Debug, Serialize)]
struct BrokenView {
    operator: String,
    at: String,
    surface: String,
    reason: String,
    passed_over: Vec<String>,
}

/// What may be changed.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum EditsView {
    /// All of the arguments, or nothing.
    Any(bool),
    /// What stands at these places.
    At(Vec<String>),
}

#[derive(Debug, Serialize)]
struct StepView {
    /// When it falls due.
    at: String,
    /// Whether it was taken.
    taken: bool,
    remind: bool,
    mention: bool,
    channels: Vec<String>,
    /// Who may decide from then on too.
    approvers: Option<Approvers>,
}

fn escalation(row: &Confirmation, taken: u32) -> Vec<StepView> {
    let steps = (0..).zip(&row.terms.after.escalate);
    steps
        .map(|(at, step)| StepView {
            at: rfc3339(escalate::due(row, step)),
            taken: at < taken,
            remind: step.remind,
            mention: step.mention,
            channels: step.channels.clone(),
            approvers: step.approvers.clone(),
        })
        .collect()
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
    let votes = dossier.standing_votes();
    let Progress {
        stage,
        basis,
        granted,
        edit: _,
        escalated,
        lapsed,
        armed,
        lent: _,
    } = &row.progress;
    let step = row.terms.decision.step_up;
    let pending = row.state.status() == Status::Pending;
    let stages: Vec<_> = stage::each(&row.terms)
        .filter_map(|stage| {
            Some(StageView {
                name: stage.name?.to_owned(),
                quorum: stage.quorum,
                approvals: stage.approvals(&votes),
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
        edits_accepted: edits_accepted(row),
        escalation: escalation(row, *escalated),
        permit_lapsed: lapsed.then_some(true),
        step_up: match (step.code, step.second_person) {
            (false, false) => None,
            (true, false) => Some("code"),
            (false, true) => Some("second_person"),
            (true, true) => Some("both"),
        },
        armed: armed
            .iter()
            .map(|arm| ArmView {
                operator: arm.person.0.clone(),
                acting_for: arm.acting_for.as_ref().map(|absent| absent.0.clone()),
                waits_for: arm.waits_for(step).as_str(),
                until: rfc3339(arm.until),
            })
            .collect(),
        break_glass_offered: pending && row.terms.decision.break_glass.is_some(),
        break_glass: basis.as_ref().and_then(Basis::broken).map(|broken| BrokenView {
            operator: broken.person.0.clone(),
            at: rfc3339(broken.at),
            surface: broken.surface.clone(),
            reason: broken.reason.clone(),
            passed_over: broken.passed_over.iter().map(|person| person.0.clone()).collect(),
        }),
    }
}

/// What an Approve of this request may change: nothing once it is settled, or where whoever asked could not be told.
fn edits_accepted(row: &Confirmation) -> EditsView {
    let terms = row.terms.decision.edits.as_ref();
    match terms.filter(|_| row.takes_edits() && row.state.status() == Status::Pending) {
        None => EditsView::Any(false),
        Some(EditTerms {
            scope: EditScope::Any,
            ..
        }) => EditsView::Any(true),
        Some(EditTerms {
            scope: EditScope::At(places),
            ..
        }) => EditsView::At(places.iter().map(ToString::to_string).collect()),
    }
}

/// The arguments as a person changed them: what is voted on, and once approved runs.
#[derive(Debug, Serialize)]
pub(super) struct EditView {
    /// Counts the edits of the request, from 1. An Approve by who answers here names it.
    number: u32,
    by: String,
    at: String,
    tool_args: Box<RawValue>,
    args_digest: Digest,
    /// What differs from the call as it was proposed, for people to read; hidden values are left out of it.
    changes: String,
}

impl EditView {
    /// Of which call.
    pub(super) const fn digest(&self) -> &Digest {
        &self.args_digest
    }
}

/// Shows the edit that stands, if one does. `hidden` is what these eyes must not see.
pub(super) fn edit_view(row: &Confirmation, hidden: &[Pointer]) -> Result<Option<EditView>, Problem> {
    let Some(edit) = &row.progress.edit else {
        return Ok(None);
    };
    Ok(Some(EditView {
        number: edit.number,
        by: edit.by.0.clone(),
        at: rfc3339(edit.at),
        tool_args: raw(shown_canonical(&edit.args, hidden))?,
        args_digest: edit.digest,
        changes: shown_changes(&row.asked.args, &edit.args, &row.terms.redact)
            .as_str()
            .to_owned(),
    }))
}

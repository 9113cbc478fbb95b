//! `GET /console/requests/{id}`: one request, whole. Who may decide it sees all of the arguments, and that is put on record
//! before they are shown; everybody else of the organisation sees the redacted form.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use gatepost_channel::Inert;
use minijinja::{Value, context};

use super::inbox::approvals;
use super::page::{inert, inert_or, show};
use super::session::Session;
use super::{Visitor, refusal};
use crate::callback::reply::Said;
use crate::confirmation::break_glass::may_break;
use crate::confirmation::{Basis, Dossier, Status, grant, stage};
use crate::delivery::authority::{self, voice};
use crate::delivery::phrase::{Language, REPLIES};
use crate::delivery::ran::Ran;
use crate::gate::{RequireReason, ShortCode, editable, shown, shown_changes};
use crate::gatekeeper::may_see_all;
use crate::http::Api;
use crate::http::problem::Problem;
use crate::http::query::Params;
use crate::http::v1::RequestId;
use crate::http::v1::confirmation::show::look;
use crate::ids::ConfirmationId;
use crate::storage::AuditFilter;

/// Events on the page.
const EVENTS: usize = 100;

/// Shows it.
pub async fn page(
    State(api): State<Api>,
    Visitor(session): Visitor,
    id: Result<RequestId, Problem>,
    mut params: Params,
) -> Response {
    let said = params.text("said");
    let seen = Seen {
        said: said.as_deref(),
        ..Seen::default()
    };
    match render(&api, &session, id, seen).await {
        Ok(response) => response,
        Err(problem) => refusal(&api, problem),
    }
}

/// The page once more, with the arguments as the person wrote them: what they would change, or why they are not taken. Nothing was
/// decided.
pub async fn again(
    api: &Api,
    session: &Session,
    id: &ConfirmationId,
    written: &str,
    found: Result<Inert, String>,
) -> Result<Response, Response> {
    let seen = Seen {
        said: None,
        written: Some((written, found)),
    };
    render(api, session, Ok(RequestId(id.clone())), seen)
        .await
        .map_err(|problem| refusal(api, problem))
}

/// What the page shows beside the request.
#[derive(Default)]
struct Seen<'a> {
    /// What came of an answer, by its key.
    said: Option<&'a str>,
    /// Arguments that the person wrote, and what they would change or why they are not taken.
    written: Option<(&'a str, Result<Inert, String>)>,
}

async fn render(
    api: &Api,
    session: &Session,
    id: Result<RequestId, Problem>,
    seen: Seen<'_>,
) -> Result<Response, Problem> {
    let RequestId(id) = id?;
    let gatekeeper = api.gatekeeper();
    let dossier = gatekeeper
        .dossier(&session.operator.org, &id)
        .await?
        .ok_or_else(Problem::not_found)?;
    let row = &dossier.confirmation;
    let operator = &session.operator;
    let (roll, _) = gatekeeper.roll_for(&operator.org, &operator.id, None).await?;
    let full = may_see_all(&roll, &operator.id, row, api.clock().now());
    if full {
        look(api, &session.operator, &dossier, session.surface.as_str()).await?;
    }
    let filter = AuditFilter {
        orgs: vec![row.org.clone()],
        confirmation: Some(id),
        limit: EVENTS,
        ..AuditFilter::default()
    };
    let events: Vec<Value> = gatekeeper
        .store()
        .read()
        .audit(&filter)
        .await?
        .items
        .iter()
        .map(|event| {
            context! { at => api.zone().show(event.at), kind => inert(&event.kind), actor => inert(&event.actor) }
        })
        .collect();
    let glass = row.state.status() == Status::Pending
        && row
            .terms
            .decision
            .break_glass
            .as_ref()
            .is_some_and(|glass| may_break(&roll, &operator.id, &row.org, glass, api.clock().now()));
    let (status, root) = match &seen.written {
        None => (StatusCode::OK, "../"),
        Some((_, Ok(_))) => (StatusCode::OK, "../../"),
        Some((_, Err(_))) => (StatusCode::UNPROCESSABLE_ENTITY, "../../"),
    };
    let edits = edits(&dossier, full, &seen);
    // Who may only break the glass has no vote to cast.
    let votes_here = roll.may_decide(&operator.id, &row.org, &row.in_force(), api.clock().now());
    let values = context! { events => events, glass => glass, votes_here => votes_here, ..values(api, &dossier, full, seen.said) };
    let values = context! { ..edits, ..values };
    Ok(show(api, Some(session), status, ("request.html", root), values))
}

/// The arguments as a person changed them, and the form in which others are written.
fn edits(dossier: &Dossier, full: bool, seen: &Seen<'_>) -> Value {
    let row = &dossier.confirmation;
    let hidden = if full { &[][..] } else { &row.terms.redact };
    let call = row.call();
    let changes = (call.edit > 0).then(|| shown_changes(&row.asked.args, call.args, hidden));
    let offered = full && row.takes_edits() && row.state.status() == Status::Pending;
    let written = match &seen.written {
        Some((written, _)) => Some((*written).to_owned()),
        None => editable(call.args, hidden),
    };
    let found = seen.written.as_ref().map(|(_, found)| found);
    context! {
        edit => call.edit,
        changes => changes.as_ref().map(Inert::as_str),
        proposed => changes.as_ref().map(|_| shown(&row.asked.args, hidden).as_str().to_owned()),
        edits_offered => offered,
        written => written.filter(|_| offered),
        writing => found.is_some(),
        preview => found.and_then(|found| found.as_ref().ok()).map(Inert::as_str),
        unfit => found.and_then(|found| found.as_ref().err()).map(|why| inert(why)),
    }
}

fn values(api: &Api, dossier: &Dossier, full: bool, said: Option<&str>) -> Value {
    let row = &dossier.confirmation;
    let maker = api.gatekeeper().maker();
    let phrases = maker.phrases(Language::En);
    let status = row.state.status();
    let hidden = if full { &[][..] } else { &row.terms.redact };
    let said = said.and_then(words);
    let outcome = row.ledger.outcome.as_ref();
    let stage = stage::current(&row.terms, &row.progress);
    let facts = context! {
        id => row.id.as_str(),
        set => row.set.as_ref().map(|set| set.first.as_str()),
        tool => inert(row.asked.tool.as_str()),
        status => status.as_str(),
        title => authority::title(row, phrases).unwrap_or_else(|| phrases.title(status)),
        reason => inert_or(row.reason.as_deref()),
        risk => row.terms.risk.map(|risk| context! { level => risk.as_str(), words => phrases.risk(risk) }),
        rule => inert_or(row.rule.as_deref()),
        token => inert(row.asked.token.as_str()),
        agent => inert_or(row.asked.agent_id.as_deref()),
        session => inert_or(row.asked.session_id.as_deref()),
        requester => inert_or(row.asked.requester.as_deref()),
        created_at => api.zone().show(row.created_at),
        expires_at => api.zone().show(row.expires_at),
        decided_at => row.state.decided_at().map(|at| api.zone().show(at)),
        approvals => approvals(dossier),
        quorum => row.terms.quorum,
        outcome => Ran::of(row, api.clock().now()).map(|ran| phrases.ran(ran, api.zone())),
        outcome_detail => inert_or(outcome.and_then(|outcome| outcome.detail.as_deref())),
        code => ShortCode::of(maker.key().as_bytes(), &row.call().digest).as_str(),
        args => shown(row.call().args, hidden).as_str(),
        edited_by => inert_or(row.progress.edit.as_ref().map(|edit| api.gatekeeper().roll().name(&edit.by).to_owned()).as_deref()),
        full => full,
        pending => status == Status::Pending,
        // Without a reason the console rejects nothing; what the rule adds to that is about approvals.
        approve_needs_reason => matches!(
            row.terms.decision.require_reason,
            RequireReason::Approve | RequireReason::Both
        ),
        grants => grant::offers(row)
            .into_iter()
            .map(|scope| {
                let offer = phrases.grant(scope);
                context! { scope => offer.scope, label => offer.label }
            })
            .collect::<Vec<Value>>(),
        by_grant => match &row.progress.basis {
            Some(Basis::Grant(id)) => phrases.facts.by_grant.replace("{grant}", id.as_str()),
            Some(Basis::BreakGlass(broken)) => api.gatekeeper().roll().name(&broken.person).to_owned(),
            None => String::new(),
        },
        once_more => row.terms.decision.confirm_step,
        takes_code => row.terms.decision.step_up.code,
        broken => authority::broken(row).is_some(),
        authority => authority::facts(row, &api.gatekeeper().roll(), phrases, api.zone())
            .into_iter()
            .map(|fact| context! { label => fact.label, value => fact.value.to_string() })
            .collect::<Vec<Value>>(),
        stage => inert_or(stage.name),
        stage_at => stage.at + 1,
        stage_count => stage.count,
    };
    let votes: Vec<Value> = dossier
        .votes
        .iter()
        .map(|vote| {
            context! {
                person => inert(&voice(vote, &api.gatekeeper().roll(), &phrases.authority)),
                decision => vote.decision.as_str(),
                at => api.zone().show(vote.at),
                place => inert(vote.channel.as_ref().map_or(vote.surface.as_str(), |channel| channel.as_str())),
                reason => inert_or(vote.reason.as_deref()),
            }
        })
        .collect();
    let cards: Vec<Value> = dossier
        .deliveries
        .iter()
        .map(|card| {
            context! {
                channel => inert(card.channel.as_str()),
                state => card.state.as_str(),
                error => inert_or(card.error.as_deref()),
            }
        })
        .collect();
    context! {
        votes => votes,
        cards => cards,
        said => said.map(|key| Inert::new(phrases.reply(key)).to_string()),
        tone => said.map(|key| if key.starts_with("settled") || key.starts_with("counted") { "good" } else { "bad" }),
        ..facts
    }
}

/// One of our own sayings; anything else that stands in an address is not shown.
fn words(key: &str) -> Option<&'static str> {
    REPLIES.into_iter().find(|known| *known == key)
}

/// The address of a request's page that says what came of a vote, seen from the act below it.
pub fn after(id: &str, said: &Said) -> String {
    format!("../{id}?said={}", said.key)
}

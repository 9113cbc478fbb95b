//! `GET /console/`: what waits for a person in the operator's organisation.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use gatepost_channel::Decision;
use minijinja::{Value, context};

use super::page::{inert, inert_or, show};
use super::session::Session;
use super::{Visitor, refusal};
use crate::confirmation::roll::Roll;
use crate::confirmation::together::together;
use crate::confirmation::{Dossier, Status};
use crate::delivery::phrase::Language;
use crate::http::Api;
use crate::storage::ConfirmationFilter;

/// Requests on the page.
const MOST: usize = 100;

/// Shows it.
pub async fn page(State(api): State<Api>, Visitor(session): Visitor) -> Response {
    let filter = ConfirmationFilter {
        orgs: vec![session.operator.org.clone()],
        status: vec![Status::Pending],
        limit: MOST,
        ..ConfirmationFilter::default()
    };
    let page = match api.gatekeeper().store().read().confirmations(&filter).await {
        Ok(page) => page,
        Err(error) => return refusal(&api, error.into()),
    };
    let operator = &session.operator;
    let roll = match api.gatekeeper().roll_for(&operator.org, &operator.id, None).await {
        Ok((roll, _)) => roll,
        Err(error) => return refusal(&api, error.into()),
    };
    let first = |dossier: &Dossier| {
        let set = dossier.confirmation.set.as_ref();
        set.map(|set| set.first.to_string())
    };
    let items: Vec<Value> = together(page.items, first)
        .iter()
        .map(|(set, dossier)| context! { set => set, ..item(&api, &session, &roll, dossier) })
        .collect();
    show(
        &api,
        Some(&session),
        StatusCode::OK,
        ("inbox.html", "./"),
        context! { items => items, more => page.next_cursor.is_some() },
    )
}

fn item(api: &Api, session: &Session, roll: &Roll, dossier: &Dossier) -> Value {
    let row = &dossier.confirmation;
    let phrases = api.gatekeeper().maker().phrases(Language::En);
    context! {
        id => row.id.as_str(),
        tool => inert(row.asked.tool.as_str()),
        reason => inert_or(row.reason.as_deref()),
        risk => row.terms.risk.map(|risk| context! { level => risk.as_str(), words => phrases.risk(risk) }),
        token => inert(row.asked.token.as_str()),
        agent => inert_or(row.asked.agent_id.as_deref()),
        requester => inert_or(row.asked.requester.as_deref()),
        expires_at => api.zone().show(row.expires_at),
        approvals => approvals(dossier),
        quorum => row.terms.quorum,
        mine => roll.may_decide(&session.operator.id, &row.org, &row.in_force(), api.clock().now()),
    }
}

/// How many approved so far.
pub fn approvals(dossier: &Dossier) -> usize {
    dossier
        .standing_votes()
        .iter()
        .filter(|vote| vote.decision == Decision::Approve)
        .count()
}

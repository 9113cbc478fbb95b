//! `POST /api/jobs/{id}/answer`: gives a parked job what it asked for.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::view;
use crate::audit::Opening;
use crate::http::Api;
use crate::http::auth::JobPerson;
use crate::http::body::{self, Members};
use crate::http::problem::{Code, Problem};
use crate::http::v1::WhichJob;
use crate::job::answer::{Answer, Answered};
use crate::job::cancel::By;
use crate::job::view::JobView;

/// Answers it.
pub async fn handle(
    State(api): State<Api>,
    person: JobPerson,
    WhichJob(job): WhichJob,
    mut members: Members,
) -> Result<Json<JobView>, Problem> {
    let answer = members.required("answer")?;
    let question = members.name("question_id")?;
    members.finish()?;
    let desk = api.desk().ok_or_else(|| Problem::new(Code::NotInstalled))?;
    let gatekeeper = api.gatekeeper();
    let (org, by) = person.acts();
    let roll = match &by {
        By::Operator(operator) => gatekeeper.roll_for(&org, operator, None).await?.0,
        By::Token(_) => Arc::clone(gatekeeper.roll()),
    };
    let known = gatekeeper.store().read().job(&job).await?;
    let answer = Answer {
        job,
        org,
        by,
        answer: Opening::new(&answer, &**gatekeeper.ids()),
        question,
        hear: desk.hear(),
        confirmations: known.map(|job| job.confirmations).unwrap_or_default(),
        roll,
    };
    match gatekeeper.store().run(answer).await? {
        Answered::Done(job) => Ok(Json(view(&api, &job))),
        Answered::DecidedByRequest => Err(Problem::new(Code::NotAwaitingAnswer)
            .because("this wait is decided through its confirmation request")),
        Answered::NotWaiting => Err(Problem::new(Code::NotAwaitingAnswer)),
        Answered::Closed => Err(Problem::new(Code::QuestionClosed)
            .because("the question of this `question_id` is not open; read the job for the one that is")),
        Answered::Ambiguous => Err(Problem::new(Code::QuestionIdNeeded).because(
            "the job asked for an outcome before, so `not_done` must name the question that it is for: read the job and send \
             its `question_id`",
        )),
        Answered::NotAllowed => Err(Problem::forbidden(
            "operator_needed",
            "only an operator may answer this",
        )),
        Answered::NotADecider => Err(Problem::forbidden(
            "not_a_decider",
            "`not_done` sends the approved call again, so it takes a person who may approve it",
        )),
        Answered::NotAnAnswer => Err(body::wrong(
            "answer",
            "words, or `done` or `not_done` where an outcome is asked for",
        )),
        Answered::NotFound => Err(Problem::not_found()),
    }
}

//! `POST /api/jobs/{id}/cancel`: the run is no longer wanted; its open requests go with it.

use axum::Json;
use axum::extract::State;

use super::view;
use crate::http::Api;
use crate::http::auth::JobPerson;
use crate::http::body::Members;
use crate::http::problem::{Code, Problem};
use crate::http::v1::WhichJob;
use crate::job::cancel::{Cancel, Cancelled};
use crate::job::family::Family;
use crate::job::view::JobView;

/// How often a job that keeps asking is read again.
const TRIES: usize = 8;

/// Cancels it. A second time is fine.
pub async fn handle(
    State(api): State<Api>,
    person: JobPerson,
    WhichJob(id): WhichJob,
    members: Members,
) -> Result<Json<JobView>, Problem> {
    members.finish()?;
    let store = api.gatekeeper().store();
    let (org, by) = person.acts();
    for _ in 0..TRIES {
        let job = store.read().job(&id).await?.ok_or_else(Problem::not_found)?;
        let family = Family::of(store.read(), &job).await?;
        let cancel = Cancel {
            family,
            job: id.clone(),
            org: org.clone(),
            by: by.clone(),
            confirmations: job.confirmations,
            parent: job.parent,
        };
        match store.run(cancel).await? {
            Cancelled::Done(job) => return Ok(Json(view(&api, &job))),
            Cancelled::TooLate(job) => {
                return Err(Problem::new(Code::JobEnded).with("job_status", job.state.status().as_str()));
            }
            Cancelled::Moved => {}
            Cancelled::NotFound => return Err(Problem::not_found()),
        }
    }
    Err(Problem::new(Code::Unavailable)
        .because("the job keeps moving; try again")
        .retry_after(1))
}

//! Jobs over HTTP.

use crate::http::Api;
use crate::http::auth::Reader;
use crate::http::problem::Problem;
use crate::ids::JobId;
use crate::job::Job;
use crate::job::answer::{Hear, Question};
use crate::job::progress::Feed;
use crate::job::view::{Activity, JobView};

pub mod answer;
pub mod cancel;
pub mod events;
pub mod list;
pub mod show;
pub mod submit;

#[cfg(test)]
pub(crate) mod job_tests;

/// What the API needs of whoever runs jobs: which pieces there are, and what stands in the memory of a run.
pub trait Desk: Send + Sync {
    /// The movement in which a piece starts; `None` when there is no such piece.
    fn entrance(&self, piece: &str) -> Option<String>;

    /// Puts an answer into a memory.
    fn hear(&self) -> Hear;

    /// What a parked run asks its user.
    fn question(&self, job: &Job) -> Option<Question>;

    /// What goes on in the runs of this process, for those who watch.
    fn feed(&self) -> Option<&Feed>;

    /// What goes on in a run.
    fn activity(&self, job: &Job) -> Option<Activity>;
}

/// Shows a job.
pub fn view(api: &Api, job: &Job) -> JobView {
    let question = job.state.wait_reason().and_then(|_| api.desk()?.question(job));
    let (question, question_id) = question.map(|question| (question.text, question.id)).unzip();
    JobView {
        question,
        question_id,
        ..JobView::from(job)
    }
}

/// Shows a job with what goes on in it.
pub fn whole_view(api: &Api, job: &Job) -> JobView {
    JobView {
        activity: api.desk().and_then(|desk| desk.activity(job)),
        ..view(api, job)
    }
}

/// The job, if this reader may know of it.
async fn known(api: &Api, reader: &Reader, id: &JobId) -> Result<Job, Problem> {
    api.gatekeeper()
        .store()
        .read()
        .job(id)
        .await?
        .filter(|job| job.org == *reader.org())
        .filter(|job| match reader {
            Reader::Agent(agent) => job.token == agent.caller.token,
            Reader::Operator(_) | Reader::Auditor(_) => true,
        })
        .ok_or_else(Problem::not_found)
}

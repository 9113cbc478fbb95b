//! What the API needs of the agents.

use crate::agent::Desk;
use crate::http::v1::job;
use crate::job::Job;
use crate::job::answer::{Hear, Question};
use crate::job::progress::Feed;
use crate::job::view::Activity;

impl job::Desk for Desk {
    fn entrance(&self, piece: &str) -> Option<String> {
        self.entrance(piece).map(str::to_owned)
    }

    fn hear(&self) -> Hear {
        self.hear()
    }

    fn activity(&self, job: &Job) -> Option<Activity> {
        self.activity(job)
    }

    fn feed(&self) -> Option<&Feed> {
        self.feed()
    }

    fn question(&self, job: &Job) -> Option<Question> {
        self.question(job)
    }
}

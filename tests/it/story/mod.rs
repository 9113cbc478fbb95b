//! The stories of the main job, one file each: what must be true from the question to the execution, over real HTTP and
//! on every store. [`crate::support::world`] is where they play.

/// Runs stories on every store.
macro_rules! on_every_store {
    ($($story:ident),+ $(,)?) => {
        mod sqlite {
            use crate::support::world::Storage;
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $story() {
                super::$story(Storage::Sqlite).await;
            })+
        }
        mod postgres {
            use crate::support::world::Storage;
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $story() {
                super::$story(Storage::Postgres).await;
            })+
        }
    };
}

mod after;
mod approve;
mod authority;
mod batch;
mod batch_after;
mod body;
mod bug_input;
mod caller;
mod canary;
mod command;
mod company;
mod connected;
mod connected_forms;
mod crash;
mod crash_batch;
mod crash_family;
mod crash_job;
mod crash_pair;
mod crash_write;
mod deadline;
mod demand;
mod edits;
mod forms;
mod hook;
mod job;
mod mcp;
mod openapi;
mod outbox;
mod people;
mod quorum;
mod race;
mod refused_click;
mod reject;
mod rewrite;
mod tamper;
mod unopened;

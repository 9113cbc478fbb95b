//! The store: whole transactions in, acknowledged after the commit. The only room that knows SQL.
//!
//! A [`Transaction`] is a value from another room: it names the rows it touches and changes them in memory, in a
//! [`Workspace`], with pure code. The store does the rest, the same way on both databases:
//!
//! 1. the writer takes what is queued (at most 256, no timer) as one batch;
//! 2. it opens a writing transaction, locks the chain heads in order of organisation, then the requests, then the jobs, and
//!    reads what the batch touches, set-wise;
//! 3. it reads the clock, and lets each item change the workspace in the order of arrival;
//! 4. it writes the changed rows set-wise, each status change guarded by the conditional UPDATE, and commits;
//! 5. only then it answers the items and wakes who waits.
//!
//! A batch that fails is repeated item by item, so one bad item never fails its neighbours. [`sqlite`] and [`postgres`] hold
//! the two backends; `conformance` is the one suite that both must pass.

use std::sync::Arc;

use tokio::sync::oneshot;

mod batch;
#[cfg(test)]
mod conformance;
mod cursor;
mod difference;
mod gather;
#[cfg(test)]
pub mod memory;
mod migrate;
pub mod note;
pub mod open;
mod postgres;
pub mod read;
mod reader;
mod rows;
mod select;
mod sql;
mod sqlite;
pub mod tally;
pub mod wake;
mod wanted;
pub mod workspace;

pub use note::{Note, NoteKey, NoteKind};
pub use open::{ClockOffset, OpenError, Settings, open};
pub use read::{AuditFilter, ConfirmationFilter, Counts, GrantFilter, JobFilter, Page, Read, ReadError};
pub use tally::{Mark, Tally, TallyKey};
pub use wake::{Wake, Wakes};
pub use workspace::{
    CallKey, ChangedConfirmation, Changes, GrantKey, Loaded, ReplayKey, ReplayRow, TokenHash, Touches,
    TwinKey, Workspace,
};

/// A store did not do what it was asked; nothing of the item was kept.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The queue before the writer is full: ask again later.
    #[error("the store is overloaded")]
    Overloaded,
    /// The store is stopping or its writer is gone.
    #[error("the store is closed")]
    Closed,
    /// The database refused or could not be reached; the text is the driver's, without values.
    #[error("the database failed: {0}")]
    Database(String),
    /// A row does not make sense.
    #[error("row {id} of {table} is inconsistent: {what}")]
    Inconsistent {
        /// The table.
        table: &'static str,
        /// The row.
        id: String,
        /// What is wrong with it.
        what: String,
    },
    /// The item's own code panicked; it was rolled back.
    #[error("the transaction {0} panicked")]
    Panicked(&'static str),
}

/// One whole transaction: what it touches, and what it does to it.
///
/// `apply` must check first and change afterwards: an item that refuses leaves the workspace as it found it. It may run twice
/// (a failed batch is repeated), so it takes `&self` and everything it draws (ids, tokens) was drawn when it was made.
pub trait Transaction: Send + Sync + 'static {
    /// What the caller hears after the commit.
    type Answer: Send + 'static;

    /// For logs and metrics.
    const NAME: &'static str;

    /// Names the rows to lock and read.
    fn touches(&self, touches: &mut Touches);

    /// Changes the workspace. Time is [`Workspace::now`].
    fn apply(&self, workspace: &mut Workspace) -> Self::Answer;
}

/// A transaction on its way through a writer, its answer type hidden.
pub trait Item: Send {
    /// See [`Transaction::NAME`].
    fn name(&self) -> &'static str;
    /// See [`Transaction::touches`].
    fn touches(&self, touches: &mut Touches);
    /// Runs it and keeps the answer back until [`Item::acknowledge`].
    fn apply(&mut self, workspace: &mut Workspace);
    /// The commit stands: hands out the answer.
    fn acknowledge(self: Box<Self>);
    /// Nothing was kept.
    fn fail(self: Box<Self>, error: StoreError);
}

struct Waiting<T: Transaction> {
    transaction: T,
    answer: Option<T::Answer>,
    reply: oneshot::Sender<Result<T::Answer, StoreError>>,
}

impl<T: Transaction> Item for Waiting<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn touches(&self, touches: &mut Touches) {
        self.transaction.touches(touches);
    }

    fn apply(&mut self, workspace: &mut Workspace) {
        self.answer = Some(self.transaction.apply(workspace));
    }

    fn acknowledge(self: Box<Self>) {
        let answer = self.answer.ok_or(StoreError::Closed);
        // The caller may have gone; the commit stands all the same.
        drop(self.reply.send(answer));
    }

    fn fail(self: Box<Self>, error: StoreError) {
        drop(self.reply.send(Err(error)));
    }
}

/// The writing side of a backend: a bounded queue before one writer.
pub trait Writer: Send + Sync {
    /// Queues an item; a full queue refuses at once.
    fn submit(&self, item: Box<dyn Item>) -> Result<(), Refused>;
}

/// A writer did not take an item.
pub struct Refused {
    /// The item, to be failed by the caller.
    pub item: Box<dyn Item>,
    /// Why.
    pub error: StoreError,
}

/// A store: one writer, readers apart, and the wake-ups that follow a commit. Clones share it.
#[derive(Clone)]
pub struct Store {
    writer: Arc<dyn Writer>,
    reader: Arc<dyn Read>,
    wakes: Wakes,
}

impl Store {
    /// Puts a backend together.
    pub fn new(writer: Arc<dyn Writer>, reader: Arc<dyn Read>, wakes: Wakes) -> Self {
        Self {
            writer,
            reader,
            wakes,
        }
    }

    /// Runs a transaction; the answer comes after the commit. A caller that stops waiting does not undo it.
    pub async fn run<T: Transaction>(&self, transaction: T) -> Result<T::Answer, StoreError> {
        let (reply, answer) = oneshot::channel();
        let item = Box::new(Waiting {
            transaction,
            answer: None,
            reply,
        });
        if let Err(Refused { item, error }) = self.writer.submit(item) {
            item.fail(error);
        }
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    /// The reading side.
    pub fn read(&self) -> &dyn Read {
        &*self.reader
    }

    /// What wakes who waits.
    pub const fn wakes(&self) -> &Wakes {
        &self.wakes
    }
}

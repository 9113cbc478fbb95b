//! Absences that people set themselves: what a caller may set, what holds, and the roll with all of it as it is now.

use std::sync::Arc;
use std::time::Duration;

use gatepost_channel::UtcMillis;
use tracing::warn;

use super::Gatekeeper;
use crate::audit::Actor;
use crate::confirmation::away::{AwayRefusal, SetAway, Span, Wish, spans_of};
use crate::confirmation::roll::Roll;
use crate::ids::{OperatorId, Org};
use crate::lifecycle::Tasks;
use crate::storage::{NoteKind, StoreError};

/// How old what is only shown may be, where another process set it.
const LOOK: Duration = Duration::from_secs(5);

/// One absence, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Whose.
    pub person: OperatorId,
    /// Its first instant.
    pub from: UtcMillis,
    /// The first instant after it.
    pub until: UtcMillis,
    /// Who acts meanwhile.
    pub substitute: OperatorId,
    /// Whether the configuration has it, and not the person.
    pub configured: bool,
}

impl Gatekeeper {
    /// Who may decide now: the configuration, with the absences that people set themselves just read. Decisions and permits are judged
    /// by this one.
    ///
    /// # Errors
    /// The store failed: nobody knows who acts for whom.
    pub async fn roll_now(&self) -> Result<Arc<Roll>, StoreError> {
        let live = &self.0.roll;
        if !live.takes_absences() {
            return Ok(live.get());
        }
        let notes = self.store().read().notes(NoteKind::Absence).await?;
        Ok(live.lay(notes))
    }

    /// Sets or ends an absence of one person.
    ///
    /// # Errors
    /// The store failed: nothing was changed.
    pub async fn set_away(
        &self,
        org: &Org,
        person: &OperatorId,
        by: Actor,
        wish: Wish,
    ) -> Result<Result<Span, AwayRefusal>, StoreError> {
        let set = SetAway {
            org: org.clone(),
            person: person.clone(),
            by,
            wish,
            roll: self.roll_now().await?,
        };
        let done = self.store().run(set).await?;
        // What only shows need not wait for the next look.
        self.roll_now().await?;
        Ok(done)
    }

    /// The absences in an organisation that are not over, in order of person and time.
    ///
    /// # Errors
    /// The store failed.
    pub async fn absences(&self, org: &Org) -> Result<Vec<Listed>, StoreError> {
        let roll = self.roll_now().await?;
        let now = self.store().read().now().await?;
        let notes = self.store().read().notes(NoteKind::Absence).await?;
        let mut listed = Vec::new();
        for person in self.people().of_org(org) {
            for span in roll.absences().configured(person.as_str()) {
                listed.push(Listed {
                    person: person.clone(),
                    from: span.from,
                    until: span.until,
                    substitute: OperatorId(span.substitute.clone()),
                    configured: true,
                });
            }
            let own = notes
                .iter()
                .filter(|note| note.key.org == *org && note.name == person.0);
            let may_name = roll.absences().may_name(person.as_str());
            let spans = own.flat_map(spans_of);
            // What the configuration no longer lets them do has no effect, and is not shown as if it had.
            for span in spans.filter(|span| may_name.contains(&span.substitute.0)) {
                listed.push(Listed {
                    person: person.clone(),
                    from: span.from,
                    until: span.until,
                    substitute: span.substitute,
                    configured: false,
                });
            }
        }
        listed.retain(|absence| absence.until > now);
        listed.sort_by(|one, other| (&one.person, one.from).cmp(&(&other.person, other.from)));
        Ok(listed)
    }

    /// Reads what other processes set, until the server stops: for what only shows it.
    pub async fn follow_absences(self, tasks: Tasks) {
        if !self.0.roll.takes_absences() {
            return;
        }
        loop {
            if let Err(error) = self.roll_now().await {
                warn!(%error, "the absences of operators could not be read");
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = tasks.stopping() => return,
            }
        }
    }

    /// The one person whom a word means: an operator's id, e-mail address, platform identity, or name as cards show it. Nobody where
    /// several are meant.
    pub fn meant(&self, org: &Org, word: &str) -> Option<OperatorId> {
        let word = word.trim();
        if let [one] = self.people().named(org, word) {
            return Some(one.clone());
        }
        let roll = self.roll();
        let mut called = self
            .people()
            .of_org(org)
            .filter(|person| roll.name(person).to_lowercase() == word.to_lowercase());
        let first = called.next()?.clone();
        called.next().is_none().then_some(first)
    }
}

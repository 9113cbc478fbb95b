//! From the rows that a backend found to what a workspace is made over. This file must not know SQL.

use std::collections::{BTreeMap, HashSet};

use gatepost_channel::UtcMillis;

use super::rows::grant::GrantRow;
use super::rows::log::{HeadRow, ReplayMemory, TallyRow};
use super::rows::note::NoteRow;
use super::rows::request::{ConfirmationRow, DeliveryRow, VoteRow};
use super::rows::work::{JobRow, OutboxRow};
use super::rows::{Site, parse_all};
use super::{CallKey, Loaded, StoreError, Touches, TwinKey};
use crate::confirmation::{Delivery, Dossier, State, Vote};
use crate::delivery::OutboxItem;
use crate::ids::{ConfirmationId, JobId, OutboxId};
use crate::job::{Job, JobState};

/// What a row that was found is. The words stand in the loading statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Confirmation,
    Vote,
    Delivery,
    Job,
    Outbox,
    Head,
    Replay,
    Grant,
    Tally,
    Note,
}

impl Kind {
    /// Reads the word.
    pub(super) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "confirmation" => Self::Confirmation,
            "vote" => Self::Vote,
            "delivery" => Self::Delivery,
            "job" => Self::Job,
            "outbox" => Self::Outbox,
            "chain_head" => Self::Head,
            "replay" => Self::Replay,
            "standing_grant" => Self::Grant,
            "tally" => Self::Tally,
            "note" => Self::Note,
            _ => return None,
        })
    }
}

/// The ids that the store itself chose, by its clock; in the order in which they are served.
#[derive(Debug, Default, Clone)]
pub(super) struct Due {
    pub(super) confirmations: Vec<String>,
    pub(super) outbox: Vec<String>,
    pub(super) runnable: Vec<String>,
    pub(super) stranded: Vec<String>,
}

/// A request's rows, put together.
#[derive(Debug, Default)]
pub(super) struct Dossiers {
    requests: Vec<ConfirmationRow>,
    votes: BTreeMap<String, Vec<Result<Vote, StoreError>>>,
    cards: BTreeMap<String, Vec<Result<Delivery, StoreError>>>,
}

impl Dossiers {
    /// Takes rows of the three kinds.
    pub(super) fn take(&mut self, kind: Kind, body: &str) -> Result<(), StoreError> {
        match kind {
            Kind::Confirmation => self.requests.extend(parse_all("confirmation", body)?),
            Kind::Vote => {
                for row in parse_all::<VoteRow>("vote", body)? {
                    let votes = self.votes.entry(row.confirmation.clone()).or_default();
                    votes.push(row.read());
                }
            }
            Kind::Delivery => {
                for row in parse_all::<DeliveryRow>("delivery", body)? {
                    let cards = self.cards.entry(row.confirmation.clone()).or_default();
                    cards.push(row.read());
                }
            }
            Kind::Job | Kind::Outbox | Kind::Head | Kind::Replay | Kind::Grant | Kind::Tally | Kind::Note => {
            }
        }
        Ok(())
    }

    /// One dossier for each request, in the order in which the requests were taken; with its id, for the log.
    pub(super) fn read(mut self) -> Vec<(String, Result<Dossier, StoreError>)> {
        let mut seen = HashSet::new();
        std::mem::take(&mut self.requests)
            .into_iter()
            .map(|row| {
                let id = row.id.clone();
                // Its votes and cards went to the first: a second one would stand in its place without them.
                let dossier = if seen.insert(id.clone()) {
                    self.dossier(row)
                } else {
                    Err(Site::new("confirmation", &id).fault("read twice"))
                };
                (id, dossier)
            })
            .collect()
    }

    fn dossier(&mut self, row: ConfirmationRow) -> Result<Dossier, StoreError> {
        let votes = self.votes.remove(&row.id).unwrap_or_default();
        let cards = self.cards.remove(&row.id).unwrap_or_default();
        let mut votes = votes.into_iter().collect::<Result<Vec<_>, _>>()?;
        votes.sort_by(|a, b| (a.at, &a.person, a.content.edit).cmp(&(b.at, &b.person, b.content.edit)));
        let mut deliveries = cards.into_iter().collect::<Result<Vec<_>, _>>()?;
        deliveries.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(Dossier {
            confirmation: row.read()?,
            votes,
            deliveries,
        })
    }
}

/// What came of putting rows together.
pub(super) struct Gathered {
    /// For the workspace.
    pub(super) loaded: Loaded,
    /// Rows that make no sense and were passed over, because the store itself had chosen them.
    pub(super) spoiled: Vec<String>,
}

/// Puts the rows of a batch together. A senseless row that an item named is an error; one that the store chose is passed over
/// and logged, so that it does not stop the others.
pub(super) fn gather(
    touches: &Touches,
    now: UtcMillis,
    rows: &[(Kind, String)],
    due: &Due,
) -> Result<Gathered, StoreError> {
    let mut sieve = Sieve::new(touches);
    let mut loaded = Loaded {
        now,
        ..Loaded::default()
    };
    let mut dossiers = Dossiers::default();
    for (kind, body) in rows {
        match kind {
            Kind::Confirmation | Kind::Vote | Kind::Delivery => dossiers.take(*kind, body)?,
            Kind::Job => {
                for row in parse_all::<JobRow>("job", body)? {
                    let id = row.id.clone();
                    loaded.jobs.extend(sieve.keep(&id, row.read())?);
                }
            }
            Kind::Outbox => {
                for row in parse_all::<OutboxRow>("outbox", body)? {
                    let id = row.id.clone();
                    loaded.outbox.extend(sieve.keep(&id, row.read())?);
                }
            }
            Kind::Head => {
                for row in parse_all::<HeadRow>("chain_head", body)? {
                    loaded.heads.push(row.read()?);
                }
            }
            Kind::Replay => {
                for row in parse_all::<ReplayMemory>("replay", body)? {
                    loaded.replays.push(row.read()?);
                }
            }
            Kind::Grant => {
                for row in parse_all::<GrantRow>("standing_grant", body)? {
                    // One that makes no sense lets nothing run, and stops nobody.
                    match row.read() {
                        Ok(grant) => loaded.grants.push(grant),
                        Err(error) => tracing::error!(%error, "a grant makes no sense and is passed over"),
                    }
                }
            }
            Kind::Tally => {
                for row in parse_all::<TallyRow>("tally", body)? {
                    loaded.tallies.push(row.read()?);
                }
            }
            Kind::Note => {
                for row in parse_all::<NoteRow>("note", body)? {
                    loaded.notes.push(row.read()?);
                }
            }
        }
    }
    for (id, dossier) in dossiers.read() {
        loaded.dossiers.extend(sieve.keep(&id, dossier)?);
    }
    name_calls(touches, &mut loaded);
    name_twins(touches, &mut loaded);
    choose(due, &mut loaded, &mut sieve);
    Ok(Gathered {
        loaded,
        spoiled: sieve.spoiled,
    })
}

/// Decides whether a senseless row is an error or is passed over.
struct Sieve {
    lenient: bool,
    named: HashSet<String>,
    spoiled: Vec<String>,
}

impl Sieve {
    fn new(touches: &Touches) -> Self {
        let named = touches.confirmations.iter().map(ConfirmationId::as_str);
        let named = named.chain(touches.jobs.iter().map(JobId::as_str));
        let named = named.chain(touches.outbox.iter().map(OutboxId::as_str));
        Self {
            lenient: chooses(touches),
            named: named.map(str::to_owned).collect(),
            spoiled: Vec::new(),
        }
    }

    fn keep<T>(&mut self, id: &str, read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        match read {
            Ok(value) => Ok(Some(value)),
            Err(error) if !self.lenient => Err(error),
            Err(error) => {
                if self.named.contains(id) {
                    return Err(error);
                }
                tracing::error!(id, %error, "a row makes no sense and is passed over");
                self.spoiled.push(id.to_owned());
                Ok(None)
            }
        }
    }
}

/// Whether the store itself chooses rows for this batch.
pub(super) const fn chooses(touches: &Touches) -> bool {
    touches.due_confirmations + touches.due_outbox + touches.runnable_jobs + touches.stranded_jobs > 0
}

fn name_calls(touches: &Touches, loaded: &mut Loaded) {
    if touches.calls.is_empty() {
        return;
    }
    for Dossier { confirmation, .. } in &loaded.dossiers {
        let asked = &confirmation.asked;
        let Some(call) = &asked.tool_call_id else {
            continue;
        };
        let key = CallKey {
            org: confirmation.org.clone(),
            token: asked.token.clone(),
            session: asked.session_id.clone().unwrap_or_default(),
            call: call.clone(),
        };
        if touches.calls.contains(&key) {
            loaded.calls.push((key, confirmation.id.clone()));
        }
    }
}

fn name_twins(touches: &Touches, loaded: &mut Loaded) {
    if touches.twins.is_empty() {
        return;
    }
    let mut newest: BTreeMap<TwinKey, (UtcMillis, ConfirmationId)> = BTreeMap::new();
    for Dossier { confirmation, .. } in &loaded.dossiers {
        let open = match &confirmation.state {
            State::Pending => true,
            state @ State::Approved { .. } => state.consumed().is_none(),
            State::Rejected { .. }
            | State::Expired { .. }
            | State::Cancelled { .. }
            | State::Undeliverable { .. } => false,
        };
        let asked = &confirmation.asked;
        let key = TwinKey {
            org: confirmation.org.clone(),
            token: asked.token.clone(),
            session: asked.session_id.clone().unwrap_or_default(),
            digest: *asked.digest.as_bytes(),
        };
        if !open || !touches.twins.contains(&key) {
            continue;
        }
        let found = (confirmation.created_at, confirmation.id.clone());
        let newest = newest.entry(key).or_insert_with(|| found.clone());
        if *newest < found {
            *newest = found;
        }
    }
    loaded
        .twins
        .extend(newest.into_iter().map(|(key, (_, id))| (key, id)));
}

/// Lists what the store chose, as far as it could be read and is still due: between choosing and locking, others were at work.
fn choose(due: &Due, loaded: &mut Loaded, sieve: &mut Sieve) {
    let now = loaded.now;
    let requests: BTreeMap<&str, &Dossier> = loaded
        .dossiers
        .iter()
        .map(|d| (d.confirmation.id.as_str(), d))
        .collect();
    let jobs: BTreeMap<&str, &Job> = loaded.jobs.iter().map(|job| (job.id.as_str(), job)).collect();
    let outbox: BTreeMap<&str, &OutboxItem> = loaded
        .outbox
        .iter()
        .map(|item| (item.id.as_str(), item))
        .collect();
    let expired = |dossier: &&Dossier| {
        let row = &dossier.confirmation;
        row.state == State::Pending && row.expires_at <= now
    };
    let due_confirmations = due
        .confirmations
        .iter()
        .filter_map(|id| requests.get(id.as_str()).copied());
    let due_confirmations = due_confirmations
        .filter(expired)
        .map(|d| d.confirmation.id.clone())
        .collect();
    let known = |ids: &[String], still: fn(&Job, UtcMillis) -> bool| -> Vec<JobId> {
        let known = ids.iter().filter_map(|id| jobs.get(id.as_str()));
        known
            .filter(|job| still(job, now))
            .map(|job| job.id.clone())
            .collect()
    };
    let runnable = known(&due.runnable, |job, now| match &job.state {
        JobState::Queued => job.run_at <= now,
        JobState::Running(lease) => lease.until <= now,
        JobState::WaitingHuman { .. }
        | JobState::WaitingSubtasks { .. }
        | JobState::Completed { .. }
        | JobState::Aborted { .. }
        | JobState::Cancelled
        | JobState::Error { .. } => false,
    });
    let stranded = known(&due.stranded, |job, _| {
        matches!(
            job.state,
            JobState::WaitingHuman { .. } | JobState::WaitingSubtasks { .. }
        ) && !job.waiting_on.is_empty()
    });
    let mut due_outbox = Vec::new();
    for item in due.outbox.iter().filter_map(|id| outbox.get(id.as_str())) {
        let free = item.lease.as_ref().is_none_or(|(_, until)| *until <= now);
        match &item.confirmation {
            Some(request) if sieve.spoiled.iter().any(|spoiled| spoiled == request.as_str()) => {
                // Its request makes no sense: neither does sending it.
                sieve.spoiled.push(item.id.as_str().to_owned());
            }
            Some(request) if !requests.contains_key(request.as_str()) => {}
            _ if free && item.not_before <= now => due_outbox.push(item.id.clone()),
            _ => {}
        }
    }
    loaded.due_confirmations = due_confirmations;
    loaded.due_outbox = due_outbox;
    loaded.runnable_jobs = runnable;
    loaded.stranded_jobs = stranded;
}

//! Sets: like requests that share one message. A set is named by its first request, and a request never changes its set.
//!
//! Each request of a set keeps its own row, votes, cards and button tokens, and is judged as if it stood alone. What they share
//! is the message: the card of a later request names the card of the first as its host, stands where the host stands, and the
//! host's outbox row keeps the whole message true. The store reads a set whole, whichever of its requests is touched.

use std::fmt;
use std::sync::Arc;

use gatepost_channel::{MessageRef, SetCode};
use sha2::{Digest as _, Sha256};

use crate::delivery::button::ServerKey;
use crate::gate::collapse::Collapse;
use crate::gate::{RequireReason, Terms};
use crate::ids::{ConfirmationId, DeliveryId, JobId, Org, OutboxId};
use crate::storage::Workspace;

use super::{Asked, Confirmation, Delivery, DeliveryState, Dossier, Status};

/// What like requests have in common: SHA-256 over organisation, token, agent, session, job, tool, requester, persons behind the
/// call, rule, reason and terms (channels are among them).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Alike([u8; 32]);

impl Alike {
    /// What is common to this request and those like it. `None` if it cannot be spelled: then nothing is like it.
    pub fn of(
        org: &Org,
        asked: &Asked,
        rule: Option<&str>,
        reason: Option<&str>,
        terms: &Terms,
    ) -> Option<Self> {
        let who = (
            &asked.token,
            &asked.agent_id,
            &asked.session_id,
            &asked.job.as_ref().map(JobId::as_str),
        );
        let what = (asked.tool.as_str(), &asked.requester, &asked.persons);
        let spelled = serde_json::to_vec(&(org, who, what, rule, reason, terms)).ok()?;
        Some(Self(Sha256::digest(spelled).into()))
    }

    /// As it was stored.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// To be stored.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// In which set a request is. Never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// What all of the set have in common.
    pub alike: Alike,
    /// The first request of the set, which names it; a request can be the first of its own.
    pub first: ConfirmationId,
}

/// Whether requests fit into one card of each of their channels, every one of them shown whole. Pure; asked under the store's
/// locks, so it must be quick.
pub trait Fits: fmt::Debug + Send + Sync {
    /// Whether these would fit, in this order.
    fn fit(&self, members: &[Dossier]) -> bool;
}

/// Lets a new request join the open set of those like it, or begin one.
#[derive(Debug, Clone)]
pub struct Joining {
    /// What they have in common.
    pub alike: Alike,
    /// Whether they fit.
    pub fits: Arc<dyn Fits>,
}

/// When requests of these terms share a card. Never where an answer needs a reason or may change the arguments: for both, people
/// need the card of one request.
pub fn collapses(terms: &Terms) -> Option<Collapse> {
    let decision = &terms.decision;
    let plain = decision.require_reason == RequireReason::Never && decision.edits.is_none();
    terms
        .decision
        .collapse
        .filter(|collapse| plain && collapse.most > 1)
}

/// Puts the newcomer into the newest set of its like, if that one is open and has room, with its cards beside those of the set;
/// else it is the first of a set of its own. Gives its cards as they are to be stored.
pub(super) fn join(
    workspace: &Workspace,
    joining: &Joining,
    newcomer: &mut Confirmation,
    cards: Vec<Delivery>,
) -> Vec<Delivery> {
    let dossier = Dossier {
        confirmation: newcomer.clone(),
        votes: Vec::new(),
        deliveries: cards,
    };
    let beside = beside(workspace, joining, &dossier);
    let (first, cards) = beside.unwrap_or_else(|| (newcomer.id.clone(), dossier.deliveries));
    let alike = joining.alike;
    newcomer.set = Some(Membership { alike, first });
    cards
}

fn beside(
    workspace: &Workspace,
    joining: &Joining,
    newcomer: &Dossier,
) -> Option<(ConfirmationId, Vec<Delivery>)> {
    let collapse = collapses(&newcomer.confirmation.terms)?;
    let first = &workspace.newest_alike(&joining.alike)?.set.as_ref()?.first;
    let fellows = workspace.set_of(first);
    let now = workspace.now();
    let open = workspace
        .confirmation(first)?
        .created_at
        .0
        .saturating_add(collapse.window_ms)
        > now.0;
    let room = fellows.len() < usize::try_from(collapse.most).unwrap_or(usize::MAX);
    let asks = |row: &Confirmation| row.state.status() == Status::Pending && now < row.expires_at;
    let asks = fellows
        .iter()
        .any(|id| workspace.confirmation(id).is_some_and(asks));
    if !(open && room && asks) {
        return None;
    }
    let mut deliveries = newcomer.deliveries.clone();
    for card in deliveries.iter_mut().filter(|card| card.asks()) {
        let host = workspace
            .deliveries(first)
            .find(|host| host.asks() && host.channel == card.channel)?;
        // Beside a card of unknown standing nobody could say where the newcomer stands; and a message that was taken apart
        // stays so.
        let apart = fellows.iter().filter(|id| *id != first).any(|id| {
            workspace.deliveries(id).any(|other| {
                other.asks() && other.channel == card.channel && other.host.as_ref() != Some(&host.id)
            })
        });
        if host.state == DeliveryState::Failed || host.unheard || apart {
            return None;
        }
        card.host = Some(host.id.clone());
    }
    let mut together: Vec<Dossier> = fellows.iter().filter_map(|id| workspace.dossier(id)).collect();
    together.push(Dossier {
        deliveries: deliveries.clone(),
        ..newcomer.clone()
    });
    joining.fits.fit(&together).then(|| (first.clone(), deliveries))
}

/// The cards that stand in one message with this one, itself among them, in the order in which their requests were asked.
pub fn sharing(
    workspace: &Workspace,
    request: &ConfirmationId,
    card: &DeliveryId,
) -> Vec<(ConfirmationId, DeliveryId)> {
    let Some(card) = workspace.delivery(card) else {
        return Vec::new();
    };
    let host = card.host.as_ref().unwrap_or(&card.id);
    let mut found = Vec::new();
    for id in workspace.set_of(request) {
        let cards = workspace.deliveries(&id);
        let here = cards.filter(|card| card.id == *host || card.host.as_ref() == Some(host));
        found.extend(here.map(|card| (id.clone(), card.id.clone())));
    }
    found
}

/// The card whose outbox row keeps true the message in which this one stands, with its request.
pub(super) fn host(
    workspace: &Workspace,
    request: &ConfirmationId,
    card: DeliveryId,
) -> (ConfirmationId, DeliveryId) {
    let host = workspace.delivery(&card).and_then(|card| card.host.clone());
    let found = host.and_then(|host| {
        let mut sharing = sharing(workspace, request, &host).into_iter();
        sharing.find(|(_, card)| *card == host)
    });
    found.unwrap_or_else(|| (request.clone(), card))
}

/// Whether this message is known to be that of another card of the set, from which this one was taken apart.
pub(super) fn is_of_another(
    workspace: &Workspace,
    request: &ConfirmationId,
    card: &DeliveryId,
    at: &MessageRef,
) -> bool {
    let ours = sharing(workspace, request, card);
    workspace.set_of(request).iter().any(|id| {
        workspace.deliveries(id).any(|other| {
            other.standing.iter().any(|message| message.at == *at)
                && ours.iter().all(|(_, card)| *card != other.id)
        })
    })
}

/// The whole set of a request, in its order; empty when it is alone.
pub fn fellows(workspace: &Workspace, request: &ConfirmationId) -> Vec<Dossier> {
    let set = workspace.set_of(request);
    let alone = set.len() < 2;
    let set = set.iter().filter(|_| !alone);
    set.filter_map(|id| workspace.dossier(id)).collect()
}

/// The outbox row that keeps true the message in which a card stands.
pub fn outbox_row(workspace: &Workspace, card: &DeliveryId) -> OutboxId {
    let host = workspace.delivery(card).and_then(|card| card.host.as_ref());
    OutboxId::of_card(host.unwrap_or(card))
}

/// Names a set as its card shows it: which requests in which order, each with its call and the revision in which it is or was
/// decided. Keyed, so that it does not tell the digests of the calls.
pub fn code<'a>(key: &ServerKey, members: impl IntoIterator<Item = &'a Confirmation>) -> SetCode {
    let spelled: Vec<_> = members
        .into_iter()
        .map(|row| {
            // Settling raises the revision once and takes nothing from what the others were shown.
            let settled = u32::from(row.state.status() != Status::Pending);
            let shown = row.revision.saturating_sub(settled).to_be_bytes();
            (row.id.as_str(), row.call().digest, shown)
        })
        .collect();
    let parts: Vec<&[u8]> = spelled
        .iter()
        .flat_map(|(id, digest, shown)| [id.as_bytes(), digest.as_bytes().as_slice(), shown.as_slice()])
        .collect();
    let mac = key.mac("set", &parts);
    let mut code = [0; 12];
    code.copy_from_slice(&mac[..12]);
    SetCode::new(code)
}

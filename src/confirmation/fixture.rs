//! Requests, votes and clicks for tests of this room.

use std::sync::Arc;

use gatepost_channel::{AppKey, Decision, MessageRef};

use super::create::{Create, Created, shown_args};
use super::decide::{Backing, Ballot, Clicked, Decide, Decided, Insight, Surface, Target};
use super::roll::{Roll, Voter};
use super::set::{Alike, Fits, Joining, collapses};
use super::{Asked, Delivery, DeliveryState, Dossier, Standing};
use crate::delivery::button::{ServerKey, token_hash};
use crate::gate::collapse::Collapse;
use crate::gate::policy::{Approvers, PartialView};
use crate::gate::{Arguments, DecisionTerms, Digest, Terms, ToolName};
use crate::ids::{ChannelName, ConfirmationId, DeliveryId, Ids as _, OperatorId, Org, SeededIds, TokenName};
use crate::storage::ReplayKey;
use crate::storage::memory::Memory;

/// The organisation of everything here.
pub const ORG: &str = "acme";
/// How long requests may be decided, in milliseconds.
pub const TIMEOUT: i64 = 120_000;

/// A store with ids and people.
pub struct World {
    /// The store.
    pub memory: Memory,
    /// Predictable ids.
    pub ids: SeededIds,
    /// Who may decide.
    pub roll: Arc<Roll>,
    presses: u32,
}

/// Terms with this quorum, for two channels.
pub fn terms(quorum: u32) -> Terms {
    Terms {
        channels: vec!["chat-a".into(), "chat-b".into()],
        approvers: Approvers {
            roles: vec!["finance".into()],
            operators: vec![],
            ..Approvers::default()
        },
        also: vec![],
        quorum,
        deny_threshold: 1,
        self_approval: false,
        timeout_ms: TIMEOUT,
        permit_ttl_ms: 3_600_000,
        partial_view: PartialView::Reject,
        risk: None,
        redact: vec![],
        decision: DecisionTerms::default(),
        after: crate::gate::AfterTerms::default(),
    }
}

impl Default for World {
    fn default() -> Self {
        let voter = |id: &str, roles: &[&str]| Voter {
            id: OperatorId::from(id),
            name: id.to_uppercase(),
            orgs: vec![Org::from(ORG)],
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        };
        let people = [
            voter("dana", &["finance"]),
            voter("mira", &["finance"]),
            voter("tomas", &["finance"]),
            voter("ines", &["sales"]),
        ];
        Self {
            memory: Memory::at(1_000_000),
            ids: SeededIds::default(),
            roll: Arc::new(Roll::new(people)),
            presses: 0,
        }
    }
}

/// Every card has room.
#[derive(Debug)]
struct AlwaysFits;

impl Fits for AlwaysFits {
    fn fit(&self, _: &[Dossier]) -> bool {
        true
    }
}

impl World {
    /// A call to pay, ready to be stored.
    pub fn pay(&self, terms: Terms, persons: &[&str]) -> Create {
        let tool: ToolName = "pay".parse().expect("a name");
        let args = Arguments::read(br#"{"amount":60000}"#, crate::gate::json::ReadLimits::bytes(1000))
            .expect("arguments");
        let key = ServerKey::new([7; 32]);
        let deliveries = terms.channels.iter().map(|channel| {
            let id = DeliveryId::fresh(&self.ids);
            let mut nonce = [0; 16];
            self.ids.random(&mut nonce);
            Delivery {
                token_hash: token_hash(&key.button(&id, &nonce)),
                id,
                channel: ChannelName::from(channel.as_str()),
                host: None,
                state: DeliveryState::Queued,
                nonce,
                approvable: true,
                unheard: false,
                told: false,
                lost: 0,
                standing: vec![],
                error: None,
            }
        });
        let shown_args = shown_args(args.canonical(), None, &self.ids);
        Create {
            id: ConfirmationId::fresh(&self.ids),
            org: Org::from(ORG),
            asked: Asked {
                token: TokenName::from("agent"),
                digest: Digest::of(&tool, &args),
                tool,
                args: args.canonical().to_owned(),
                agent_id: None,
                session_id: Some("s1".into()),
                tool_call_id: None,
                requester: None,
                metadata: None,
                persons: persons.iter().map(|person| OperatorId::from(*person)).collect(),
                job: None,
            },
            rule: Some("big".into()),
            reason: None,
            deliveries: deliveries.collect(),
            terms,
            grantors: Some(Arc::clone(&self.roll)),
            collapse: None,
            join_twin: false,
            shown_args,
            shown_requester: None,
        }
    }

    /// A call to pay this amount that may share a card with those like it, at most `most` of them within a minute.
    pub fn alike(&self, terms: Terms, amount: u32, most: u32) -> Create {
        let mut create = self.pay(terms, &[]);
        create.terms.decision.collapse = Some(Collapse {
            window_ms: 60_000,
            most,
        });
        create.asked.args = format!("{{\"amount\":{amount}}}");
        let args = Arguments::read(
            create.asked.args.as_bytes(),
            crate::gate::json::ReadLimits::bytes(1000),
        )
        .expect("arguments");
        create.asked.digest = Digest::of(&create.asked.tool, &args);
        create.shown_args = shown_args(args.canonical(), None, &self.ids);
        let rule = create.rule.as_deref();
        let alike = Alike::of(&create.org, &create.asked, rule, None, &create.terms).expect("it is spelled");
        create.collapse = collapses(&create.terms).map(|_| Joining {
            alike,
            fits: Arc::new(AlwaysFits),
        });
        create
    }

    /// Stores a request whose cards stand on both channels.
    pub fn asked(&mut self, terms: Terms, persons: &[&str]) -> ConfirmationId {
        let create = self.pay(terms, persons);
        let Created::Fresh(dossier) = self.memory.run(&create) else {
            panic!("it is new")
        };
        let id = dossier.confirmation.id;
        for card in &mut self
            .memory
            .dossiers
            .get_mut(&id)
            .expect("it is stored")
            .deliveries
        {
            card.state = DeliveryState::Posted;
            let at = MessageRef {
                chat: card.channel.0.clone(),
                message: format!("m-{}", card.id),
            };
            card.standing.push(Standing {
                at,
                edition: 1,
                minimal: false,
                reader: None,
            });
        }
        id
    }

    /// The request as it is stored.
    pub fn row(&self, id: &ConfirmationId) -> &Dossier {
        &self.memory.dossiers[id]
    }

    /// A press of this person on the card of the channel with this index.
    pub fn press(
        &mut self,
        id: &ConfirmationId,
        channel: usize,
        ballot: Ballot,
        decision: Decision,
    ) -> Decide {
        self.presses += 1;
        let dossier = self.row(id);
        let card = &dossier.deliveries[channel];
        Decide {
            target: Target::Card(Clicked {
                channel: card.channel.clone(),
                org: Org::from(ORG),
                at: card.standing.first().map_or_else(
                    || MessageRef {
                        chat: card.channel.0.clone(),
                        message: "early".into(),
                    },
                    |standing| standing.at.clone(),
                ),
                token: Some(card.token_hash),
                revision: dossier.confirmation.revision,
                replay: ReplayKey {
                    app: AppKey {
                        kind: "fake".into(),
                        id: "app".into(),
                    },
                    key: self.presses.to_string(),
                },
                asks_back: false,
                alone: false,
                set: None,
            }),
            ballot,
            decision,
            reason: None,
            grant: None,
            edit: None,
            seen: None,
            surface: Surface::Card,
            backing: Backing::default(),
            roll: Arc::clone(&self.roll),
            insight: Insight::default(),
        }
    }

    /// Presses it.
    pub fn click(
        &mut self,
        id: &ConfirmationId,
        channel: usize,
        person: &str,
        decision: Decision,
    ) -> Decided {
        let decide = self.press(id, channel, Ballot::Person(OperatorId::from(person)), decision);
        self.memory.run(&decide)
    }

    /// The `reason` of the last refused callback or vote.
    pub fn last_refusal(&self) -> Option<String> {
        let event = self
            .memory
            .events
            .iter()
            .rev()
            .find(|event| event.kind.ends_with(".refused"))?;
        let data: serde_json::Value = serde_json::from_str(&event.data).ok()?;
        data["reason"].as_str().map(str::to_owned)
    }
}

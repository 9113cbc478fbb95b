//! From a request to a neutral card: our words in the channel's language, everybody else's text inert, arguments redacted.

use std::sync::Arc;

use gatepost_channel::{Actions, Asks, Body, Card, Decision, Fact, Inert, Tone, UtcMillis};

use super::arguments;
use super::authority::{self, voice};
use super::button::ServerKey;
use super::escalate;
use super::mention::Mentions;
use super::phrase::{Language, Phrasebook, Phrases};
use super::ran::Ran;
use crate::clock::Zone;
use crate::confirmation::live::LiveRoll;
use crate::confirmation::roll::Roll;
use crate::confirmation::{Basis, Confirmation, Delivery, Dossier, Status, grant, stage};
use crate::gate::policy::PartialView;
use crate::gate::{RequireReason, ShortCode};

/// How a channel is spoken to.
#[derive(Debug, Clone, Default)]
pub struct Voice {
    /// In what words.
    pub language: Language,
    /// By whose clock.
    pub zone: Zone,
}

/// Makes cards. Clones share its parts.
#[derive(Clone)]
pub struct CardMaker {
    phrases: Arc<Phrasebook>,
    key: ServerKey,
    roll: LiveRoll,
    public_url: Option<String>,
    mentions: Arc<Mentions>,
}

/// A request as one person is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Nothing can be pressed on it.
    pub card: Card,
    /// Whether it shows all of the arguments.
    pub whole: bool,
}

impl CardMaker {
    /// A maker for one server. `public_url` is where people reach the console, without a slash at the end.
    pub fn new(
        phrases: Arc<Phrasebook>,
        key: ServerKey,
        roll: impl Into<LiveRoll>,
        public_url: Option<String>,
    ) -> Self {
        Self {
            phrases,
            key,
            roll: roll.into(),
            public_url,
            mentions: Arc::default(),
        }
    }

    /// The same, knowing by what ids people are mentioned.
    #[must_use]
    pub fn mentioning(self, mentions: Mentions) -> Self {
        Self {
            mentions: Arc::new(mentions),
            ..self
        }
    }

    /// By what ids people are mentioned.
    pub fn mentions(&self) -> &Mentions {
        &self.mentions
    }

    /// Who may decide, as far as it is only shown.
    pub fn roll(&self) -> Arc<Roll> {
        self.roll.get()
    }

    /// The words of a language.
    pub fn phrases(&self, language: Language) -> &Phrases {
        self.phrases.of(language)
    }

    /// The server's key.
    pub const fn key(&self) -> &ServerKey {
        &self.key
    }

    /// The card of a request as it stands, for one delivery. `now` tells whether an approval can still be used.
    pub fn card(&self, dossier: &Dossier, delivery: &Delivery, voice: &Voice, now: UtcMillis) -> Card {
        let phrases = self.phrases.of(voice.language);
        let row = &dossier.confirmation;
        let status = row.state.status();
        let actions = if status == Status::Pending && delivery.asks() {
            Actions::Decide {
                token: self.key.button(&delivery.id, &delivery.nonce),
                revision: row.revision,
                approve_when_cut: row.terms.partial_view == PartialView::Approve,
                full_view: self.full_view(row),
                asks: asks(row, phrases),
            }
        } else {
            Actions::None
        };
        self.dress(dossier, (voice, now), actions)
    }

    /// The request for one person who asked for it in words: as its card, with nothing to press. How to answer stands among the
    /// facts; `called` is how the bot was called, and `shows_all` tells whether a card shows all of the arguments.
    pub fn show(
        &self,
        dossier: &Dossier,
        (voice, now): (&Voice, UtcMillis),
        called: &str,
        shows_all: impl Fn(&Card) -> bool,
    ) -> Shown {
        let phrases = self.phrases.of(voice.language);
        let (row, words) = (&dossier.confirmation, &phrases.command);
        let plain = self.dress(dossier, (voice, now), Actions::None);
        if row.state.status() != Status::Pending {
            let whole = shows_all(&plain);
            return Shown { card: plain, whole };
        }
        let code = ShortCode::of(self.key.as_bytes(), &row.call().digest);
        let answered = |how: &str, cut: Option<Fact>| {
            let how = how
                .replace("{command}", called)
                .replace("{id}", row.id.as_str())
                .replace("{code}", code.as_str());
            let how = Fact {
                label: words.to_answer.clone(),
                value: Inert::new(&how),
            };
            let mut card = plain.clone();
            card.facts.splice(0..0, [Some(how), cut].into_iter().flatten());
            card
        };
        // An id names whatever stands; the code names the call as a person changed it.
        let to_approve = if row.terms.decision.confirm_step || row.call().edit > 0 {
            &words.how_to_confirm
        } else {
            &words.how_to_answer
        };
        let card = answered(to_approve, None);
        let whole = shows_all(&card);
        if whole || row.terms.partial_view == PartialView::Approve {
            return Shown { card, whole };
        }
        let place = self.full_view(row).unwrap_or_default();
        let cut = Fact {
            label: words.cut.clone(),
            value: Inert::new(format!("{} {place}", words.approve_elsewhere).trim_end()),
        };
        Shown {
            card: answered(&words.how_to_reject, Some(cut)),
            whole,
        }
    }

    fn dress(&self, dossier: &Dossier, (voice, now): (&Voice, UtcMillis), actions: Actions) -> Card {
        let phrases = self.phrases.of(voice.language);
        let row = &dossier.confirmation;
        let status = row.state.status();
        let title = authority::title(row, phrases)
            .unwrap_or_else(|| phrases.title(status))
            .to_owned();
        Card {
            request_id: row.id.to_string(),
            tone: match status {
                Status::Pending => Tone::Pending,
                Status::Approved => Tone::Approved,
                Status::Rejected => Tone::Rejected,
                Status::Expired | Status::Cancelled | Status::Undeliverable => Tone::Closed,
            },
            risk: row.terms.risk,
            preview: format!("{title} · {}", row.id),
            title,
            tool: Inert::new(row.asked.tool.as_str()).one_line(),
            facts: self.facts(dossier, phrases, &voice.zone, now),
            arguments: arguments(row, phrases),
            actions,
            words: phrases.words(),
            set: None,
        }
    }

    /// The page of a request in the console.
    pub fn full_view(&self, row: &Confirmation) -> Option<String> {
        self.public_url
            .as_ref()
            .map(|url| format!("{url}/console/requests/{}", row.id))
    }

    fn facts(&self, dossier: &Dossier, phrases: &Phrases, zone: &Zone, now: UtcMillis) -> Vec<Fact> {
        let row = &dossier.confirmation;
        let words = &phrases.facts;
        let mut facts = Facts(Vec::new());
        facts.add(&words.risk, row.terms.risk.map(|risk| phrases.risk(risk)));
        facts.add(&words.reason, row.reason.as_deref());
        facts.add(&words.token, Some(row.asked.token.as_str()));
        facts.add(&words.agent, row.asked.agent_id.as_deref());
        facts.add(&words.requester, row.asked.requester.as_deref());
        let pending = row.state.status() == Status::Pending;
        let stage = stage::current(&row.terms, &row.progress);
        if let Some(name) = stage.name.filter(|_| pending) {
            let value = words
                .stage_value
                .replace("{at}", &(stage.at + 1).to_string())
                .replace("{count}", &stage.count.to_string())
                .replace("{name}", name);
            facts.add(&words.stage, Some(&value));
        }
        let votes = dossier.standing_votes();
        let approvals = votes.iter().filter(|vote| vote.decision == Decision::Approve);
        let names: Vec<_> = approvals
            .clone()
            .map(|vote| voice(vote, &self.roll(), &phrases.authority))
            .collect();
        let edit = row.progress.edit.as_ref();
        facts.add(
            &words.edited_by,
            edit.map(|edit| self.roll().name(&edit.by).to_owned()).as_deref(),
        );
        if row.terms.quorum > 1 {
            // While a stage is open, who is asked now matters; afterwards all of them.
            let (have, need) = if pending {
                (stage.approvals(&votes), stage.quorum)
            } else {
                (names.len(), row.terms.quorum)
            };
            let count = words
                .approvals_value
                .replace("{have}", &have.to_string())
                .replace("{need}", &need.to_string());
            let value = if names.is_empty() {
                count
            } else {
                format!("{count}: {}", names.join(", "))
            };
            facts.add(&words.approvals, Some(&value));
        }
        let escalated = escalate::last_taken(row)
            .filter(|_| pending)
            .map(|at| zone.show(at));
        facts.add(&words.escalated, escalated.as_deref());
        facts.0.extend(authority::facts(row, &self.roll(), phrases, zone));
        match row.state.status() {
            Status::Pending => {
                facts.add(&words.expires, Some(&zone.show(row.expires_at)));
                let needed = row.terms.decision.require_reason;
                facts.add(&words.reason_needed, reason_needed(needed, phrases));
                facts.add(
                    &words.edits,
                    row.takes_edits().then_some(words.edits_where.as_str()),
                );
            }
            Status::Approved => {
                let by = match &row.progress.basis {
                    Some(Basis::Grant(id)) => words.by_grant.replace("{grant}", id.as_str()),
                    Some(Basis::BreakGlass(broken)) => self.roll().name(&broken.person).to_owned(),
                    None => names.join(", "),
                };
                facts.add(&words.decided_by, Some(&by));
                let granted = row.progress.granted.as_ref();
                let granted = granted.and_then(|_| grant::agreed(&votes));
                facts.add(
                    &words.granted,
                    granted.map(|scope| phrases.grant(scope).label).as_deref(),
                );
                let why: Vec<_> = approvals.filter_map(|vote| vote.reason.as_deref()).collect();
                facts.add(&words.vote_reason, Some(&why.join("\n")));
            }
            Status::Rejected => {
                let against = votes.iter().filter(|vote| vote.decision == Decision::Reject);
                let (who, why): (Vec<_>, Vec<_>) = against
                    .map(|vote| (voice(vote, &self.roll(), &phrases.authority), vote.reason.clone()))
                    .unzip();
                facts.add(&words.decided_by, Some(&who.join(", ")));
                let why: Vec<_> = why.into_iter().flatten().collect();
                facts.add(&words.vote_reason, Some(&why.join("\n")));
            }
            Status::Expired | Status::Cancelled | Status::Undeliverable => {}
        }
        if let Some(at) = row.state.decided_at() {
            facts.add(&words.decided_at, Some(&zone.show(at)));
        }
        if let Some(ran) = Ran::of(row, now) {
            facts.add(&words.outcome, Some(&phrases.ran(ran, zone)));
        }
        facts.add(
            &words.code,
            Some(ShortCode::of(self.key.as_bytes(), &row.call().digest).as_str()),
        );
        facts.0
    }
}

/// Which answer needs a reason.
fn reason_needed(needed: RequireReason, phrases: &Phrases) -> Option<&str> {
    let words = &phrases.facts;
    match needed {
        RequireReason::Never => None,
        RequireReason::Reject => Some(&words.reason_to_reject),
        RequireReason::Approve => Some(&words.reason_to_approve),
        RequireReason::Both => Some(&words.reason_to_answer),
    }
}

/// The call that people vote on: as it was proposed, or what a person changed and all of it as it is now.
fn arguments(row: &Confirmation, phrases: &Phrases) -> Body {
    let (call, hidden) = (row.call(), &row.terms.redact);
    if call.edit == 0 {
        return arguments::body(call.args, hidden, &phrases.parts);
    }
    arguments::edited(&row.asked.args, call.args, hidden, phrases)
}

/// What an answer to this request needs, in the words of the channel.
fn asks(row: &Confirmation, phrases: &Phrases) -> Asks {
    let terms = &row.terms.decision;
    Asks {
        reason_to_approve: terms.require_reason.of(Decision::Approve),
        reason_to_reject: terms.require_reason.of(Decision::Reject),
        once_more: terms.confirm_step.then(|| phrases.once_more()),
        grants: grant::offers(row)
            .into_iter()
            .map(|scope| phrases.grant(scope))
            .collect(),
        edits: row.takes_edits(),
    }
}

struct Facts(Vec<Fact>);

impl Facts {
    fn add(&mut self, label: &str, value: Option<&str>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.0.push(Fact {
                label: label.to_owned(),
                value: Inert::new(value),
            });
        }
    }
}

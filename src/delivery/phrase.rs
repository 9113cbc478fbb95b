//! The words of cards and replies, per language, from `templates/cards`. A missing or unknown key stops the start.

use std::collections::BTreeMap;

use gatepost_channel::{Decision, GrantOffer, OnceMore, Risk, Words};
use serde::{Deserialize, Serialize};

use super::dialog::DialogPhrases;
use super::ran::Ran;
use crate::clock::Zone;
use crate::confirmation::Status;
use crate::gate::grant::GrantScope;

mod authority;
mod away;

pub use authority::AuthorityWords;
pub use away::AwayWords;

/// A language of cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Chinese, simplified.
    Zh,
    /// Japanese.
    Ja,
}

impl Language {
    /// All of them, with their words.
    pub const ALL: [(Self, &'static str); 3] = [
        (Self::En, include_str!("../../templates/cards/en.json")),
        (Self::Zh, include_str!("../../templates/cards/zh.json")),
        (Self::Ja, include_str!("../../templates/cards/ja.json")),
    ];
}

/// The words of one language.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phrases {
    titles: Titles,
    /// Labels and values of facts.
    pub facts: FactWords,
    /// Words about the right by which somebody answers.
    pub authority: AuthorityWords,
    /// Headings of the parts that arguments are laid out in.
    pub parts: ArgumentWords,
    /// Lines below cards.
    pub thread: ThreadWords,
    layout: LayoutWords,
    /// Answers to words in a chat.
    pub command: CommandWords,
    set: SetWords,
    /// Words of what opens for one person.
    pub dialog: DialogPhrases,
    replies: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Titles {
    pending: String,
    approved: String,
    rejected: String,
    expired: String,
    cancelled: String,
    undeliverable: String,
}

/// Labels and values of facts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each field is the label that its name says")]
pub struct FactWords {
    pub organisation: String,
    pub agent: String,
    pub requester: String,
    pub token: String,
    pub reason: String,
    pub expires: String,
    pub edited_by: String,
    pub edits: String,
    pub edits_where: String,
    pub approvals: String,
    pub approvals_value: String,
    pub stage: String,
    pub stage_value: String,
    pub reason_needed: String,
    pub reason_to_approve: String,
    pub reason_to_reject: String,
    pub reason_to_answer: String,
    pub granted: String,
    pub by_grant: String,
    pub decided_by: String,
    pub decided_at: String,
    pub vote_reason: String,
    pub outcome: String,
    pub not_run: String,
    pub begun: String,
    pub lapsed: String,
    pub succeeded: String,
    pub failed: String,
    pub risk: String,
    pub risk_low: String,
    pub risk_medium: String,
    pub risk_high: String,
    pub risk_critical: String,
    pub escalated: String,
    pub code: String,
}

/// Answers to words in a chat. `{command}` is how the bot was called.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "each field is what its name says")]
pub struct CommandWords {
    /// What can be said.
    pub help: String,
    pub not_understood: String,
    pub nothing_waits: String,
    /// `{count}`.
    pub waits: String,
    /// `{count}`, `{page}`.
    pub more: String,
    /// There are more than are counted.
    pub and_beyond: String,
    pub decide_before: String,
    /// `{verb}`.
    pub which: String,
    pub several: String,
    /// `{verb}`.
    pub other_code: String,
    pub reject_why: String,
    /// Label of how to answer.
    pub to_answer: String,
    /// `{name}`.
    pub how_to_answer: String,
    /// `{name}`.
    pub how_to_reject: String,
    /// `{name}`, `{code}`.
    pub how_to_confirm: String,
    /// Label: not all of it is shown.
    pub cut: String,
    pub approve_elsewhere: String,
    pub too_late: String,
    pub too_many: String,
    pub not_aloud: String,
    /// About absences.
    pub away: AwayWords,
}

/// Headings of the parts that arguments are laid out in; each at most 75 units with a name of 32 characters in it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgumentWords {
    /// A value that is no text; holds `{name}`.
    pub named: String,
    /// A text; holds `{name}` and `{count}`.
    pub text: String,
    /// An edit; holds `{old}` and `{new}`.
    pub change: String,
}

/// Lines below cards.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadWords {
    /// While people are asked; holds `{until}`.
    pub reminder: String,
    /// Somebody decided; holds `{what}`, `{who}` and `{at}`.
    pub decided: String,
    /// It ended without anybody; holds `{what}` and `{at}`.
    pub ended: String,
    /// On a card; holds `{channel}`.
    pub by_card: String,
    /// Over the API or the command line.
    pub by_api: String,
    /// On the console.
    pub by_console: String,
    /// In the terminal.
    pub by_terminal: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct LayoutWords {
    approve: String,
    reject: String,
    show_everything: String,
    arguments: String,
    cut: String,
    approve_in_full_view: String,
    reason: String,
    changed: String,
    all_arguments: String,
    reject_with_reason: String,
    open_console: String,
    once_more_title: String,
    once_more_text: String,
    once_more_yes: String,
    once_more_no: String,
    grant_session: String,
    grant_span: String,
}

/// Words of a card that several requests share.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetWords {
    pending: String,
    settled: String,
    approve_all: String,
    reject_all: String,
    answered: String,
    left_out: String,
}

/// Labels of answering all requests of a card at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllWords {
    /// Of approving.
    pub approve: String,
    /// Of rejecting.
    pub reject: String,
}

/// The replies that every language must have.
pub const REPLIES: [&str; 56] = [
    "settled_approve",
    "settled_reject",
    "counted_approve",
    "counted_reject",
    "unknown_card",
    "other_channel",
    "other_message",
    "unknown_chat",
    "foreign_tenant",
    "unknown_operator",
    "account_deactivated",
    "account_frozen",
    "account_resigned",
    "account_not_joined",
    "account_guest",
    "account_bot",
    "account_foreign",
    "account_unknown",
    "look_up_failed",
    "not_told_apart",
    "not_authorised",
    "self_approval",
    "outdated_card",
    "partial_view",
    "not_confirmed",
    "reason_required",
    "not_this_stage",
    "grant_not_offered",
    "already_represented",
    "edit_not_offered",
    "edit_not_carried",
    "edit_not_shown",
    "edit_out_of_scope",
    "edit_of_hidden",
    "edit_misfit",
    "edit_denied_by_rule",
    "edit_needs_others",
    "edited_too_often",
    "edit_unseen",
    "armed_code",
    "armed_second_person",
    "code_required",
    "code_not_set_up",
    "wrong_code",
    "too_many_codes",
    "already_armed",
    "break_glass_not_offered",
    "break_glass_used_up",
    "already_voted",
    "already_approved",
    "already_rejected",
    "already_cancelled",
    "already_undeliverable",
    "expired",
    "not_found",
    "try_again",
];

/// The words of a language cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PhraseError {
    /// A key is missing or unknown.
    #[error("templates/cards: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A reply is missing.
    #[error("templates/cards: the reply {0} is missing")]
    NoReply(&'static str),
}

/// All languages.
#[derive(Debug, Clone)]
pub struct Phrasebook(BTreeMap<Language, Phrases>);

impl Phrasebook {
    /// Reads the words that were built in.
    pub fn load() -> Result<Self, PhraseError> {
        let mut book = BTreeMap::new();
        for (language, text) in Language::ALL {
            let phrases: Phrases = serde_json::from_str(text)?;
            if let Some(missing) = REPLIES
                .into_iter()
                .find(|reply| !phrases.replies.contains_key(*reply))
            {
                return Err(PhraseError::NoReply(missing));
            }
            book.insert(language, phrases);
        }
        Ok(Self(book))
    }

    /// The words of a language.
    pub fn of(&self, language: Language) -> &Phrases {
        &self.0[&language]
    }
}

impl Phrases {
    /// What is asked or what happened.
    pub fn title(&self, status: Status) -> &str {
        match status {
            Status::Pending => &self.titles.pending,
            Status::Approved => &self.titles.approved,
            Status::Rejected => &self.titles.rejected,
            Status::Expired => &self.titles.expired,
            Status::Cancelled => &self.titles.cancelled,
            Status::Undeliverable => &self.titles.undeliverable,
        }
    }

    /// What became of an approved call.
    pub fn ran(&self, ran: Ran, zone: &Zone) -> String {
        match ran {
            Ran::NotYet { until } => self.facts.not_run.replace("{until}", &zone.show(until)),
            Ran::Lapsed => self.facts.lapsed.clone(),
            Ran::Begun => self.facts.begun.clone(),
            Ran::Succeeded => self.facts.succeeded.clone(),
            Ran::Failed => self.facts.failed.clone(),
        }
    }

    /// The words for a risk.
    pub fn risk(&self, risk: Risk) -> &str {
        match risk {
            Risk::Low => &self.facts.risk_low,
            Risk::Medium => &self.facts.risk_medium,
            Risk::High => &self.facts.risk_high,
            Risk::Critical => &self.facts.risk_critical,
        }
    }

    /// A reply to a click; one of [`REPLIES`].
    pub fn reply(&self, key: &str) -> &str {
        self.replies.get(key).map_or("", String::as_str)
    }

    /// The question before Approve is sent.
    pub fn once_more(&self) -> OnceMore {
        OnceMore {
            title: self.layout.once_more_title.clone(),
            text: self.layout.once_more_text.clone(),
            yes: self.layout.once_more_yes.clone(),
            no: self.layout.once_more_no.clone(),
        }
    }

    /// The offer to let later calls run too. It says for how long.
    pub fn grant(&self, scope: GrantScope) -> GrantOffer {
        let word = match scope {
            GrantScope::Session => &self.layout.grant_session,
            GrantScope::Span(_) => &self.layout.grant_span,
        };
        // A session lasts no longer than a span of its own; the button says how long.
        let span = GrantScope::Span(scope.lives_ms()).to_string();
        GrantOffer {
            scope: scope.to_string(),
            label: word.replace("{span}", &span),
        }
    }

    /// The headings of an edited call: above what was changed, and above all of it.
    pub fn edited(&self) -> [&str; 2] {
        [&self.layout.changed, &self.layout.all_arguments]
    }

    /// The title of a card of several requests of which some are open.
    pub fn set_pending(&self, open: usize, total: usize) -> String {
        let words = self.set.pending.replace("{open}", &open.to_string());
        words.replace("{total}", &total.to_string())
    }

    /// The title of a card of several requests of which none is open.
    pub fn set_settled(&self, total: usize, approved: usize, rejected: usize) -> String {
        let words = self.set.settled.replace("{total}", &total.to_string());
        let words = words.replace("{approved}", &approved.to_string());
        words.replace("{rejected}", &rejected.to_string())
    }

    /// The labels of answering all that are open.
    pub fn all(&self, open: usize) -> AllWords {
        let open = open.to_string();
        AllWords {
            approve: self.set.approve_all.replace("{open}", &open),
            reject: self.set.reject_all.replace("{open}", &open),
        }
    }

    /// What became of an answer to all requests of a card: how many took it, and in whose words each of the others did not.
    pub fn all_answered<'a>(
        &self,
        decision: Decision,
        done: usize,
        refused: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> String {
        let word = match decision {
            Decision::Approve => &self.layout.approve,
            Decision::Reject => &self.layout.reject,
        };
        let words = self.set.answered.replace("{decision}", word);
        let mut said = words.replace("{done}", &done.to_string());
        for (request, why) in refused {
            said.push('\n');
            said.push_str(
                &self
                    .set
                    .left_out
                    .replace("{request}", request)
                    .replace("{why}", why),
            );
        }
        said
    }

    /// The words an adapter lays out.
    pub fn words(&self) -> Words {
        Words {
            approve: self.layout.approve.clone(),
            reject: self.layout.reject.clone(),
            show_everything: self.layout.show_everything.clone(),
            arguments: self.layout.arguments.clone(),
            cut: self.layout.cut.clone(),
            approve_in_full_view: self.layout.approve_in_full_view.clone(),
            reason: self.layout.reason.clone(),
            reject_with_reason: self.layout.reject_with_reason.clone(),
            open_console: self.layout.open_console.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_is_complete_and_says_something() {
        let book = Phrasebook::load().unwrap();
        for (language, _) in Language::ALL {
            let phrases = book.of(language);
            assert!(
                Status::ALL
                    .iter()
                    .all(|status| !phrases.title(*status).is_empty())
            );
            assert!(REPLIES.iter().all(|reply| !phrases.reply(reply).is_empty()));
            assert_eq!(
                phrases.replies.len(),
                REPLIES.len(),
                "{language:?} holds replies that nothing sends"
            );
            let words = phrases.words();
            assert!(phrases.facts.not_run.contains("{until}"));
            for (heading, holes) in [
                (&phrases.parts.named, &["{name}"][..]),
                (&phrases.parts.text, &["{name}", "{count}"]),
                (&phrases.parts.change, &["{old}", "{new}"]),
            ] {
                assert!(holes.iter().all(|hole| heading.contains(hole)), "{heading}");
                // As much as an adapter gives a heading, with the longest name and count in it.
                let filled = heading
                    .replace("{name}", &"n".repeat(32))
                    .replace("{count}", "10000000");
                assert!(filled.encode_utf16().count() <= 75, "{heading}");
            }
            assert!(words.cut.contains("{shown}") && words.cut.contains("{total}"));
            assert!(
                phrases.facts.approvals_value.contains("{have}")
                    && phrases.facts.approvals_value.contains("{need}")
            );
            for said in [
                phrases.set_pending(7, 9),
                phrases.set_settled(9, 7, 8),
                phrases.all(7).approve,
                phrases.all(7).reject,
                phrases.all_answered(Decision::Reject, 7, [("cr_1", "7")]),
            ] {
                assert!(said.contains('7') && !said.contains('{'), "{language:?}: {said}");
            }
            for scope in [GrantScope::Session, GrantScope::Span(3_600_000)] {
                let label = phrases.grant(scope).label;
                assert!(
                    label.contains(['1', '8']) && !label.contains('{'),
                    "it says for how long: {label}"
                );
            }
            let lines = &phrases.thread;
            assert!(lines.reminder.contains("{until}") && lines.by_card.contains("{channel}"));
            for hole in ["{what}", "{at}"] {
                assert!(lines.decided.contains(hole) && lines.ended.contains(hole));
            }
            assert!(lines.decided.contains("{who}") && !lines.ended.contains("{who}"));
            assert!(
                ["{at}", "{count}", "{name}"]
                    .iter()
                    .all(|hole| phrases.facts.stage_value.contains(hole))
            );
        }
    }
}

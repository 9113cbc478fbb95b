//! What the clicker is told, from what was stored.

use gatepost_channel::{Bar, Decision, Field, ReplyTone};

use crate::confirmation::decide::{Decided, Refusal, Ruling};
use crate::confirmation::edit::EditRefusal;
use crate::confirmation::step_up::Waiting;
use crate::confirmation::{Dossier, Status};

/// Which of our words, how coloured, and whether it needs saying at all where the card itself shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said {
    /// A key of the phrasebook's replies.
    pub key: &'static str,
    /// Its colour.
    pub tone: ReplyTone,
    /// Whether a private notice is due on platforms that answer with nothing.
    pub tell: bool,
    /// An exact repeat: the notice went out the first time.
    pub replayed: bool,
    /// Nothing was changed.
    pub refused: bool,
}

/// The answer to a decision. A replay gets the words of the first time.
pub fn of(decided: &Decided, decision: Decision) -> Said {
    let dossier = decided.dossier.as_ref();
    match &decided.ruling {
        Ruling::Settled => said(super::counted(decision, true), success(decision), false),
        Ruling::Counted => said(super::counted(decision, false), ReplyTone::Success, true),
        Ruling::Armed(waiting) => said(armed(*waiting), ReplyTone::Info, true),
        Ruling::Refused(refusal) => refused(*refusal, dossier),
        Ruling::Replayed(first) => {
            let first = match first.as_str() {
                "settled" => said(super::counted(decision, true), success(decision), false),
                "counted" => said(super::counted(decision, false), ReplyTone::Success, true),
                "armed_code" => said(armed(Waiting::Code), ReplyTone::Info, true),
                "armed_second_person" => said(armed(Waiting::SecondPerson), ReplyTone::Info, true),
                word => all().find(|refusal| refusal.as_str() == word).map_or_else(
                    || refused(Refusal::NotFound, dossier),
                    |refusal| refused(refusal, dossier),
                ),
            };
            Said {
                replayed: true,
                ..first
            }
        }
    }
}

const ALL: [Refusal; 28] = [
    Refusal::NotFound,
    Refusal::UnknownCard,
    Refusal::OtherChannel,
    Refusal::OtherMessage,
    Refusal::ForeignTenant,
    Refusal::UnknownOperator,
    Refusal::LookUpFailed,
    Refusal::NotToldApart,
    Refusal::NotAuthorised,
    Refusal::SelfApproval,
    Refusal::OutdatedCard,
    Refusal::PartialView,
    Refusal::NotConfirmed,
    Refusal::ReasonRequired,
    Refusal::NotThisStage,
    Refusal::GrantNotOffered,
    Refusal::AlreadyRepresented,
    Refusal::EditUnseen,
    Refusal::CodeRequired,
    Refusal::CodeNotSetUp,
    Refusal::WrongCode,
    Refusal::TooManyCodes,
    Refusal::AlreadyArmed,
    Refusal::BreakGlassNotOffered,
    Refusal::BreakGlassUsedUp,
    Refusal::AlreadyVoted,
    Refusal::AlreadySettled,
    Refusal::Expired,
];

/// Every refusal.
fn all() -> impl Iterator<Item = Refusal> {
    let barred = Bar::ALL.into_iter().map(Refusal::Barred);
    ALL.into_iter()
        .chain(EditRefusal::ALL.map(Refusal::Edit))
        .chain(barred)
}

/// The answer to a refusal.
pub fn refused(refusal: Refusal, dossier: Option<&Dossier>) -> Said {
    let (key, tone) = match refusal {
        Refusal::NotFound => ("not_found", ReplyTone::Error),
        Refusal::UnknownCard => ("unknown_card", ReplyTone::Error),
        Refusal::OtherChannel => ("other_channel", ReplyTone::Error),
        Refusal::OtherMessage => ("other_message", ReplyTone::Error),
        Refusal::ForeignTenant => ("foreign_tenant", ReplyTone::Error),
        Refusal::UnknownOperator => ("unknown_operator", ReplyTone::Error),
        Refusal::Barred(bar) => (bar.as_str(), ReplyTone::Error),
        Refusal::LookUpFailed => ("look_up_failed", ReplyTone::Warning),
        Refusal::NotToldApart => ("not_told_apart", ReplyTone::Error),
        Refusal::NotAuthorised => ("not_authorised", ReplyTone::Error),
        Refusal::SelfApproval => ("self_approval", ReplyTone::Error),
        Refusal::OutdatedCard => ("outdated_card", ReplyTone::Warning),
        Refusal::PartialView => ("partial_view", ReplyTone::Warning),
        Refusal::NotConfirmed => ("not_confirmed", ReplyTone::Warning),
        Refusal::ReasonRequired => ("reason_required", ReplyTone::Warning),
        Refusal::GrantNotOffered => ("grant_not_offered", ReplyTone::Warning),
        Refusal::Edit(EditRefusal::NotOffered) => ("edit_not_offered", ReplyTone::Warning),
        Refusal::Edit(EditRefusal::NotCarried) => ("edit_not_carried", ReplyTone::Warning),
        Refusal::Edit(EditRefusal::NotShown) => ("edit_not_shown", ReplyTone::Warning),
        Refusal::Edit(EditRefusal::OutOfScope) => ("edit_out_of_scope", ReplyTone::Warning),
        Refusal::Edit(EditRefusal::Hidden) => ("edit_of_hidden", ReplyTone::Warning),
        Refusal::Edit(EditRefusal::Misfit) => ("edit_misfit", ReplyTone::Warning),
        Refusal::Edit(EditRefusal::DeniedByRule) => ("edit_denied_by_rule", ReplyTone::Warning),
        Refusal::Edit(EditRefusal::Stricter) => ("edit_needs_others", ReplyTone::Warning),
        Refusal::Edit(EditRefusal::TooMany) => ("edited_too_often", ReplyTone::Warning),
        Refusal::EditUnseen => ("edit_unseen", ReplyTone::Warning),
        Refusal::NotThisStage => ("not_this_stage", ReplyTone::Warning),
        Refusal::CodeRequired => ("code_required", ReplyTone::Warning),
        Refusal::CodeNotSetUp => ("code_not_set_up", ReplyTone::Error),
        Refusal::WrongCode => ("wrong_code", ReplyTone::Error),
        Refusal::TooManyCodes => ("too_many_codes", ReplyTone::Error),
        Refusal::AlreadyArmed => ("already_armed", ReplyTone::Info),
        Refusal::BreakGlassNotOffered => ("break_glass_not_offered", ReplyTone::Error),
        Refusal::BreakGlassUsedUp => ("break_glass_used_up", ReplyTone::Error),
        Refusal::AlreadyRepresented => ("already_represented", ReplyTone::Info),
        Refusal::AlreadyVoted => ("already_voted", ReplyTone::Info),
        Refusal::Expired => ("expired", ReplyTone::Warning),
        Refusal::AlreadySettled => match dossier.map(|d| d.confirmation.state.status()) {
            Some(Status::Approved) => ("already_approved", ReplyTone::Info),
            Some(Status::Rejected) => ("already_rejected", ReplyTone::Info),
            Some(Status::Cancelled) => ("already_cancelled", ReplyTone::Info),
            Some(Status::Expired) => ("expired", ReplyTone::Warning),
            _ => ("already_undeliverable", ReplyTone::Info),
        },
    };
    Said {
        refused: true,
        ..said(key, tone, true)
    }
}

/// The words for an approval that waits for what completes it.
pub const fn armed(waiting: Waiting) -> &'static str {
    match waiting {
        Waiting::Code => "armed_code",
        Waiting::SecondPerson => "armed_second_person",
    }
}

/// What of an answer these words are about.
pub fn field(key: &str) -> Field {
    if key == "reason_required" {
        Field::Reason
    } else if EditRefusal::ALL.iter().any(|why| why.as_str() == key) {
        Field::Arguments
    } else {
        Field::Answer
    }
}

/// Whether these words send the person to where a code can be given.
pub fn leads_to_console(key: &str) -> bool {
    matches!(key, "armed_code" | "already_armed" | "code_required")
}

const fn success(decision: Decision) -> ReplyTone {
    match decision {
        Decision::Approve => ReplyTone::Success,
        Decision::Reject => ReplyTone::Info,
    }
}

const fn said(key: &'static str, tone: ReplyTone, tell: bool) -> Said {
    Said {
        key,
        tone,
        tell,
        replayed: false,
        refused: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::phrase::REPLIES;

    #[test]
    fn what_is_wrong_with_changed_arguments_is_said_at_their_field() {
        for why in EditRefusal::ALL {
            let said = refused(Refusal::Edit(why), None);
            assert_eq!(
                (said.key, field(said.key)),
                (why.as_str(), Field::Arguments),
                "{why:?}"
            );
        }
        let about = |refusal| field(refused(refusal, None).key);
        assert_eq!(about(Refusal::ReasonRequired), Field::Reason);
        assert_eq!(
            about(Refusal::EditUnseen),
            Field::Answer,
            "the arguments are not this person's"
        );
        assert_eq!(about(Refusal::OutdatedCard), Field::Answer);
    }

    #[test]
    fn every_refusal_has_words_and_a_replay_says_the_same() {
        for refusal in all() {
            let decided = |ruling| Decided {
                ruling,
                dossier: None,
                fellows: Vec::new(),
                card: None,
            };
            let first = of(&decided(Ruling::Refused(refusal)), Decision::Approve);
            assert!(REPLIES.contains(&first.key), "{}", first.key);
            let again = of(
                &decided(Ruling::Replayed(refusal.as_str().to_owned())),
                Decision::Approve,
            );
            assert_eq!((again.key, again.tone), (first.key, first.tone));
        }
    }
}

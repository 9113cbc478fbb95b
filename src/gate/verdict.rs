//! Why a call does not run, in codes for programs and in words for the model that asked.
//!
//! It must not know how a denial came about.

use serde::{Deserialize, Serialize};

/// The reason codes of a denial (a part of the HTTP contract, see `gatepost openapi`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DenyReason {
    /// A person said no.
    RejectedByOperator,
    /// Nobody answered in time.
    Expired,
    /// The request was withdrawn.
    Cancelled,
    /// The question reached nobody.
    Undeliverable,
    /// Policy, a hook or the tool forbids the call.
    DeniedByRule,
    /// Who asks may not make this call.
    NotAuthorised,
    /// The call is not the one that was approved.
    ArgsChanged,
    /// The approval was used before.
    AlreadyConsumed,
    /// The approval was not used in time.
    PermitExpired,
    /// The arguments are malformed or have more than one meaning.
    InvalidArguments,
    /// The gate itself failed.
    GateError,
}

impl DenyReason {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::RejectedByOperator,
        Self::Expired,
        Self::Cancelled,
        Self::Undeliverable,
        Self::DeniedByRule,
        Self::NotAuthorised,
        Self::ArgsChanged,
        Self::AlreadyConsumed,
        Self::PermitExpired,
        Self::InvalidArguments,
        Self::GateError,
    ];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::RejectedByOperator => "rejected_by_operator",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Undeliverable => "undeliverable",
            Self::DeniedByRule => "denied_by_rule",
            Self::NotAuthorised => "not_authorised",
            Self::ArgsChanged => "args_changed",
            Self::AlreadyConsumed => "already_consumed",
            Self::PermitExpired => "permit_expired",
            Self::InvalidArguments => "invalid_arguments",
            Self::GateError => "gate_error",
        }
    }

    /// Whether the same call may end differently another time.
    pub fn outlook(self) -> Outlook {
        match self {
            Self::RejectedByOperator | Self::DeniedByRule | Self::NotAuthorised | Self::Cancelled => {
                Outlook::Final
            }
            Self::Expired | Self::Undeliverable | Self::PermitExpired | Self::GateError => Outlook::Later,
            Self::ArgsChanged | Self::InvalidArguments => Outlook::Differently,
            Self::AlreadyConsumed => Outlook::Done,
        }
    }

    /// What the model is told: what happened to its call, and whether trying again makes sense.
    pub fn advice(self) -> &'static str {
        match self {
            Self::RejectedByOperator => {
                "A person looked at this call and said no; it did not run. That answer is final: do not make the call \
                 again, in this or another form. Go on without it, or tell the user what you could not do."
            }
            Self::Expired => {
                "This call needed a person's approval and nobody answered in time; it did not run. Nobody objected \
                 either. Do not repeat it at once: go on with other work, and ask again later if it is still needed."
            }
            Self::Cancelled => {
                "The request to approve this call was withdrawn; the call did not run. Do not make it again unless the \
                 user asks for it."
            }
            Self::Undeliverable => {
                "This call needs a person's approval, but the question could not be delivered to anybody; it did not \
                 run. An immediate repetition will end the same way. Tell the user; later it may work."
            }
            Self::DeniedByRule => {
                "Policy does not permit this call; it did not run. Making it again will not change that. Look for \
                 another way that does not need it, or tell the user that it is not permitted."
            }
            Self::NotAuthorised => {
                "You are not authorised to make this call; it did not run. Making it again will not change that. Tell \
                 the user that somebody with the right to do so has to make it."
            }
            Self::ArgsChanged => {
                "The tool or its arguments differ from the call that was approved; it did not run. Make exactly the \
                 approved call, or ask for approval of the new one."
            }
            Self::AlreadyConsumed => {
                "The approval of this call has been used; it permits one execution and no second one. Use the result \
                 that you have, and ask for approval again only if the call must really happen twice."
            }
            Self::PermitExpired => {
                "This call was approved, but the approval was not used in time and has lapsed; it did not run. If the \
                 call is still needed, ask for approval again."
            }
            Self::InvalidArguments => {
                "The arguments of this call could not be read in only one way, so it did not run. Send one JSON object \
                 with each key once, complete Unicode text, at most 128 levels and numbers of at most 40 digits."
            }
            Self::GateError => {
                "The approval of this call could not be decided because of a fault on our side; it did not run. Do not \
                 repeat it at once. Tell the user; later it may work."
            }
        }
    }
}

/// Whether asking again makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// No: the answer stays.
    Final,
    /// Not now, but later.
    Later,
    /// Only with another call.
    Differently,
    /// There is nothing to repeat.
    Done,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_what_is_serialized() {
        for reason in DenyReason::ALL {
            assert_eq!(
                serde_json::to_string(&reason).unwrap(),
                format!("\"{}\"", reason.code())
            );
            assert_eq!(
                serde_json::from_str::<DenyReason>(&format!("\"{}\"", reason.code())).unwrap(),
                reason
            );
        }
    }

    #[test]
    fn only_what_may_change_is_worth_another_try() {
        for reason in DenyReason::ALL {
            let later = reason.advice().to_lowercase();
            match reason.outlook() {
                Outlook::Final => assert!(later.contains("again") && !later.contains("later"), "{later}"),
                Outlook::Later => assert!(later.contains("later") || later.contains("again"), "{later}"),
                Outlook::Differently | Outlook::Done => assert!(!later.contains("later"), "{later}"),
            }
        }
    }
}

//! Why an answer changed nothing: one word for each, the same for every surface. Judges nothing.

use gatepost_channel::Bar;

use super::edit::EditRefusal;

/// Why an answer changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// No such request here.
    NotFound,
    /// The button is not one of ours.
    UnknownCard,
    /// The button belongs to another channel's card.
    OtherChannel,
    /// The button belongs to another message.
    OtherMessage,
    /// The person's tenant or workspace may not click here.
    ForeignTenant,
    /// The person is no operator.
    UnknownOperator,
    /// The account may not decide, whoever is behind it.
    Barred(Bar),
    /// Who the person is could not be looked up; another try may succeed.
    LookUpFailed,
    /// The person cannot be told apart from those who are known on other platforms.
    NotToldApart,
    /// The operator may not decide this request.
    NotAuthorised,
    /// The operator stands behind the call.
    SelfApproval,
    /// The card changed since; nothing was decided.
    OutdatedCard,
    /// The card does not show everything.
    PartialView,
    /// The rule asks once more before an approval, and the answer was given once.
    NotConfirmed,
    /// The rule asks for a reason in words.
    ReasonRequired,
    /// The person is asked in another stage.
    NotThisStage,
    /// The request offers no such grant.
    GrantNotOffered,
    /// Somebody has approved in the person's place, or for those whom the person stands in for.
    AlreadyRepresented,
    /// The changed arguments are not taken.
    Edit(EditRefusal),
    /// The arguments were changed since, and the answer does not say that the person saw it.
    EditUnseen,
    /// The rule asks for a one-time code, and none was given.
    CodeRequired,
    /// The rule asks for a one-time code, and none is set up for the person.
    CodeNotSetUp,
    /// The code is wrong, too old, or was used before.
    WrongCode,
    /// Too many wrong codes: none is read for a while.
    TooManyCodes,
    /// The person's approval waits already for what completes it.
    AlreadyArmed,
    /// The rule lets nobody break the glass.
    BreakGlassNotOffered,
    /// The glass was broken as often as the rule allows.
    BreakGlassUsedUp,
    /// The person's first vote stands.
    AlreadyVoted,
    /// The request was settled before.
    AlreadySettled,
    /// The deadline passed.
    Expired,
}

impl Refusal {
    /// The stable word of the audit log.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::UnknownCard => "unknown_card",
            Self::OtherChannel => "other_channel",
            Self::OtherMessage => "other_message",
            Self::ForeignTenant => "foreign_tenant",
            Self::UnknownOperator => "unknown_operator",
            Self::Barred(bar) => bar.as_str(),
            Self::LookUpFailed => "look_up_failed",
            Self::NotToldApart => "not_told_apart",
            Self::NotAuthorised => "not_authorised",
            Self::SelfApproval => "self_approval",
            Self::OutdatedCard => "outdated_card",
            Self::PartialView => "partial_view",
            Self::NotConfirmed => "not_confirmed",
            Self::ReasonRequired => "reason_required",
            Self::NotThisStage => "not_this_stage",
            Self::GrantNotOffered => "grant_not_offered",
            Self::AlreadyRepresented => "already_represented",
            Self::Edit(why) => why.as_str(),
            Self::EditUnseen => "edit_unseen",
            Self::CodeRequired => "code_required",
            Self::CodeNotSetUp => "code_not_set_up",
            Self::WrongCode => "wrong_code",
            Self::TooManyCodes => "too_many_codes",
            Self::AlreadyArmed => "already_armed",
            Self::BreakGlassNotOffered => "break_glass_not_offered",
            Self::BreakGlassUsedUp => "break_glass_used_up",
            Self::AlreadyVoted => "already_voted",
            Self::AlreadySettled => "already_settled",
            Self::Expired => "expired",
        }
    }
}

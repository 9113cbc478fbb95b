//! Where `collapse` says that like requests share a card, and something beside it keeps each on a card of its own.

use super::View;
use crate::gate::decision::RequireReason;
use crate::gate::policy::ConfirmSource;

/// Requests that need a reason or accept other arguments never share a card; a rule that asks for both would wait for it in vain.
pub(super) fn takes_effect(view: &View<'_>, path: &str, own: &ConfirmSource, fallback: &ConfirmSource) {
    let reasons = own.require_reason.or(fallback.require_reason);
    let collapses = own.collapse.is_some_and(|collapse| collapse.most > 1);
    let needs_words = reasons.is_some_and(|reasons| reasons != RequireReason::Never);
    let own_card = [
        (
            needs_words,
            "a request that needs a reason keeps a card of its own, so `collapse` has no effect beside `require_reason`",
        ),
        (
            own.edits.is_some(),
            "a request whose arguments people may change keeps a card of its own, so `collapse` has no effect beside `accepts_edits`",
        ),
    ];
    for (_, why) in own_card.iter().filter(|(alone, _)| collapses && *alone) {
        view.warn(&format!("{path}.collapse"), *why);
    }
}

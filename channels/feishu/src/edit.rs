//! The arguments in a field of the message that shows one person everything, with the button that approves what stands in it.

use gatepost_channel::{Actions, EditForm, FullView};

use crate::card::{Shown, approval, label, own};
use crate::elements::Element;

/// The most UTF-16 units that a field takes here: the platform takes a thousand characters and does not say how it counts them.
const LONGEST: usize = 1_000;

/// The form, or where the arguments can be changed when they do not fit into a field. Nothing where that is not offered.
pub(crate) fn lay_out(view: &FullView) -> Option<Element> {
    let form = view.edit.as_ref()?;
    let (Actions::Decide { asks, .. }, Some(seen)) = (&view.card.actions, view.seen) else {
        return None;
    };
    if form.text.encode_utf16().count() > LONGEST {
        return Some(elsewhere(form));
    }
    let mut vote = approval(&view.card, Shown::Alone(seen))?;
    vote.label = label(&form.approve);
    let reason = asks.reason_to_approve.then(|| label(&view.card.words.reason));
    Some(Element::editor(
        label(&form.label),
        form.text.clone(),
        reason,
        vote,
    ))
}

/// That they can be changed, and where.
pub(crate) fn elsewhere(form: &EditForm) -> Element {
    Element::note(own(&form.elsewhere))
}

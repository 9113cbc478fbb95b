//! Arguments that a person changed where they were shown everything: what stood in the field comes with their answer.
//!
//! Whether the request takes it is judged by the gatekeeper, as over every other surface; why it does not is told to that person alone,
//! at the field where the platform can.

use gatepost_channel::{Click, Decision, Inert, Reply};

use super::Intake;
use crate::confirmation::decide::{Ballot, Decided, Ruling};
use crate::confirmation::edit::{EditRefusal, Revised};
use crate::delivery::registry::Listed;
use crate::gatekeeper::Unfit;
use crate::storage::{StoreError, TokenHash};

/// What became of the field's text, apart from why it is no edit.
pub(super) type Edit = Option<Result<Revised, EditRefusal>>;

impl Intake {
    /// The edit that a click asks for, and why it is none. A rejection counts whatever stands in the field.
    pub(super) async fn edit_of(
        &self,
        home: &Listed,
        click: &Click,
        ballot: &Ballot,
        token: Option<&TokenHash>,
    ) -> Result<(Edit, Option<Unfit>), StoreError> {
        let (Some(text), Decision::Approve, Ballot::Person(person)) = (&click.edited, click.decision, ballot)
        else {
            return Ok((None, None));
        };
        let dossier = match token {
            Some(token) => self.gatekeeper.store().read().dossier_of_button(token).await?,
            None => None,
        };
        let ours = dossier.filter(|dossier| dossier.confirmation.org == home.org);
        let said = (&**text, self.has_seen(home, click));
        Ok(match self.gatekeeper.rewritten(ours.as_ref(), person, said) {
            None => (None, None),
            Some(Ok(revised)) => (Some(Ok(revised)), None),
            Some(Err(unfit)) => (Some(Err(unfit.why)), Some(unfit)),
        })
    }

    /// Says what is wrong with the arguments where that is more than our words for it: what the tool takes instead, what may be changed. Only somebody whose
    /// answer was refused for it hears that.
    pub(super) fn explain(reply: Reply, decided: &Decided, unfit: Option<&Unfit>) -> Reply {
        let refused = |why: EditRefusal| match &decided.ruling {
            Ruling::Refused(refusal) => refusal.as_str() == why.as_str(),
            Ruling::Replayed(first) => first == why.as_str(),
            _ => false,
        };
        match unfit {
            Some(unfit)
                if matches!(unfit.why, EditRefusal::Misfit | EditRefusal::OutOfScope)
                    && refused(unfit.why) =>
            {
                Reply {
                    text: Inert::new(&format!("{} ({})", reply.text, unfit.detail)),
                    ..reply
                }
            }
            _ => reply,
        }
    }
}

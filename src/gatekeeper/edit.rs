//! A person changes the arguments when they approve: whether the rule, the tool and policy take that is found out here, before the
//! one transaction that decides whether the person may answer at all.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use gatepost_channel::Inert;

use super::Gatekeeper;
use crate::audit::Opening;
use crate::confirmation::Dossier;
use crate::confirmation::edit::{Edit, EditRefusal, Revised, in_words};
use crate::delivery::plan::approvable;
use crate::gate::json::{Pointer, ReadLimits};
use crate::gate::policy::{Effect, Judgement, Voices};
use crate::gate::{Arguments, Digest, EditProblem, Json, Terms, ToolName, shown_canonical, shown_changes};
use crate::ids::{ConfirmationId, DeliveryId, OperatorId, Org};
use crate::storage::StoreError;

/// So many places are named at most, and so much of each.
const NAMED: usize = 5;
const NAMED_LENGTH: usize = 80;

/// What tools take, where that is known: those of the agents.
pub trait Shapes: Send + Sync {
    /// Why the tool could not take these arguments, in words that hold no value of theirs; nothing when it could, or when no such
    /// tool is known.
    fn misfit(&self, tool: &ToolName, args: &Arguments) -> Option<String>;
}

/// Where [`Shapes`] are put once there are agents. Clones share it.
#[derive(Clone, Default)]
pub struct KnownShapes(Arc<OnceLock<Arc<dyn Shapes>>>);

impl KnownShapes {
    /// From here on these are known. Only the first time counts.
    pub fn know(&self, shapes: Arc<dyn Shapes>) {
        let _known = self.0.set(shapes);
    }

    fn misfit(&self, tool: &ToolName, args: &Arguments) -> Option<String> {
        self.0.get()?.misfit(tool, args)
    }
}

/// Why an edit is not taken, for the person who made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// As it is stored and counted.
    pub why: EditRefusal,
    /// In words; no value of the arguments.
    pub detail: String,
}

impl Unfit {
    fn new(why: EditRefusal, detail: impl Into<String>) -> Self {
        Self {
            why,
            detail: detail.into(),
        }
    }

    /// The request is not there; the decision itself says so.
    pub(super) fn unknown() -> Self {
        Self::new(EditRefusal::NotOffered, "there is no such request")
    }
}

impl Gatekeeper {
    /// Finds out whether the request takes these arguments in place of its own. Who may answer is not asked here.
    pub(super) fn revise(
        &self,
        dossier: &Dossier,
        by: &OperatorId,
        edited: &Arguments,
    ) -> Result<Revised, Unfit> {
        let row = &dossier.confirmation;
        let terms = row.terms.decision.edits.as_ref().ok_or_else(|| {
            let detail = "the rule lets nobody change the arguments; approve or reject the call as it is";
            Unfit::new(EditRefusal::NotOffered, detail)
        })?;
        if !terms.carried {
            let detail = "whoever asked would run its own arguments all the same; reject the call with a reason that says what to change";
            return Err(Unfit::new(EditRefusal::NotCarried, detail));
        }
        let proposed = Json::read(row.asked.args.as_bytes(), ReadLimits::bytes(row.asked.args.len()));
        let proposed = proposed.map_err(|_| Unfit::new(EditRefusal::Misfit, "the request cannot be read"))?;
        let hidden = &row.terms.redact;
        let args = terms.apply(&proposed, edited, hidden).map_err(|problem| {
            let why = match problem {
                EditProblem::OutOfScope => EditRefusal::OutOfScope,
                EditProblem::Hidden => EditRefusal::Hidden,
                EditProblem::Malformed(_) => EditRefusal::Misfit,
            };
            match problem {
                EditProblem::OutOfScope => {
                    let (outside, inside) = terms.outside(&proposed, edited, hidden);
                    Unfit::new(why, out_of_scope(&outside, &inside))
                }
                other => Unfit::new(why, other.to_string()),
            }
        })?;
        // Only of calls of our own agents it is certain whose tool is meant.
        let misfit = row
            .asked
            .job
            .as_ref()
            .and_then(|_| self.0.shapes.misfit(&row.asked.tool, &args));
        if let Some(misfit) = misfit {
            return Err(Unfit::new(EditRefusal::Misfit, misfit));
        }
        self.still_permitted(dossier, &proposed, &args)?;
        let shown = |args: &str| Opening::new(&shown_canonical(args, hidden), &**self.ids());
        Ok(Revised {
            digest: Digest::of(&row.asked.tool, &args),
            shown: shown(args.canonical()),
            shown_before: shown(&row.asked.args),
            approvable: self.approvable(dossier, by, &args),
            args: args.canonical().to_owned(),
        })
    }

    /// What a person made of the arguments in a field, as it came from a chat; nothing where they left the call as it stands. Only who
    /// was `shown` all of it can have changed it.
    pub fn rewritten(
        &self,
        dossier: Option<&Dossier>,
        by: &OperatorId,
        (text, shown): (&str, bool),
    ) -> Option<Result<Revised, Unfit>> {
        let Some(dossier) = dossier else {
            return Some(Err(Unfit::unknown()));
        };
        if !shown {
            let detail = "what stands in the field was shown to somebody else, or before the request changed; open it yourself";
            return Some(Err(Unfit::new(EditRefusal::NotShown, detail)));
        }
        let row = &dossier.confirmation;
        let args = match Arguments::read(text.as_bytes(), ReadLimits::bytes(text.len())) {
            Ok(args) => args,
            Err(problem) => return Some(Err(Unfit::new(EditRefusal::Misfit, problem.to_string()))),
        };
        // As people see them, so that nothing needs to be judged that nobody touched.
        if args.canonical() == shown_canonical(row.call().args, &row.terms.redact) {
            return None;
        }
        Some(self.revise(dossier, by, &args))
    }

    /// What an edit by this person would change, without deciding anything; or why it is not taken.
    pub fn preview(&self, dossier: &Dossier, by: &OperatorId, edited: &Arguments) -> Result<Inert, Unfit> {
        let row = &dossier.confirmation;
        let revised = self.revise(dossier, by, edited)?;
        Ok(shown_changes(&row.asked.args, &revised.args, &row.terms.redact))
    }

    /// What people changed of a request, in one line for whoever asked; nothing where it is as it was proposed.
    pub async fn changes(&self, org: &Org, id: &ConfirmationId) -> Result<Option<String>, StoreError> {
        let dossier = self.dossier(org, id).await?;
        Ok(dossier.and_then(|dossier| in_words(&dossier.confirmation, &self.roll())))
    }

    /// Policy on the edited call. An edit opens no way around a rule: what is denied stays denied, and whoever would have to be asked
    /// about the edited call is among those who are asked.
    fn still_permitted(&self, dossier: &Dossier, proposed: &Json, args: &Arguments) -> Result<(), Unfit> {
        let row = &dossier.confirmation;
        let judge = |args: &Json, voices| self.judge_call(row, args, voices);
        let by_rules = |judged: &Judgement| judged.effect == Effect::Confirm;
        // Where not the rules asked for a person but the tool, a hook or the caller, somebody is asked about the edited call too.
        let asked_anyway = !judge(proposed, Voices::default()).as_ref().is_some_and(by_rules);
        let voices = Voices {
            tool_requires_confirmation: asked_anyway,
            hooks: None,
        };
        let denied = |detail: String| Unfit::new(EditRefusal::DeniedByRule, detail);
        let Some(judged) = judge(args.json(), voices) else {
            return Err(denied("policy cannot judge the edited call".to_owned()));
        };
        match judged.effect {
            Effect::Deny => {
                let rule = judged.rule.as_deref().unwrap_or("default");
                Err(denied(format!("the rule {rule} denies the edited call")))
            }
            Effect::Confirm
                if !judged
                    .terms
                    .as_ref()
                    .is_some_and(|terms| is_met_by(terms, &row.terms)) =>
            {
                let detail = match &judged.rule {
                    Some(rule) => format!(
                        "the edited call falls under the rule {rule}, which asks for more, or for other people, than this request does; reject it, and have the call made anew"
                    ),
                    None => "the edited call needs more, or other people, than this request asks; reject it, and have the call made anew".to_owned(),
                };
                Err(Unfit::new(EditRefusal::Stricter, detail))
            }
            Effect::Confirm | Effect::Allow => Ok(()),
        }
    }

    /// Which cards can show all of the edited call.
    fn approvable(&self, dossier: &Dossier, by: &OperatorId, args: &Arguments) -> BTreeMap<DeliveryId, bool> {
        let mut edited = dossier.clone();
        let row = &mut edited.confirmation;
        row.progress.edit = Some(Edit {
            number: row.call().edit.saturating_add(1),
            by: by.clone(),
            at: row.created_at,
            args: args.canonical().to_owned(),
            digest: Digest::of(&row.asked.tool, args),
        });
        let cards = &dossier.deliveries;
        cards
            .iter()
            .map(|card| {
                let fits = approvable(self.registry(), self.maker(), &edited, card);
                (card.id.clone(), fits)
            })
            .collect()
    }
}

/// What was changed although it may not be, and what may; names of members are somebody else's text, and may be any number.
fn out_of_scope(outside: &[String], inside: &[String]) -> String {
    let named = |places: &[String]| {
        let short = places.iter().take(NAMED).map(|place| {
            let cut: String = place.chars().take(NAMED_LENGTH).collect();
            let more = if cut.len() < place.len() { "…" } else { "" };
            format!("{}{more}", Inert::new(&cut).one_line())
        });
        let short: Vec<String> = short.collect();
        let more = if places.len() > NAMED { ", …" } else { "" };
        format!("{}{more}", short.join(", "))
    };
    if outside.is_empty() {
        return EditProblem::OutOfScope.to_string();
    }
    format!(
        "the rule does not let people change {}, only {}",
        named(outside),
        named(inside)
    )
}

/// Whether a request under these terms has asked for all that others ask for. Where the card goes and what is offered beside the
/// answer decides nothing.
fn is_met_by(wanted: &Terms, asked: &Terms) -> bool {
    let bare = |terms: &Terms| {
        let mut terms = terms.clone();
        terms.channels.clear();
        terms.decision.grants = None;
        terms.decision.edits = None;
        terms
    };
    let asked = bare(asked);
    let sorted = |mut pointers: Vec<Pointer>| {
        pointers.sort_by_key(ToString::to_string);
        pointers
    };
    let mut both = asked.together_with(&bare(wanted));
    // Hidden is hidden in whatever order.
    both.redact = sorted(both.redact);
    let asked = Terms {
        redact: sorted(asked.redact.clone()),
        ..asked
    };
    both == asked
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;

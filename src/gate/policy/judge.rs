//! The judgement of one call: the first matching rule speaks, other voices may only make it stricter.

use super::{
    Policy,
    facts::CallFacts,
    rule::Rule,
    source::Effect,
    when::{Answer, Call},
};
use crate::gate::{
    json::{Json, Pointer},
    redact::redact,
    terms::Terms,
};

/// Who speaks beside the rules. The default says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Voices {
    /// The tool's own `requires_confirmation`.
    pub tool_requires_confirmation: bool,
    /// The strictest answer of the hooks, where one had an opinion.
    pub hooks: Option<Effect>,
}

/// Whose word decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// The rule that [`Judgement::rule`] names.
    Rule,
    /// `policy.default`: no rule matched.
    Default,
    /// The tool's own `requires_confirmation`.
    Tool,
    /// `metadata.requires_confirmation: true`.
    Metadata,
    /// A hook.
    Hooks,
    /// An allow rule whose condition could not be evaluated.
    Unevaluated,
    /// `verified_requester`: no known person stands behind the call.
    Unverified,
    /// A redaction that meets an array or an object.
    Redaction,
}

/// What policy says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Allow, confirm or deny.
    pub effect: Effect,
    /// Whose word it was.
    pub voice: Voice,
    /// The matching rule, also where another voice was stricter.
    pub rule: Option<String>,
    /// Why, in words for people.
    pub reason: String,
    /// Under which terms to ask; present exactly when `effect` is confirm.
    pub terms: Option<Terms>,
    /// What people must not see of the arguments, whatever the effect. Where [`redact`] fails on them the call is
    /// denied, and nothing of the arguments may be shown.
    pub redact: Vec<Pointer>,
    /// Rules whose condition could not be evaluated; to be reported.
    pub unevaluated: Vec<String>,
}

impl Policy {
    /// Judges a call. The strictest of the first matching rule (or the default), the tool, the metadata and the hooks
    /// wins; among equals the one named first.
    pub fn judge(&self, facts: &CallFacts<'_>, voices: &Voices) -> Judgement {
        let Found {
            rule,
            beside,
            unevaluated,
            skipped_allow,
        } = self.find(facts);
        let first = match rule {
            Some(rule) if rule.effect_on(facts) > rule.effect => (Effect::Deny, Voice::Unverified),
            Some(rule) => (rule.effect, Voice::Rule),
            None => (self.default, Voice::Default),
        };
        let terms = rule.map_or(&self.terms, |rule| &rule.terms);
        let terms = beside.map_or_else(|| terms.clone(), |beside| terms.no_weaker_than(&beside.terms));
        let mut hidden = rule.map_or_else(Vec::new, |rule| rule.redact.clone());
        hidden.extend(
            beside
                .into_iter()
                .flat_map(|beside| beside.redact.iter().cloned()),
        );
        let others = [
            (
                Effect::Deny,
                Voice::Redaction,
                redact(facts.args, &hidden).is_err(),
            ),
            (Effect::Confirm, Voice::Tool, voices.tool_requires_confirmation),
            (Effect::Confirm, Voice::Metadata, metadata_asks(facts)),
            (
                voices.hooks.unwrap_or(Effect::Allow),
                Voice::Hooks,
                voices.hooks.is_some(),
            ),
            (Effect::Confirm, Voice::Unevaluated, skipped_allow),
        ];
        let mut strictest = first;
        for (effect, voice, speaks) in others {
            if speaks && effect > strictest.0 {
                strictest = (effect, voice);
            }
        }
        let (effect, voice) = strictest;
        Judgement {
            effect,
            voice,
            rule: rule.map(|rule| rule.name.clone()),
            reason: reason(effect, voice, rule),
            terms: (effect == Effect::Confirm).then_some(terms),
            redact: hidden,
            unevaluated,
        }
    }

    /// Judges an approved call again before it is consumed, by policy alone: the judgement, if it is now a denial
    /// (DESIGN invariant 2).
    pub fn now_denies(&self, facts: &CallFacts<'_>) -> Option<Judgement> {
        Some(self.judge(facts, &Voices::default())).filter(|judgement| judgement.effect == Effect::Deny)
    }

    fn find(&self, facts: &CallFacts<'_>) -> Found<'_> {
        let mut call = None;
        let mut found = Found {
            rule: None,
            beside: None,
            unevaluated: Vec::new(),
            skipped_allow: false,
        };
        // The strictest rule that matched on what the agent says of itself. It may only add to what follows without it.
        let mut asserted: Option<&Rule> = None;
        for rule in self.rules.iter().filter(|rule| rule.concerns(facts)) {
            let answer = rule.when.as_ref().map_or(Answer::Met, |condition| {
                condition.answer(call.get_or_insert_with(|| Call::new(facts, &self.env, &self.limits)))
            });
            if answer == Answer::Unevaluable {
                found.unevaluated.push(rule.name.clone());
                found.skipped_allow |= rule.effect == Effect::Allow;
            }
            if answer == Answer::NotMet || (answer == Answer::Unevaluable && rule.effect == Effect::Allow) {
                continue;
            }
            if rule.rests_on_assertions() {
                asserted = asserted
                    .filter(|other| other.effect_on(facts) >= rule.effect_on(facts))
                    .or(Some(rule));
            } else {
                found.rule = Some(rule);
                break;
            }
        }
        let without = found.rule.map_or(self.default, |rule| rule.effect_on(facts));
        if let Some(rule) = asserted.filter(|rule| rule.effect_on(facts) >= without) {
            // Two rules of one effect: what the agent says chooses whose name stands, never the milder terms.
            found.beside = found.rule.filter(|_| rule.effect_on(facts) == without);
            found.rule = Some(rule);
        }
        found
    }
}

/// What the rules said.
struct Found<'a> {
    rule: Option<&'a Rule>,
    /// The rule that would have matched without the agent's own word, where it is as strict: its terms hold too.
    beside: Option<&'a Rule>,
    unevaluated: Vec<String>,
    /// Whether an allow rule could not be evaluated: the call is at least confirmed.
    skipped_allow: bool,
}

/// Exactly the boolean `true` asks for a confirmation; any other value changes nothing.
fn metadata_asks(facts: &CallFacts<'_>) -> bool {
    facts
        .metadata
        .and_then(|metadata| metadata.get("requires_confirmation"))
        == Some(&Json::Bool(true))
}

fn reason(effect: Effect, voice: Voice, rule: Option<&Rule>) -> String {
    match voice {
        Voice::Rule => {
            let name = rule.map_or("", |rule| &rule.name);
            let written = rule.and_then(|rule| rule.reason.clone());
            written.unwrap_or_else(|| match effect {
                Effect::Allow => format!("The rule {name} allows this call"),
                Effect::Confirm => format!("The rule {name} asks for a person"),
                Effect::Deny => format!("The rule {name} refuses this call"),
            })
        }
        Voice::Default => match effect {
            Effect::Allow => "No rule speaks against this call".to_owned(),
            Effect::Confirm => "No rule covers this call, so a person decides".to_owned(),
            Effect::Deny => "No rule permits this call".to_owned(),
        },
        Voice::Tool => "The tool asks for a confirmation of each call".to_owned(),
        Voice::Metadata => "Whoever makes the call asks for a confirmation".to_owned(),
        Voice::Hooks if effect == Effect::Deny => "A hook refuses this call".to_owned(),
        Voice::Hooks => "A hook asks for a confirmation".to_owned(),
        Voice::Unevaluated => {
            "The condition of a rule could not be evaluated, so a person decides".to_owned()
        }
        Voice::Unverified => "No known person stands behind this call".to_owned(),
        Voice::Redaction => "What policy hides of the arguments is not a single value".to_owned(),
    }
}

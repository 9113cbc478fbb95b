//! The judgement of one call: the first matching rule speaks, other voices may only make it stricter.

use super::{
    Policy,
    facts::CallFacts,
    rule::Rule,
    source::Effect,
    when::{Answer, Call, Unevaluable},
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
    /// What people must not see of the arguments, whatever the effect: what any rule for this tool and organisation hides,
    /// matching or not. Where [`redact`] fails on them the call is denied, and nothing of the arguments may be shown.
    pub redact: Vec<Pointer>,
    /// Rules whose condition could not be evaluated; to be reported.
    pub unevaluated: Vec<Unevaluated>,
}

/// A rule whose condition could not be evaluated for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unevaluated {
    /// Its name.
    pub rule: String,
    /// Why; nothing of the call.
    pub why: Unevaluable,
}

impl Policy {
    /// Judges a call. The strictest of the first matching rule (or the default), the tool, the metadata and the hooks
    /// wins; among equals the one named first.
    ///
    /// What the agent says of itself can only add to what holds without it (invariant 13 in docs/ARCHITECTURE.md): see [`Found`].
    pub fn judge(&self, facts: &CallFacts<'_>, voices: &Voices) -> Judgement {
        let found = self.find(facts);
        let speaking = found.strictest(self.default, facts);
        let rule = speaking.map(|speaking| speaking.rule);
        let first = match rule {
            Some(rule) if rule.effect_on(facts) > rule.effect => (Effect::Deny, Voice::Unverified),
            Some(rule) => (rule.effect, Voice::Rule),
            None => (self.default, Voice::Default),
        };
        let hidden = self.hidden(facts);
        // Who speaks, and whether it is more than the agent's own word.
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
            (Effect::Confirm, Voice::Unevaluated, found.skipped_allow.is_some()),
        ];
        let mut strictest = first;
        for (effect, voice, speaks) in others {
            if speaks && effect > strictest.0 {
                strictest = (effect, voice);
            }
        }
        let (effect, voice) = strictest;
        let asked_anyway = others.iter().any(|(effect, voice, speaks)| {
            *speaks && *effect >= Effect::Confirm && *voice != Voice::Metadata
        });
        Judgement {
            effect,
            voice,
            rule: rule.map(|rule| rule.name.clone()),
            reason: reason(effect, voice, speaking, &found),
            terms: (effect == Effect::Confirm).then(|| Terms {
                redact: hidden.clone(),
                ..self.terms_of(&found, facts, asked_anyway)
            }),
            redact: hidden,
            unevaluated: found.unevaluated,
        }
    }

    /// Judges an approved call again before it is consumed, by policy alone: the judgement, if it is now a denial
    /// (invariant 2 in docs/ARCHITECTURE.md).
    pub fn now_denies(&self, facts: &CallFacts<'_>) -> Option<Judgement> {
        Some(self.judge(facts, &Voices::default())).filter(|judgement| judgement.effect == Effect::Deny)
    }

    /// Under which terms a call is asked about: those of every rule that asks, and of what would be asked without the agent's
    /// own word.
    fn terms_of(&self, found: &Found<'_>, facts: &CallFacts<'_>, asked_anyway: bool) -> Terms {
        let firm = found.firm.as_ref().map(|firm| firm.rule);
        let asks = |rule: &Rule| rule.effect_on(facts) == Effect::Confirm;
        let mut parts: Vec<&Terms> = [&found.said, &found.unsaid]
            .into_iter()
            .flatten()
            .filter(|matched| asks(matched.rule))
            .map(|matched| &matched.rule.terms)
            .collect();
        if parts.is_empty() || asked_anyway || firm.map_or(self.default == Effect::Confirm, asks) {
            parts.push(firm.map_or(&self.terms, |rule| &rule.terms));
        }
        let mut parts = parts.into_iter();
        let first = parts.next().unwrap_or(&self.terms);
        parts.fold(first.clone(), |terms, other| terms.together_with(other))
    }

    /// What any rule for this tool and organisation hides: who looks at the call of one rule must not see what another hides.
    fn hidden(&self, facts: &CallFacts<'_>) -> Vec<Pointer> {
        let mut hidden = Vec::new();
        let concerned = self.rules.iter().filter(|rule| rule.concerns(facts));
        for pointer in concerned.flat_map(|rule| &rule.redact) {
            if !hidden.contains(pointer) {
                hidden.push(pointer.clone());
            }
        }
        hidden
    }

    fn find<'a>(&'a self, facts: &CallFacts<'_>) -> Found<'a> {
        let mut call = None;
        let mut found = Found::default();
        for rule in self.rules.iter().filter(|rule| rule.concerns(facts)) {
            let mut matched = Match { rule, despite: None };
            if let Some(condition) = &rule.when {
                let call = call.get_or_insert_with(|| Call::new(facts, &self.env, &self.limits));
                if rule.rests_on_assertions() && condition.holds_unsaid(call) {
                    stricter(&mut found.unsaid, matched, facts);
                }
                match condition.answer(call) {
                    Answer::Met => {}
                    Answer::NotMet => continue,
                    Answer::Unevaluable(why) => {
                        found.unevaluated.push(Unevaluated {
                            rule: rule.name.clone(),
                            why,
                        });
                        if rule.effect == Effect::Allow {
                            found.skipped_allow.get_or_insert((rule, why));
                            continue;
                        }
                        matched.despite = Some(why);
                    }
                }
            }
            if rule.rests_on_assertions() {
                stricter(&mut found.said, matched, facts);
            } else {
                found.firm = Some(matched);
                break;
            }
        }
        found
    }
}

/// A rule that matched.
#[derive(Clone, Copy)]
struct Match<'a> {
    rule: &'a Rule,
    /// Why its condition could not be evaluated, where it counts as met for that.
    despite: Option<Unevaluable>,
}

/// Keeps the stricter of two matches; among equals the first.
fn stricter<'a>(kept: &mut Option<Match<'a>>, matched: Match<'a>, facts: &CallFacts<'_>) {
    if kept.is_none_or(|kept| kept.rule.effect_on(facts) < matched.rule.effect_on(facts)) {
        *kept = Some(matched);
    }
}

/// What the rules said. A rule that reads what the agent says of itself, and is not told to trust it, is asked twice: of what
/// the agent says, and of the same call without that. Either answer only adds to the first rule that rests on nothing of the kind.
#[derive(Default)]
struct Found<'a> {
    /// The first rule that matched whatever the agent says of itself; none leaves the default.
    firm: Option<Match<'a>>,
    /// The strictest rule before it that matched on what the agent says.
    said: Option<Match<'a>>,
    /// The strictest rule before it that holds for who says nothing.
    unsaid: Option<Match<'a>>,
    unevaluated: Vec<Unevaluated>,
    /// The first allow rule that could not be evaluated: the call is at least confirmed.
    skipped_allow: Option<(&'a Rule, Unevaluable)>,
}

impl<'a> Found<'a> {
    /// Whose rule speaks; none when it is the default.
    fn strictest(&self, default: Effect, facts: &CallFacts<'_>) -> Option<Match<'a>> {
        let effect = |matched: &Match<'_>| matched.rule.effect_on(facts);
        let firm = self.firm.as_ref().map_or(default, effect);
        let mut strictest: Option<Match<'a>> = None;
        for matched in [self.said, self.unsaid].into_iter().flatten() {
            if strictest.is_none_or(|kept| effect(&matched) > effect(&kept)) {
                strictest = Some(matched);
            }
        }
        strictest.filter(|matched| effect(matched) >= firm).or(self.firm)
    }

    /// Whether this rule speaks only because the agent's own word does not lift it.
    fn only_unsaid(&self, rule: &Rule) -> bool {
        let is = |matched: &Match<'_>| std::ptr::eq(matched.rule, rule);
        self.unsaid.as_ref().is_some_and(is) && !self.said.as_ref().is_some_and(is)
    }
}

/// Exactly the boolean `true` asks for a confirmation; any other value changes nothing.
fn metadata_asks(facts: &CallFacts<'_>) -> bool {
    facts
        .metadata
        .and_then(|metadata| metadata.get("requires_confirmation"))
        == Some(&Json::Bool(true))
}

fn reason(effect: Effect, voice: Voice, speaking: Option<Match<'_>>, found: &Found<'_>) -> String {
    match voice {
        Voice::Rule => {
            let Some(Match { rule, despite }) = speaking else {
                return String::new();
            };
            let name = &rule.name;
            let reason = rule.reason.clone().unwrap_or_else(|| match effect {
                Effect::Allow => format!("The rule {name} allows this call"),
                Effect::Confirm => format!("The rule {name} asks for a person"),
                Effect::Deny => format!("The rule {name} refuses this call"),
            });
            let sentence = reason.trim_end_matches('.');
            match despite {
                Some(why) => format!(
                    "{sentence}. Whether this concerns the call is not certain: the condition of the rule {name} could not be \
                     evaluated ({why}), so the rule holds"
                ),
                None if found.only_unsaid(rule) => format!(
                    "{sentence}. The rule {name} holds for who says nothing of itself, and what the agent says does not lift it"
                ),
                None => reason,
            }
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
        Voice::Unevaluated => match found.skipped_allow {
            Some((rule, why)) => format!(
                "The condition of the rule {} could not be evaluated ({why}), so a person decides",
                rule.name
            ),
            None => "The condition of a rule could not be evaluated, so a person decides".to_owned(),
        },
        Voice::Unverified => "No known person stands behind this call".to_owned(),
        Voice::Redaction => "What policy hides of the arguments is not a single value".to_owned(),
    }
}

//! What a card says of the right by which somebody answered: in whose place, with what beside their word, or past everybody.
//!
//! It must not decide anything: what it shows was stored by whoever decided.

use gatepost_channel::{Fact, Inert};

use super::phrase::{AuthorityWords, Phrases};
use crate::clock::Zone;
use crate::confirmation::break_glass::Broken;
use crate::confirmation::roll::Roll;
use crate::confirmation::step_up::Waiting;
use crate::confirmation::{Basis, Confirmation, Status, Vote};
use crate::ids::OperatorId;

/// Who voted, and in whose place: "Mira for Dana"; and who confirmed it.
pub fn voice(vote: &Vote, roll: &Roll, words: &AuthorityWords) -> String {
    let name = place(vote.voter(roll), vote.content.acting_for.as_ref(), roll, words);
    match &vote.content.second {
        None => name,
        Some(second) => {
            let person = roll.name_of(&second.person, second.account.as_ref()).into_owned();
            let second = place(person, second.acting_for.as_ref(), roll, words);
            words
                .confirmed_by
                .replace("{second}", &second)
                .replace("{name}", &name)
        }
    }
}

fn place(name: String, absent: Option<&OperatorId>, roll: &Roll, words: &AuthorityWords) -> String {
    match absent {
        None => name,
        Some(absent) => words
            .acting_for
            .replace("{absent}", roll.name(absent))
            .replace("{name}", &name),
    }
}

/// Who broke the glass, if somebody did.
pub fn broken(row: &Confirmation) -> Option<&Broken> {
    row.progress.basis.as_ref().and_then(Basis::broken)
}

/// The title of a request that one person approved alone.
pub fn title<'a>(row: &Confirmation, phrases: &'a Phrases) -> Option<&'a str> {
    broken(row).map(|_| phrases.authority.broken_title.as_str())
}

/// What an approval takes, and whose wait: while people are asked. Afterwards, who went past them, whom, and why.
pub fn facts(row: &Confirmation, roll: &Roll, phrases: &Phrases, zone: &Zone) -> Vec<Fact> {
    let words = &phrases.authority;
    let mut facts = Vec::new();
    let mut add = |label: &str, value: &str| {
        if !value.is_empty() {
            facts.push(Fact {
                label: label.to_owned(),
                value: Inert::new(value),
            });
        }
    };
    if row.state.status() == Status::Pending {
        let step = row.terms.decision.step_up;
        let takes = [
            (step.code, &words.takes_code),
            (step.second_person, &words.takes_second_person),
        ];
        let takes: Vec<&str> = takes
            .iter()
            .filter(|(asked, _)| *asked)
            .map(|(_, word)| word.as_str())
            .collect();
        add(&words.takes, &takes.join(" + "));
        let armed: Vec<String> = row
            .progress
            .armed
            .iter()
            .filter(|arm| arm.is_about(row))
            .map(|arm| {
                let word = match arm.waits_for(step) {
                    Waiting::Code => &words.armed_code,
                    Waiting::SecondPerson => &words.armed_second_person,
                };
                let name = place(
                    roll.name_of(&arm.person, arm.account.as_ref()).into_owned(),
                    arm.acting_for.as_ref(),
                    roll,
                    words,
                );
                word.replace("{until}", &zone.show(arm.until))
                    .replace("{name}", &name)
            })
            .collect();
        add(&words.armed, &armed.join("\n"));
    }
    if let Some(broken) = broken(row) {
        let name = roll.name(&broken.person);
        add(&words.broken, &words.broken_value.replace("{name}", name));
        let passed: Vec<&str> = broken
            .passed_over
            .iter()
            .map(|person| roll.name(person))
            .collect();
        add(&words.passed_over_label, &passed.join(", "));
        add(&phrases.facts.vote_reason, &row.without_hidden(&broken.reason));
    }
    facts
}

/// What somebody who was passed over is told. The reason is somebody's own words and is put in last, so that nothing in it is
/// taken for one of ours.
pub fn passed_over(row: &Confirmation, name: &str, reason: &str, words: &AuthorityWords) -> String {
    words
        .passed_over
        .replace("{request}", row.id.as_str())
        .replace("{tool}", row.asked.tool.as_str())
        .replace("{name}", name)
        .replace("{reason}", &row.without_hidden(reason))
}

/// What the group is told below a card of a request that one person approved alone, if one did.
pub fn to_the_group(row: &Confirmation, roll: &Roll, words: &AuthorityWords) -> Option<String> {
    let broken = broken(row)?;
    let text = words
        .in_the_group
        .replace("{tool}", row.asked.tool.as_str())
        .replace("{name}", roll.name(&broken.person));
    Some(text.replace("{reason}", &row.without_hidden(&broken.reason)))
}

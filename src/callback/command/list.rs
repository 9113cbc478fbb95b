//! Requests in a line each: our layout, names of others inert and short.

use gatepost_channel::{Inert, ReplyTone};

use super::find::{self, Waiting};
use super::{Heard, Said};
use crate::callback::Intake;
use crate::confirmation::Dossier;

/// Requests on one page of what waits.
const PER_PAGE: usize = 10;
/// Characters of a tool's or token's name in a list.
const NAME: usize = 60;

impl Intake {
    /// What waits, from this page on.
    pub(super) fn list(&self, heard: &Heard<'_>, waiting: &Waiting, page: usize) -> Said {
        let words = &heard.phrases.command;
        let count = waiting.requests.len();
        let from = page
            .saturating_sub(1)
            .saturating_mul(PER_PAGE)
            .min(count.saturating_sub(1) / PER_PAGE * PER_PAGE);
        let shown = waiting.requests.iter().skip(from).take(PER_PAGE);
        let mut lines: Vec<String> = shown.map(|dossier| self.line(heard, dossier)).collect();
        if lines.is_empty() {
            lines.push(words.nothing_waits.clone());
        } else {
            lines.insert(0, words.waits.replace("{count}", &count.to_string()));
        }
        let left = count.saturating_sub(from + PER_PAGE);
        if left > 0 {
            let more = heard.fill(&words.more).replace("{count}", &left.to_string());
            lines.push(more.replace("{page}", &(from / PER_PAGE + 2).to_string()));
        }
        if waiting.beyond {
            lines.push(words.and_beyond.clone());
        }
        metrics::counter!("gatepost_commands_total", "said" => "pending").increment(1);
        Said::new(ReplyTone::Info, lines.join("\n"))
    }

    /// One request on one line: our layout, names of others inert.
    pub(super) fn line(&self, heard: &Heard<'_>, dossier: &Dossier) -> String {
        let row = &dossier.confirmation;
        let tool = Inert::new(row.asked.tool.as_str()).one_line();
        let token = Inert::new(row.asked.token.as_str()).one_line();
        format!(
            "{} · {} · {} · {} {} · {}",
            find::code_of(&self.gatekeeper, dossier).0,
            tool.head(NAME, |piece| piece.chars().count()),
            token.head(NAME, |piece| piece.chars().count()),
            heard.phrases.command.decide_before,
            heard.home.voice.zone.show(row.expires_at),
            row.id,
        )
    }

    /// What a name means that is not one request's alone.
    pub(super) fn several(&self, heard: &Heard<'_>, found: &[Dossier]) -> Said {
        let mut lines = vec![heard.fill(&heard.phrases.command.several)];
        lines.extend(
            found
                .iter()
                .take(PER_PAGE)
                .map(|dossier| self.line(heard, dossier)),
        );
        Said::new(ReplyTone::Warning, lines.join("\n"))
    }
}

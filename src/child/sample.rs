//! What of what a child says may be shown to operators: a bounded piece of it, on one line, with what looks like a secret hidden.

use super::Heard;
use crate::config::child::ChildConfig;

/// The most characters of a sample.
const MOST: usize = 160;
/// Shorter values of the environment are too common to be hidden wherever they occur.
const SHORTEST_SECRET: usize = 6;
/// Before these words a value may stand; what follows them up to a space is hidden.
const WORDS: [&str; 8] = [
    "token",
    "secret",
    "password",
    "passwd",
    "api_key",
    "apikey",
    "authorization",
    "bearer",
];

/// Makes samples of what one child says.
#[derive(Clone)]
pub struct Sampler {
    secrets: Vec<String>,
}

impl Sampler {
    /// A sampler that also hides the values of the child's own environment.
    pub fn new(child: &ChildConfig) -> Self {
        let values = child.env.values().map(|value| value.expose().to_owned());
        Self {
            secrets: values.filter(|value| value.len() >= SHORTEST_SECRET).collect(),
        }
    }

    /// The first characters.
    pub fn head(&self, bytes: &[u8]) -> String {
        let text = self.hide(bytes);
        match text.char_indices().nth(MOST) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        }
    }

    /// The last characters. Where the beginning was cut off, what may be half a word is left out.
    pub fn tail(&self, heard: &Heard) -> String {
        let bytes = heard.bytes();
        let whole = match bytes.iter().position(u8::is_ascii_whitespace) {
            Some(at) if heard.is_cut() => bytes.get(at..).unwrap_or_default(),
            None if heard.is_cut() => return "…".to_owned(),
            _ => bytes,
        };
        let text = self.hide(whole);
        let skip = text.chars().count().saturating_sub(MOST);
        if skip == 0 {
            return text;
        }
        let kept: String = text.chars().skip(skip).collect();
        format!("…{kept}")
    }

    /// One line of visible characters, secrets hidden before anything is cut, so that no half of one is left.
    fn hide(&self, bytes: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        for secret in &self.secrets {
            text = text.replace(secret.as_str(), "‹hidden›");
        }
        let text: String = text
            .chars()
            .map(|c| if is_visible(c) { c } else { ' ' })
            .collect();
        hide_named(text.trim())
    }
}

/// Neither a control character nor one that reorders or hides its neighbours.
fn is_visible(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

/// Hides what follows a word that announces a secret: `token=abc`, `Authorization: Bearer abc`, `"password": "abc"`.
fn hide_named(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    while let Some((word, found)) = WORDS
        .iter()
        .filter_map(|word| Some((word, at + lower.get(at..)?.find(word)?)))
        .min_by_key(|(_, found)| *found)
    {
        let value = found + word.len();
        let rest = text.get(value..).unwrap_or_default();
        let gap = rest.len() - rest.trim_start_matches([' ', '=', ':', '"', '\'']).len();
        let after = rest.get(gap..).unwrap_or_default();
        let announced =
            gap > 0 && rest.get(..gap).is_some_and(|gap| gap.contains(['=', ':'])) || *word == "bearer";
        let is_word = WORDS.iter().any(|word| {
            after
                .get(..word.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(word))
        });
        shown.push_str(text.get(at..value + gap).unwrap_or_default());
        at = value + gap;
        if announced && !is_word && !after.is_empty() {
            let end = after
                .find([' ', '"', '\'', ',', ';', '&', '}'])
                .unwrap_or(after.len());
            shown.push_str("‹hidden›");
            at += end;
        }
    }
    shown.push_str(text.get(at..).unwrap_or_default());
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::Keep;

    fn sampler() -> Sampler {
        Sampler {
            secrets: vec!["hunter2-and-more".to_owned()],
        }
    }

    fn heard(text: &str) -> Heard {
        let mut heard = Heard::new(Keep::Tail(64));
        heard.take(text.as_bytes());
        heard
    }

    #[test]
    fn what_looks_like_a_secret_is_hidden() {
        for said in [
            "token=canary-41ee",
            "Authorization: Bearer canary-41ee",
            "{\"password\": \"canary-41ee\"}",
            "x API_KEY = canary-41ee y",
            "bearer canary-41ee",
        ] {
            let shown = sampler().head(said.as_bytes());
            assert!(!shown.contains("canary"), "{said}: {shown}");
        }
        assert!(!sampler().tail(&heard("hunter2-and-more")).contains("hunter"));
    }

    #[test]
    fn what_is_harmless_stays() {
        let said = "Welcome back, shell ready; the tokenizer has 4 tokens";
        assert_eq!(sampler().head(said.as_bytes()), said);
    }

    #[test]
    fn a_cut_leaves_no_half_of_a_secret() {
        let said = format!("{} token={}", "x".repeat(10), "canary".repeat(100));
        assert!(!sampler().tail(&heard(&said)).contains("canary"));
        assert_eq!(sampler().tail(&heard(&format!("{said} end"))), "end");
        assert!(sampler().head("é".repeat(500).as_bytes()).chars().count() <= MOST + 1);
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(sampler().head(b"a\nb\x1b[31m\xff"), "a b [31m\u{FFFD}");
    }
}

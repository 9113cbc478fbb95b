//! Typed questions to a value: texts, numbers, words, spans, addresses, JSON. Each answers or writes a problem down.

use std::{collections::HashSet, path::PathBuf, str::FromStr, time::Duration};

use super::{
    address,
    context::Complaint,
    duration::{ACCEPTED as SPAN_ACCEPTED, Span},
    node::{Reader, describe, did_you_mean, one_of},
    problem::ProblemKind,
    shown::{is_invisible, shown},
    yaml::{Node, Value},
};

impl<'a> Reader<'a> {
    /// A list of distinct texts with at least one item.
    pub fn texts(&self) -> Option<Vec<String>> {
        let items = self.list()?;
        if items.is_empty() {
            self.complain(
                Complaint::new(
                    ProblemKind::BadValue,
                    "found an empty list, which stands for nobody and nothing",
                )
                .accepted("a list with at least one item")
                .remedy("name at least one, or remove the key"),
            );
            return None;
        }
        self.distinct(&items)
    }

    /// A list of distinct texts that may be empty.
    pub fn texts_or_none(&self) -> Option<Vec<String>> {
        let items = self.list()?;
        self.distinct(&items)
    }

    fn distinct(&self, items: &[Reader<'a>]) -> Option<Vec<String>> {
        let before = self.cx.count();
        let mut seen = HashSet::new();
        let mut texts: Vec<String> = Vec::with_capacity(items.len());
        for item in items {
            let Some(text) = item.text() else { continue };
            if !seen.insert(text.clone()) {
                let message = format!("`{}` stands in the list twice", shown(&text));
                item.complain(Complaint::new(ProblemKind::Conflict, message).remedy("keep one of the two"));
            }
            texts.push(text);
        }
        (self.cx.count() == before).then_some(texts)
    }

    /// A text that is not blank, without control characters other than line ends and tabs. For what people read.
    pub fn prose(&self) -> Option<String> {
        let Value::Text(text) = self.value() else {
            self.wrong_type(&describe(self.value()), "text");
            return None;
        };
        if text.trim().is_empty() {
            let message = "found an empty text";
            self.complain(
                Complaint::new(ProblemKind::BadValue, message)
                    .accepted("text")
                    .remedy("give the key a value, or remove it"),
            );
            return None;
        }
        if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
            self.bad_value("text without control characters", "type the value anew");
            return None;
        }
        Some(text.clone())
    }

    /// As [`Reader::prose`], without invisible characters: a name or glob with one would match nothing.
    pub fn text(&self) -> Option<String> {
        let text = self.prose()?;
        if text.chars().any(is_invisible) {
            self.bad_value("text without invisible characters", "type the value anew");
            return None;
        }
        Some(text)
    }

    /// A text of one line, at most `longest` characters, without blanks around it.
    pub fn line(&self, longest: usize) -> Option<String> {
        let text = self.text()?;
        if text.contains(['\n', '\t']) || text.trim() != text || text.chars().count() > longest {
            self.bad_value(
                format!("one line of at most {longest} characters"),
                "shorten it, without blanks around it",
            );
            return None;
        }
        Some(text)
    }

    /// A name of at most 64 letters, digits, `.`, `_` and `-`, beginning with a letter or digit.
    pub fn name(&self) -> Option<String> {
        let text = self.text()?;
        let ok = text.len() <= 64
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
        if !ok {
            self.bad_value(
                "1 to 64 of the characters A-Z a-z 0-9 . _ -, beginning with a letter or digit",
                "choose another name",
            );
            return None;
        }
        Some(text)
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Option<bool> {
        if let Value::Bool(value) = self.value() {
            return Some(*value);
        }
        self.wrong_type(&describe(self.value()), "true or false");
        None
    }

    /// A whole number within bounds, both included.
    pub fn integer<T>(&self, least: T, most: T) -> Option<T>
    where
        T: TryFrom<i64> + PartialOrd + std::fmt::Display + Copy,
    {
        let accepted = format!("a whole number from {least} to {most}");
        let Value::Number(spelling) = self.value() else {
            self.wrong_type(&describe(self.value()), &accepted);
            return None;
        };
        let number = spelling
            .parse::<i64>()
            .ok()
            .and_then(|number| T::try_from(number).ok());
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.bad_value(accepted, "choose a number within the bounds");
        }
        number
    }

    /// One of a closed set of words.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let accepted = one_of(&words);
        let Value::Text(text) = self.value() else {
            self.wrong_type(&describe(self.value()), &accepted);
            return None;
        };
        if let Some((_, value)) = choices.iter().find(|(word, _)| word == text) {
            return Some(*value);
        }
        self.bad_value(
            accepted,
            did_you_mean(text, &words).unwrap_or_else(|| "choose one of these".into()),
        );
        None
    }

    /// A text that parses, such as an address.
    pub fn parsed<T>(&self, accepted: &str) -> Option<T>
    where
        T: FromStr<Err: std::fmt::Display>,
    {
        let Value::Text(text) = self.value() else {
            self.wrong_type(&describe(self.value()), accepted);
            return None;
        };
        match text.parse() {
            Ok(value) => Some(value),
            Err(fault) => {
                let message = format!("found {}: {fault}", describe(self.value()));
                self.complain(
                    Complaint::new(ProblemKind::BadValue, message)
                        .accepted(accepted)
                        .remedy("write it in one of the accepted spellings"),
                );
                None
            }
        }
    }

    /// A span of time within bounds, both included.
    pub fn span(&self, least: Duration, most: Duration) -> Option<Duration> {
        let span = match self.value() {
            // A bare number cannot tell its unit, whatever its size: say so instead of naming its type.
            Value::Number(spelling) if spelling.starts_with('-') || spelling.parse::<f64>().is_ok() => {
                let fault = spelling
                    .parse::<Span>()
                    .err()
                    .map_or_else(String::new, |fault| format!(": {fault}"));
                let message = format!("found the number {}{fault}", shown(spelling));
                self.complain(
                    Complaint::new(ProblemKind::BadValue, message)
                        .accepted(SPAN_ACCEPTED)
                        .remedy("write a positive number with its unit"),
                );
                return None;
            }
            _ => self.parsed::<Span>(SPAN_ACCEPTED)?.get(),
        };
        if span < least || span > most {
            self.bad_value(
                format!("a span from {} to {}", in_words(least), in_words(most)),
                "choose a span within the bounds",
            );
            return None;
        }
        Some(span)
    }

    /// An address of the web, `https` unless the host is loopback or `plain_allowed` says otherwise.
    pub fn url(&self, plain_allowed: bool) -> Option<url::Url> {
        address::read_url(self, plain_allowed)
    }

    /// A path, relative to the folder of the file.
    pub fn path_value(&self) -> Option<PathBuf> {
        self.text().map(|text| self.cx.resolve(&text))
    }

    /// The value as JSON, for what other rooms judge. Numbers keep their value.
    pub fn json(&self) -> Option<serde_json::Value> {
        let before = self.cx.count();
        let value = self.json_value(self.node);
        (self.cx.count() == before).then_some(value)
    }

    fn json_value(&self, node: &Node) -> serde_json::Value {
        use serde_json::Value as Json;
        match &node.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Text(text) => Json::String(text.clone()),
            Value::Number(spelling) => serde_json::from_str(spelling).map_or_else(
                |_| {
                    let message = format!("found the number {}", shown(spelling));
                    self.cx.complain(
                        Some(node.at),
                        &self.path,
                        Complaint::new(ProblemKind::BadValue, message)
                            .accepted("a number as JSON spells it")
                            .remedy("spell it in decimal, or put it in quotes"),
                    );
                    Json::Null
                },
                Json::Number,
            ),
            Value::List(items) => Json::Array(items.iter().map(|item| self.json_value(item)).collect()),
            Value::Map(entries) => Json::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.clone(), self.json_value(&entry.value)))
                    .collect(),
            ),
        }
    }

    /// The value as a JSON object.
    pub fn json_object(&self) -> Option<serde_json::Map<String, serde_json::Value>> {
        self.map()?;
        match self.json()? {
            serde_json::Value::Object(object) => Some(object),
            _ => None,
        }
    }
}

fn in_words(span: Duration) -> String {
    let millis = span.as_millis();
    for (unit, scale) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
        if millis >= scale && millis.is_multiple_of(scale) {
            return format!("{}{unit}", millis / scale);
        }
    }
    format!("{millis}ms")
}

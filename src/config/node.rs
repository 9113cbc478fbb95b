//! Typed reading of a YAML tree: each question either answers or writes down a problem, so that all problems of a file
//! are told in one go.
//!
//! It knows no section. Whoever decodes a mapping asks for its keys one by one and ends with [`MapReader::finish`],
//! which reports what was never asked for; the keys asked for are remembered, so that the JSON Schema can be compared
//! with the decoder.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    fmt::Write as _,
    path::{Path, PathBuf},
    str::FromStr,
};

use super::{
    nearest::nearest,
    problem::{Location, Problem, ProblemKind, Warning},
    secret::{self, Secret, SecretFault, Trimmed},
    yaml::{Entry, Node, Value, shown},
};

/// How environment variables are looked up; a parameter, so that tests can set it.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What was written down while a file is read, and what reading it needs.
pub struct Context<'a> {
    file: String,
    base: PathBuf,
    env: Env<'a>,
    problems: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Warning>>,
    known: RefCell<BTreeSet<String>>,
}

/// A problem that does not know its place yet.
#[derive(Debug, Clone)]
pub struct Complaint {
    kind: ProblemKind,
    message: String,
    accepted: Option<String>,
    remedy: Option<String>,
}

impl Complaint {
    /// A problem of this family; `message` says what was found.
    pub fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            accepted: None,
            remedy: None,
        }
    }

    /// Says what is accepted.
    #[must_use]
    pub fn accepted(mut self, accepted: impl Into<String>) -> Self {
        self.accepted = Some(accepted.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Gives it its place.
    pub fn at(self, file: &str, at: Option<Location>, key: impl Into<String>) -> Problem {
        let Self {
            kind,
            message,
            accepted,
            remedy,
        } = self;
        Problem {
            kind,
            file: file.to_owned(),
            at,
            key: key.into(),
            message,
            accepted,
            remedy,
        }
    }
}

impl<'a> Context<'a> {
    /// `file` is how the file is named in messages; paths in it are relative to the folder `base`.
    pub fn new(file: &str, base: &Path, env: Env<'a>) -> Self {
        Self {
            file: file.to_owned(),
            base: base.to_owned(),
            env,
            problems: RefCell::default(),
            warnings: RefCell::default(),
            known: RefCell::default(),
        }
    }

    /// The tree's outermost value.
    pub fn root<'n>(&'n self, node: &'n Node) -> Reader<'n> {
        Reader {
            cx: self,
            node,
            at: node.at,
            path: String::new(),
            shape: String::new(),
        }
    }

    /// The file as it is named in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// A path of the file, relative to its folder.
    pub fn resolve(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    /// Writes a problem down.
    pub fn complain(&self, at: Option<Location>, key: &str, complaint: Complaint) {
        self.problems.borrow_mut().push(complaint.at(&self.file, at, key));
    }

    /// Writes a warning down.
    pub fn warn(&self, at: Option<Location>, key: &str, message: impl Into<String>) {
        let warning = Warning {
            file: self.file.clone(),
            at,
            key: key.to_owned(),
            message: message.into(),
        };
        self.warnings.borrow_mut().push(warning);
    }

    /// How many problems there are by now.
    pub fn count(&self) -> usize {
        self.problems.borrow().len()
    }

    /// Every key that was asked for, as `channels[].mode` or `hooks.builtins.*.enabled`.
    pub fn known(&self) -> BTreeSet<String> {
        self.known.borrow().clone()
    }

    /// What was written down.
    pub fn into_found(self) -> (Vec<Problem>, Vec<Warning>) {
        (self.problems.into_inner(), self.warnings.into_inner())
    }
}

/// One value of the tree, its place and its path.
#[derive(Clone)]
pub struct Reader<'a> {
    cx: &'a Context<'a>,
    node: &'a Node,
    at: Location,
    path: String,
    shape: String,
}

impl<'a> Reader<'a> {
    /// The path of the key.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where the key stands, or the item of a list.
    pub fn at(&self) -> Location {
        self.at
    }

    /// What the reading of the file shares.
    pub fn context(&self) -> &'a Context<'a> {
        self.cx
    }

    /// The raw value.
    pub fn value(&self) -> &'a Value {
        &self.node.value
    }

    /// Writes down a problem of this value.
    pub fn complain(&self, complaint: Complaint) {
        self.cx.complain(Some(self.at), &self.path, complaint);
    }

    /// Writes down a warning about this value.
    pub fn warn(&self, message: impl Into<String>) {
        self.cx.warn(Some(self.at), &self.path, message);
    }

    /// A problem of a value that is of the right type but not accepted.
    pub fn bad_value(&self, accepted: impl Into<String>, remedy: impl Into<String>) {
        let message = format!("found {}", describe(self.value()));
        self.complain(
            Complaint::new(ProblemKind::BadValue, message)
                .accepted(accepted)
                .remedy(remedy),
        );
    }

    fn wrong_type(&self, found: &str, accepted: &str) {
        let remedy = match self.value() {
            Value::Null => "give the key a value, or remove it",
            Value::Number(_) | Value::Bool(_) if accepted.starts_with("text") => "put the value in quotes",
            _ => "see examples/gatepost.yaml for the shape of this key",
        };
        let message = format!("found {found}");
        self.complain(
            Complaint::new(ProblemKind::WrongType, message)
                .accepted(accepted)
                .remedy(remedy),
        );
    }

    /// The value as a mapping.
    pub fn map(&self) -> Option<MapReader<'a>> {
        let Value::Map(entries) = self.value() else {
            self.wrong_type(&describe_type(self.value()), "a mapping of keys to values");
            return None;
        };
        Some(MapReader {
            reader: self.clone(),
            entries,
            asked: Vec::new(),
        })
    }

    /// The entries of a mapping whose keys are names given by the user.
    pub fn names(&self) -> Option<Vec<(&'a str, Reader<'a>)>> {
        let map = self.map()?;
        Some(
            map.entries
                .iter()
                .map(|entry| (entry.key.as_str(), map.child(entry, "*")))
                .collect(),
        )
    }

    /// The items of a list.
    pub fn list(&self) -> Option<Vec<Reader<'a>>> {
        let Value::List(items) = self.value() else {
            self.wrong_type(&describe_type(self.value()), "a list");
            return None;
        };
        let item = |(index, node): (usize, &'a Node)| Reader {
            cx: self.cx,
            node,
            at: node.at,
            path: format!("{}[{index}]", self.path),
            shape: format!("{}[]", self.shape),
        };
        Some(items.iter().enumerate().map(item).collect())
    }

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
        let mut texts: Vec<String> = Vec::with_capacity(items.len());
        for item in items {
            let Some(text) = item.text() else { continue };
            if texts.contains(&text) {
                item.complain(
                    Complaint::new(
                        ProblemKind::Conflict,
                        format!("`{}` stands in the list twice", shown(&text)),
                    )
                    .remedy("keep one of the two"),
                );
            }
            texts.push(text);
        }
        (self.cx.count() == before).then_some(texts)
    }

    /// A text that is not blank, without control or invisible characters.
    pub fn text(&self) -> Option<String> {
        let Value::Text(text) = self.value() else {
            self.wrong_type(&describe(self.value()), "text");
            return None;
        };
        if text.trim().is_empty() {
            self.complain(
                Complaint::new(ProblemKind::BadValue, "found an empty text")
                    .accepted("text")
                    .remedy("give the key a value, or remove it"),
            );
            return None;
        }
        if text
            .chars()
            .any(|c| (c.is_control() && c != '\n') || super::yaml::is_invisible(c))
        {
            self.bad_value(
                "text without control or invisible characters",
                "type the value anew",
            );
            return None;
        }
        Some(text.clone())
    }

    /// A text of one line, at most `longest` characters, without blanks around it.
    pub fn line(&self, longest: usize) -> Option<String> {
        let text = self.text()?;
        if text.contains('\n') || text.trim() != text || text.chars().count() > longest {
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
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Some(number),
            None => {
                self.bad_value(accepted, "choose a number within the bounds");
                None
            }
        }
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
        let text = match self.value() {
            Value::Text(text) => text,
            other => {
                self.wrong_type(&describe(other), accepted);
                return None;
            }
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
    pub fn span(&self, least: std::time::Duration, most: std::time::Duration) -> Option<std::time::Duration> {
        use super::duration::{ACCEPTED, Span};
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
                        .accepted(ACCEPTED)
                        .remedy("write a positive number with its unit"),
                );
                return None;
            }
            _ => self.parsed::<Span>(ACCEPTED)?.get(),
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
        super::address::read_url(self, plain_allowed)
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

    /// A secret: a literal, `{env: NAME}` or `{file: PATH}`, under the one rule of [`Secret::accept`].
    pub fn secret(&self) -> Option<Secret> {
        let (raw, origin) = self.secret_text()?;
        match Secret::accept(&raw) {
            Ok((secret, Trimmed::No)) => Some(secret),
            Ok((secret, Trimmed::Yes)) => {
                self.warn(format!(
                    "blanks, a line end or a byte-order mark around the secret{origin} were removed"
                ));
                Some(secret)
            }
            Err(fault) => {
                self.bad_secret(&origin, fault);
                None
            }
        }
    }

    /// A secret that is sent in an HTTP header.
    pub fn header_secret(&self) -> Option<Secret> {
        match self.secret()?.for_header() {
            Ok(secret) => Some(secret),
            Err(fault) => {
                self.bad_secret("", fault);
                None
            }
        }
    }

    /// An entry of a child's environment: a literal as it stands, or `{env: NAME}` and `{file: PATH}` as for secrets.
    pub fn env_value(&self) -> Option<Secret> {
        match self.value() {
            Value::Text(text) if text.contains('\0') => {
                self.wrong_type("text with a NUL character", "text");
                None
            }
            Value::Text(text) => Some(Secret::verbatim(text)),
            Value::Number(spelling) => Some(Secret::verbatim(spelling)),
            _ => self.secret(),
        }
    }

    fn bad_secret(&self, origin: &str, fault: SecretFault) {
        let remedy = match fault {
            SecretFault::Empty => "set it: nothing runs without its secret",
            SecretFault::Quoted => "remove the quotes: they would be part of the secret",
            SecretFault::SecondLine => "keep the line with the secret only",
            SecretFault::EscapedLineEnd => {
                "remove the last two characters: no shell turned them into a line end"
            }
            SecretFault::Invisible | SecretFault::NotForHeader => "copy the secret anew, as plain text",
            SecretFault::NotText => "store the file as UTF-8",
            SecretFault::TooLong => "check that this is the right value",
        };
        let message = format!("the secret{origin} cannot be used: {fault}");
        self.complain(Complaint::new(ProblemKind::BadSecret, message).remedy(remedy));
    }

    /// The raw text of a secret and, for messages, where it came from.
    fn secret_text(&self) -> Option<(zeroize::Zeroizing<String>, String)> {
        const ACCEPTED: &str = "text, {env: NAME} or {file: PATH}";
        let entries = match self.value() {
            Value::Text(text) => return Some((text.clone().into(), String::new())),
            Value::Map(entries) => entries,
            other => {
                self.wrong_type(&describe_type(other), ACCEPTED);
                return None;
            }
        };
        let mut map = MapReader {
            reader: self.clone(),
            entries,
            asked: Vec::new(),
        };
        let (env, file) = (map.optional("env"), map.optional("file"));
        map.finish();
        match (env, file) {
            (Some(env), None) => env.from_environment(),
            (None, Some(file)) => file.from_file(),
            _ => {
                self.complain(
                    Complaint::new(
                        ProblemKind::WrongType,
                        "found a mapping without exactly one of `env` and `file`",
                    )
                    .accepted(ACCEPTED)
                    .remedy("name one source of the secret"),
                );
                None
            }
        }
    }

    fn from_environment(&self) -> Option<(zeroize::Zeroizing<String>, String)> {
        let is_name = |text: &str| {
            text.len() <= 128
                && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let name = match self.value() {
            Value::Text(name) if is_name(name) => name,
            // The text may be the secret itself, put in the wrong place: it is not repeated.
            _ => {
                self.complain(
                    Complaint::new(
                        ProblemKind::BadValue,
                        "found what is not the name of an environment variable",
                    )
                    .accepted("letters, digits and _")
                    .remedy("write the variable's name here, not its value"),
                );
                return None;
            }
        };
        match (self.cx.env)(name) {
            Some(value) => Some((value.into(), format!(" in the environment variable {name}"))),
            None => {
                self.complain(
                    Complaint::new(
                        ProblemKind::BadSecret,
                        format!("the environment variable {name} is not set, or is not UTF-8 text"),
                    )
                    .remedy(format!("set {name} before the start, or use {{file: PATH}}")),
                );
                None
            }
        }
    }

    fn from_file(&self) -> Option<(zeroize::Zeroizing<String>, String)> {
        let text = self.text()?;
        let path = self.cx.resolve(&text);
        match secret::read_file(&path) {
            Ok(raw) => Some((raw, format!(" in the file {}", shown_path(&path)))),
            Err(secret::SecretFileError::Fault(fault)) => {
                self.bad_secret(&format!(" in the file {}", shown_path(&path)), fault);
                None
            }
            Err(fault) => {
                self.complain(
                    Complaint::new(ProblemKind::BadSecret, format!("{}: {fault}", shown_path(&path))).remedy(
                        "create the file with the secret in it; a relative path starts at the folder of the configuration",
                    ),
                );
                None
            }
        }
    }
}

/// The keys of one mapping.
pub struct MapReader<'a> {
    reader: Reader<'a>,
    entries: &'a [Entry],
    asked: Vec<&'static str>,
}

impl<'a> MapReader<'a> {
    /// The value of a key that may be left out.
    pub fn optional(&mut self, key: &'static str) -> Option<Reader<'a>> {
        self.asked.push(key);
        self.reader
            .cx
            .known
            .borrow_mut()
            .insert(joined(&self.reader.shape, key));
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(self.child(entry, key))
    }

    /// The value of a key that must be there.
    pub fn required(&mut self, key: &'static str) -> Option<Reader<'a>> {
        let found = self.optional(key);
        if found.is_none() {
            self.missing(key, "add the key");
        }
        found
    }

    /// Whether the key stands there, without deciding what it may hold.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Writes down that a key is missing.
    pub fn missing(&self, key: &str, remedy: &str) {
        let message = format!("the key `{key}` is missing");
        self.reader.cx.complain(
            Some(self.reader.at),
            &joined(&self.reader.path, key),
            Complaint::new(ProblemKind::MissingKey, message).remedy(remedy),
        );
    }

    /// The mapping itself.
    pub fn reader(&self) -> &Reader<'a> {
        &self.reader
    }

    /// Reports every key that nobody asked for.
    pub fn finish(self) {
        for entry in self
            .entries
            .iter()
            .filter(|entry| !self.asked.contains(&entry.key.as_str()))
        {
            let mut free = self.asked.clone();
            free.retain(|key| !self.has(key));
            let remedy = did_you_mean(&entry.key, &free)
                .or_else(|| did_you_mean(&entry.key, &self.asked))
                .unwrap_or_else(|| "remove the key, or move it to where it belongs".into());
            self.reader.cx.complain(
                Some(entry.at),
                &joined(&self.reader.path, &entry.key),
                Complaint::new(
                    ProblemKind::UnknownKey,
                    format!("the key `{}` is not known here", shown(&entry.key)),
                )
                .accepted(one_of(&self.asked))
                .remedy(remedy),
            );
        }
    }

    fn child(&self, entry: &'a Entry, shape: &str) -> Reader<'a> {
        Reader {
            cx: self.reader.cx,
            node: &entry.value,
            at: entry.at,
            path: joined(&self.reader.path, &entry.key),
            shape: joined(&self.reader.shape, shape),
        }
    }
}

/// The path of a key below another.
pub fn joined(path: &str, key: &str) -> String {
    let plain = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '*'));
    match (path.is_empty(), plain) {
        (true, true) => key.to_owned(),
        (false, true) => format!("{path}.{key}", key = shown(key)),
        (_, false) => format!("{path}[\"{}\"]", shown(key)),
    }
}

/// `did you mean …?`, when one of the words is close.
pub fn did_you_mean(word: &str, words: &[&str]) -> Option<String> {
    nearest(word, words.iter().copied()).map(|meant| format!("did you mean `{meant}`?"))
}

/// A list of words for people.
pub fn one_of(words: &[&str]) -> String {
    let mut out = String::new();
    for (index, word) in words.iter().enumerate() {
        let separator = if index == 0 {
            ""
        } else if index + 1 == words.len() {
            " or "
        } else {
            ", "
        };
        // Writing to a String cannot fail.
        let _ = write!(out, "{separator}{word}");
    }
    out
}

/// A path as it may stand in a message.
pub fn shown_path(path: &Path) -> String {
    path.to_string_lossy()
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .take(300)
        .collect()
}

fn in_words(span: std::time::Duration) -> String {
    let millis = span.as_millis();
    for (unit, scale) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)] {
        if millis >= scale && millis.is_multiple_of(scale) {
            return format!("{}{unit}", millis / scale);
        }
    }
    format!("{millis}ms")
}

/// The value for a message. Not for secrets.
fn describe(value: &Value) -> String {
    match value {
        Value::Text(text) if may_be_secret(text) => {
            format!(
                "a text of {} characters (not shown: it may be a secret)",
                text.chars().count()
            )
        }
        Value::Text(text) => format!("the text `{}`", shown(text)),
        Value::Number(spelling) => format!("the number {}", shown(spelling)),
        Value::Bool(value) => value.to_string(),
        Value::Null | Value::List(_) | Value::Map(_) => describe_type(value),
    }
}

/// Whether a text that stands under a key for something else could be a secret in the wrong place.
fn may_be_secret(text: &str) -> bool {
    let token = text.len() >= 20
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/' | '=' | '.'))
        && text.chars().any(|c| c.is_ascii_digit())
        && text.chars().any(|c| c.is_ascii_alphabetic());
    let known = ["xox", "xapp-", "sk-", "Bearer "]
        .iter()
        .any(|head| text.starts_with(head));
    token || known || (text.contains("://") && text.contains('@'))
}

/// The value's type, without what it holds.
fn describe_type(value: &Value) -> String {
    match value {
        Value::Null => "nothing (null)",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::Text(_) => "text",
        Value::List(_) => "a list",
        Value::Map(_) => "a mapping",
    }
    .to_owned()
}

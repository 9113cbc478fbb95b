//! YAML text as a tree whose nodes know their line and column. The one place that touches the YAML parser.
//!
//! It knows no key. The text is hostile: size, nesting and the expansion of aliases are bounded, nothing recurses
//! deeper than [`MAX_DEPTH`], tags are refused, and a key that stands twice is a problem instead of a silent choice.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::{
    node::joined,
    problem::{Location, ProblemKind},
    shown::shown,
};

/// The longest text that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// The deepest nesting of lists and mappings.
pub const MAX_DEPTH: usize = 64;
/// The most that a configuration may unfold to.
const MAX_WEIGHT: usize = 100_000;

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where the value begins.
    pub at: Location,
    /// The value.
    pub value: Value,
}

/// A value of the YAML core schema. Numbers keep their spelling.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`, `~` or nothing at all.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number as it was written.
    Number(String),
    /// Anything else that is a scalar.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the text.
    Map(Vec<Entry>),
}

/// One key of a mapping with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub at: Location,
    /// The value.
    pub value: Node,
}

/// A fault of the text itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its family.
    pub kind: ProblemKind,
    /// Where.
    pub at: Location,
    /// The path of the key, as far as it is known.
    pub key: String,
    /// What was found; never more of the text than the name of a key.
    pub message: String,
    /// What to do.
    pub remedy: &'static str,
}

/// How much of a text is read.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The most bytes.
    pub bytes: usize,
    /// The most that it may unfold to, aliases included: one per node and one more per 32 bytes of text.
    pub weight: usize,
}

/// The bounds of a configuration.
const CONFIGURATION: Bounds = Bounds {
    bytes: MAX_BYTES,
    weight: MAX_WEIGHT,
};

/// Reads one document of the size of a configuration. Faults that leave the tree usable stand beside it; without a tree there is at least one.
pub fn read(text: &str) -> (Option<Node>, Vec<Fault>) {
    read_within(text, CONFIGURATION)
}

/// As [`read`], within other bounds.
pub fn read_within(text: &str, bounds: Bounds) -> (Option<Node>, Vec<Fault>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut builder = Builder::within(bounds);
    if text.len() > bounds.bytes {
        builder.fault(
            ProblemKind::TooLarge,
            START,
            format!(
                "the file has {} bytes, more than the {} that are read",
                text.len(),
                bounds.bytes
            ),
            "move long texts into files of their own",
        );
        return (None, builder.faults);
    }
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let step = match event {
            Ok((event, span)) => builder.take(event, span),
            Err(error) => {
                builder.syntax(&error);
                Err(Stop)
            }
        };
        if step.is_err() {
            return (None, builder.faults);
        }
    }
    if builder.root.is_none() && builder.faults.is_empty() {
        builder.fault(
            ProblemKind::Syntax,
            START,
            "the file is empty".into(),
            "write at least `policy:`, `channels:` and `operators:`; see examples/gatepost.yaml",
        );
    }
    (builder.root, builder.faults)
}

const START: Location = Location { line: 1, column: 1 };

/// The reading cannot go on; the reason is among the faults.
struct Stop;

struct Builder {
    most: usize,
    open: Vec<Frame>,
    root: Option<Node>,
    documents: usize,
    anchors: HashMap<usize, Node>,
    weight: usize,
    faults: Vec<Fault>,
}

struct Frame {
    at: Location,
    anchor: usize,
    kind: FrameKind,
}

enum FrameKind {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        seen: HashMap<String, Location>,
        pending: Option<Pending>,
    },
}

/// A key whose value has not come yet.
enum Pending {
    Key(String, Location),
    /// The key was refused; its value is read and dropped.
    Refused,
}

impl Builder {
    fn within(bounds: Bounds) -> Self {
        Self {
            most: bounds.weight,
            open: Vec::new(),
            root: None,
            documents: 0,
            anchors: HashMap::new(),
            weight: 0,
            faults: Vec::new(),
        }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Stop> {
        let at = Location {
            line: span.start.line().max(1),
            column: span.start.col().saturating_add(1),
        };
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.fault(
                        ProblemKind::Syntax,
                        at,
                        "a second document begins here".into(),
                        "keep one document in the file: remove the line `---`",
                    );
                    return Err(Stop);
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.is_some(), at);
                let value = resolve(&text, style);
                self.complete(Node { at, value }, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), at);
                self.open(at, anchor, FrameKind::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), at);
                self.open(
                    at,
                    anchor,
                    FrameKind::Map {
                        entries: Vec::new(),
                        seen: HashMap::new(),
                        pending: None,
                    },
                )
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(anchor) => self.unfold(anchor, at),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn open(&mut self, at: Location, anchor: usize, kind: FrameKind) -> Result<(), Stop> {
        if self.open.len() >= MAX_DEPTH {
            return Err(self.too_deep(at));
        }
        self.open.push(Frame { at, anchor, kind });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Stop> {
        let Some(frame) = self.open.pop() else {
            return Ok(());
        };
        let value = match frame.kind {
            FrameKind::List(items) => Value::List(items),
            FrameKind::Map { entries, .. } => Value::Map(entries),
        };
        self.complete(Node { at: frame.at, value }, frame.anchor)
    }

    /// Puts a copy of an anchored node in, if the whole stays within the bounds.
    fn unfold(&mut self, anchor: usize, at: Location) -> Result<(), Stop> {
        let Some(target) = self.anchors.get(&anchor) else {
            self.fault(
                ProblemKind::Syntax,
                at,
                "an alias of a node that is not complete yet".into(),
                "an alias can only name an anchor that stands before it and does not contain it",
            );
            return Err(Stop);
        };
        let (weight, depth) = measure(target);
        if self.open.len() + depth > MAX_DEPTH {
            return Err(self.too_deep(at));
        }
        self.weigh(weight, at)?;
        let Some(mut copy) = self.anchors.get(&anchor).cloned() else {
            return Err(Stop);
        };
        copy.at = at;
        self.attach(copy);
        Ok(())
    }

    fn complete(&mut self, node: Node, anchor: usize) -> Result<(), Stop> {
        self.weigh(own_weight(&node), node.at)?;
        if anchor > 0 {
            let (weight, _) = measure(&node);
            self.weigh(weight, node.at)?;
            self.anchors.insert(anchor, node.clone());
        }
        self.attach(node);
        Ok(())
    }

    fn attach(&mut self, node: Node) {
        let Some(frame) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return;
        };
        let (entries, seen, pending) = match &mut frame.kind {
            FrameKind::List(items) => return items.push(node),
            FrameKind::Map {
                entries,
                seen,
                pending,
            } => (entries, seen, pending),
        };
        match pending.take() {
            Some(Pending::Key(key, at)) => entries.push(Entry { key, at, value: node }),
            Some(Pending::Refused) => {}
            None => {
                let at = node.at;
                match accept_key(seen, node) {
                    Ok(key) => *pending = Some(Pending::Key(key, at)),
                    Err((kind, message, remedy)) => {
                        *pending = Some(Pending::Refused);
                        self.fault(kind, at, message, remedy);
                    }
                }
            }
        }
    }

    /// The path of the value that is being read.
    fn path(&self) -> String {
        let step = |path: String, frame: &Frame| match &frame.kind {
            FrameKind::List(items) => format!("{path}[{}]", items.len()),
            FrameKind::Map {
                pending: Some(Pending::Key(key, _)),
                ..
            } => joined(&path, key),
            FrameKind::Map { .. } => path,
        };
        self.open.iter().fold(String::new(), step)
    }

    fn weigh(&mut self, weight: usize, at: Location) -> Result<(), Stop> {
        self.weight = self.weight.saturating_add(weight);
        if self.weight <= self.most {
            return Ok(());
        }
        self.fault(
            ProblemKind::TooLarge,
            at,
            "the text unfolds to more than is read".into(),
            "use fewer aliases and entries",
        );
        Err(Stop)
    }

    fn too_deep(&mut self, at: Location) -> Stop {
        let message = format!("nested deeper than {MAX_DEPTH} levels");
        self.fault(ProblemKind::TooLarge, at, message, "flatten the value");
        Stop
    }

    fn refuse_tag(&mut self, tagged: bool, at: Location) {
        if tagged {
            self.fault(
                ProblemKind::Syntax,
                at,
                "a YAML tag (`!…`) means nothing here".into(),
                "remove the tag; put text that begins with `!` in quotes",
            );
        }
    }

    fn syntax(&mut self, error: &ScanError) {
        let mark = error.marker();
        let at = Location {
            line: mark.line().max(1),
            column: mark.col().saturating_add(1),
        };
        self.fault(
            ProblemKind::Syntax,
            at,
            format!("not YAML: {}", error.info()),
            match error.info() {
                info if info.contains("anchor") => "put text that begins with `*` or `&` in quotes",
                info if info.contains("tab") => "indent with blanks: replace the tab on this line or the next",
                _ => "check the indentation of this line and the one before it, colons, and quotes around text with `: `, `#` or `*`",
            },
        );
    }

    fn fault(&mut self, kind: ProblemKind, at: Location, message: String, remedy: &'static str) {
        let key = self.path();
        self.faults.push(Fault {
            kind,
            at,
            key,
            message,
            remedy,
        });
    }
}

/// The text of a key that was not seen before, or why it is refused.
fn accept_key(
    seen: &mut HashMap<String, Location>,
    node: Node,
) -> Result<String, (ProblemKind, String, &'static str)> {
    let key = match node.value {
        Value::Text(text) | Value::Number(text) => text,
        Value::Bool(value) => value.to_string(),
        Value::Null | Value::List(_) | Value::Map(_) => {
            let remedy = "write the key as a word; put a value that begins with `{` or `[` in quotes";
            return Err((ProblemKind::Syntax, "a key that is not text".to_owned(), remedy));
        }
    };
    if let Some(first) = seen.insert(key.clone(), node.at) {
        let message = format!(
            "the key `{}` stands here a second time; before on line {}",
            shown(&key),
            first.line
        );
        return Err((ProblemKind::DuplicateKey, message, "keep one of the two"));
    }
    Ok(key)
}

/// The weight of a node without what it holds.
fn own_weight(node: &Node) -> usize {
    match &node.value {
        Value::Number(text) | Value::Text(text) => 1 + text.len() / 32,
        Value::Map(entries) => 1 + entries.iter().map(|entry| entry.key.len() / 32).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::List(_) => 1,
    }
}

/// Weight and depth of a node with what it holds. The depth is at most [`MAX_DEPTH`], so the recursion is bounded.
fn measure(node: &Node) -> (usize, usize) {
    let inner = |(weight, depth): (usize, usize), child: &Node| {
        let (w, d) = measure(child);
        (weight.saturating_add(w), depth.max(d))
    };
    let (weight, depth) = match &node.value {
        Value::List(items) => items.iter().fold((0, 0), inner),
        Value::Map(entries) => entries.iter().map(|entry| &entry.value).fold((0, 0), inner),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => return (own_weight(node), 0),
    };
    (weight.saturating_add(own_weight(node)), depth + 1)
}

/// The core schema of YAML 1.2 (section 10.3): only unquoted scalars can be anything but text.
fn resolve(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ if is_number(text) => Value::Number(text.to_owned()),
        _ => Value::Text(text.to_owned()),
    }
}

fn is_number(text: &str) -> bool {
    let digits = |text: &str, ok: fn(&u8) -> bool| !text.is_empty() && text.as_bytes().iter().all(ok);
    if let Some(hex) = text.strip_prefix("0x") {
        return digits(hex, u8::is_ascii_hexdigit);
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return digits(octal, |byte| (b'0'..=b'7').contains(byte));
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return false;
    }
    unsigned.bytes().any(|byte| byte.is_ascii_digit())
        && unsigned
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
        && unsigned.parse::<f64>().is_ok()
}

//! The few kinds of Block Kit that a card is made of. Constructors keep Slack's limits, and no kind here reads markup.

use gatepost_channel::{ButtonValue, OnceMore};
use serde::Serialize;

/// The `action_id` of the field for a reason.
pub(crate) const REASON: &str = "reason";
/// A button's label, in units.
pub(crate) const BUTTON_TEXT: usize = 75;
/// A header, in units.
pub(crate) const HEADER_TEXT: usize = 150;
/// One element of preformatted text, in units; undocumented, so the limit of a text object is kept.
pub(crate) const ELEMENT_TEXT: usize = 3_000;
/// Fields in one section.
pub(crate) const FIELDS: usize = 10;
/// Heading, text and both labels of the question before a press, in units.
pub(crate) const QUESTION: [usize; 4] = [100, 300, 30, 30];
/// The most characters that a field takes for a reason; Slack takes [`FIELD_TEXT`].
const LONGEST_REASON: u16 = 1_000;
/// The most units that Slack takes in a field.
pub(crate) const FIELD_TEXT: usize = 3_000;
/// The address behind a button, in characters.
const BUTTON_URL: usize = 3_000;

/// What a text costs: UTF-16 units once Slack has escaped it, the largest of the readings that its limits allow.
pub(crate) fn cost(text: &str) -> usize {
    text.chars()
        .map(|c| match c {
            '&' => 5,
            '<' | '>' => 4,
            c => c.len_utf16(),
        })
        .sum()
}

/// The longest start of `text` that costs at most `budget`.
pub(crate) fn start(text: &str, budget: usize) -> &str {
    let mut left = budget;
    for (at, c) in text.char_indices() {
        match left.checked_sub(cost(c.encode_utf8(&mut [0; 4]))) {
            Some(rest) => left = rest,
            None => return &text[..at],
        }
    }
    text
}

/// Escapes the three characters with which Slack's markup makes mentions and links, for the top-level `text` of a message.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Text without markup, and without emoji names being read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "plain_text")]
pub(crate) struct PlainText {
    text: String,
    emoji: bool,
}

impl PlainText {
    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// At most `budget` units of `text`; a longer one ends in `…`, an empty one becomes a dash, since Slack takes no empty text.
    pub(crate) fn new(text: &str, budget: usize) -> Self {
        let text = if text.trim().is_empty() {
            "—".to_owned()
        } else if cost(text) <= budget {
            text.to_owned()
        } else {
            format!("{}…", start(text, budget.saturating_sub(1)))
        };
        Self { text, emoji: false }
    }
}

/// A piece of literal text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "text")]
pub(crate) struct TextElement {
    text: String,
}

/// Preformatted rich text, in which Slack reads nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "rich_text_preformatted")]
pub(crate) struct Preformatted {
    elements: Vec<TextElement>,
}

impl Preformatted {
    /// All of `text`, in as many elements as it needs, broken at line ends where there are any.
    pub(crate) fn new(text: &str) -> Self {
        let mut elements = Vec::new();
        let mut rest = if text.is_empty() { "—" } else { text };
        while !rest.is_empty() {
            let most = start(rest, ELEMENT_TEXT);
            let end = if most.len() == rest.len() {
                rest.len()
            } else {
                most.rfind('\n').map_or(most.len(), |at| at + 1)
            };
            let (piece, behind) = rest.split_at(end);
            elements.push(TextElement {
                text: piece.to_owned(),
            });
            rest = behind;
        }
        Self { elements }
    }
}

/// The look of a button.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Style {
    /// Green.
    Primary,
    /// Red.
    Danger,
}

/// What the client asks before it sends a press.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Confirm {
    title: PlainText,
    text: PlainText,
    #[serde(rename = "confirm")]
    yes: PlainText,
    #[serde(rename = "deny")]
    no: PlainText,
}

impl Confirm {
    pub(crate) fn new(asked: &OnceMore) -> Self {
        let [title, text, yes, no] = QUESTION;
        Self {
            title: PlainText::new(&asked.title, title),
            text: PlainText::new(&asked.text, text),
            yes: PlainText::new(&asked.yes, yes),
            no: PlainText::new(&asked.no, no),
        }
    }

    /// What its texts cost.
    pub(crate) fn cost(&self) -> usize {
        [&self.title, &self.text, &self.yes, &self.no]
            .map(|text| cost(text.as_str()))
            .iter()
            .sum()
    }
}

/// What is filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Field {
    /// Text over several lines.
    PlainTextInput {
        /// Names it in what comes back.
        action_id: &'static str,
        /// Always so.
        multiline: bool,
        /// In characters.
        max_length: u16,
        /// What stands in it at first.
        #[serde(skip_serializing_if = "Option::is_none")]
        initial_value: Option<String>,
    },
    /// One of several; none at first.
    RadioButtons {
        /// Names it in what comes back.
        action_id: &'static str,
        /// At most ten.
        options: Vec<Choice>,
    },
}

/// One of several answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Choice {
    text: PlainText,
    value: String,
}

impl Choice {
    /// `value` comes back when this one is chosen; at most 75 bytes.
    pub(crate) fn new(value: &str, label: &str, budget: usize) -> Self {
        Self {
            text: PlainText::new(label, budget),
            value: value.to_owned(),
        }
    }
}

/// A button.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "button")]
pub(crate) struct Button {
    action_id: String,
    text: PlainText,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    style: Option<Style>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirm: Option<Confirm>,
}

impl Button {
    /// A button that decides; `value` is one of our short references.
    pub(crate) fn decide(
        action_id: impl Into<String>,
        label: &str,
        value: &ButtonValue,
        style: Option<Style>,
    ) -> Self {
        Self {
            action_id: action_id.into(),
            text: PlainText::new(label, BUTTON_TEXT),
            value: Some(value.to_string()),
            url: None,
            style,
            confirm: None,
        }
    }

    /// The same, asked once more before it is sent.
    pub(crate) fn confirmed(self, confirm: Option<Confirm>) -> Self {
        Self { confirm, ..self }
    }

    /// A button that asks for something to be opened; `value` is that of the deciding buttons.
    pub(crate) fn ask(action_id: &'static str, label: &str, value: &ButtonValue) -> Self {
        Self::decide(action_id, label, value, None)
    }

    /// A button that opens a page, if the address is one that Slack takes.
    pub(crate) fn open(action_id: &'static str, label: &str, url: &str) -> Option<Self> {
        let web = url.starts_with("https://") || url.starts_with("http://");
        (web && url.len() <= BUTTON_URL).then(|| Self {
            action_id: action_id.to_owned(),
            text: PlainText::new(label, BUTTON_TEXT),
            value: None,
            url: Some(url.to_owned()),
            style: None,
            confirm: None,
        })
    }
}

/// A block of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block {
    /// The first line.
    Header {
        /// At most 150 units.
        text: PlainText,
    },
    /// A line of text, or facts in two columns.
    Section(Section),
    /// Literal text over several lines.
    RichText {
        /// One box each.
        elements: Vec<Preformatted>,
    },
    /// A row of buttons.
    Actions {
        /// Unique in the message, new with each revision.
        block_id: String,
        /// At most 25.
        elements: Vec<Button>,
    },
    /// A field of a modal.
    Input {
        /// Unique in the modal.
        block_id: String,
        /// Ours.
        label: PlainText,
        /// The field itself.
        element: Field,
        /// Whether the modal is sent without it.
        optional: bool,
    },
    /// Small print.
    Context {
        /// At most 10.
        elements: Vec<PlainText>,
    },
}

/// What a section shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Section {
    /// One text.
    Text(PlainText),
    /// At most [`FIELDS`] texts.
    Fields(Vec<PlainText>),
}

impl Block {
    pub(crate) fn header(text: &str) -> Self {
        Self::Header {
            text: PlainText::new(text, HEADER_TEXT),
        }
    }

    pub(crate) fn line(text: &str, budget: usize) -> Self {
        Self::Section(Section::Text(PlainText::new(text, budget)))
    }

    /// As many sections as the fields need.
    pub(crate) fn fields(fields: &[PlainText]) -> impl Iterator<Item = Self> + '_ {
        fields
            .chunks(FIELDS)
            .map(|some| Self::Section(Section::Fields(some.to_vec())))
    }

    pub(crate) fn literal(text: &str) -> Self {
        Self::RichText {
            elements: vec![Preformatted::new(text)],
        }
    }

    /// The field for a reason.
    pub(crate) fn reason(block_id: String, label: &str, budget: usize, optional: bool) -> Self {
        Self::Input {
            block_id,
            label: PlainText::new(label, budget),
            element: Field::PlainTextInput {
                action_id: REASON,
                multiline: true,
                max_length: LONGEST_REASON,
                initial_value: None,
            },
            optional,
        }
    }

    /// A field in which `text` stands to be changed; it costs at most [`FIELD_TEXT`]. Whoever answers otherwise need not fill it in.
    /// Block and field have one name.
    pub(crate) fn editor(name: &'static str, label: &str, budget: usize, text: String) -> Self {
        Self::Input {
            block_id: name.to_owned(),
            label: PlainText::new(label, budget),
            element: Field::PlainTextInput {
                action_id: name,
                multiline: true,
                max_length: 3_000,
                initial_value: Some(text),
            },
            optional: true,
        }
    }

    /// A choice that has to be made; block and field have one name.
    pub(crate) fn choice(name: &'static str, label: &str, options: Vec<Choice>) -> Self {
        Self::Input {
            block_id: name.to_owned(),
            label: PlainText::new(label, BUTTON_TEXT),
            element: Field::RadioButtons {
                action_id: name,
                options,
            },
            optional: false,
        }
    }

    pub(crate) fn small(text: &str, budget: usize) -> Self {
        Self::Context {
            elements: vec![PlainText::new(text, budget)],
        }
    }
}

//! The part of card JSON 2.0 that we use, typed. There is deliberately no element and no field here in which the client reads
//! markup: every text is `plain_text`. The platform refuses unknown properties, so none can be added by accident either.
//!
//! Room for later: a form with a reason stands at the root, between the arguments and the buttons, and holds Reject.

use gatepost_channel::{ButtonValue, Decision};
use serde::Serialize;

/// The name of the reason field in a form, as it comes back in `form_value`.
pub(crate) const REASON: &str = "reason";

/// A whole card.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CardJson {
    schema: &'static str,
    config: Config,
    header: Header,
    body: Body,
}

#[derive(Debug, Clone, Serialize)]
struct Config {
    update_multi: bool,
    enable_forward: bool,
    width_mode: &'static str,
    summary: Summary,
}

#[derive(Debug, Clone, Serialize)]
struct Summary {
    content: String,
}

#[derive(Debug, Clone, Serialize)]
struct Header {
    template: Template,
    title: Text,
}

#[derive(Debug, Clone, Serialize)]
struct Body {
    elements: Vec<Element>,
}

/// The colour of the header.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Template {
    Orange,
    Green,
    Red,
    Grey,
}

impl CardJson {
    /// A shared card that cannot be forwarded: a forwarded copy would carry dead buttons.
    pub(crate) fn new(template: Template, title: String, summary: String, elements: Vec<Element>) -> Self {
        Self {
            schema: "2.0",
            config: Config {
                update_multi: true,
                enable_forward: false,
                width_mode: "fill",
                summary: Summary { content: summary },
            },
            header: Header {
                template,
                title: Text::plain(title),
            },
            body: Body { elements },
        }
    }

    /// The card as the text that the platform takes in `content`. Serialising plain structs of text cannot fail.
    pub(crate) fn content(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// How many elements and components the card holds.
    pub(crate) fn count(&self) -> usize {
        1 + self.body.elements.iter().map(Element::count).sum::<usize>()
    }
}

/// Text that the client shows as it is.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Text {
    tag: &'static str,
    content: String,
    #[serde(rename = "text_size", skip_serializing_if = "Option::is_none")]
    size: Option<&'static str>,
    #[serde(rename = "text_color", skip_serializing_if = "Option::is_none")]
    color: Option<&'static str>,
}

impl Text {
    fn plain(content: String) -> Self {
        Self {
            tag: "plain_text",
            content,
            size: None,
            color: None,
        }
    }
}

/// One element of the body.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "tag", rename_all = "snake_case")]
pub(crate) enum Element {
    /// A paragraph.
    Div { text: Text },
    /// A row of columns.
    ColumnSet {
        flex_mode: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        background_style: Option<&'static str>,
        columns: Vec<Column>,
    },
    /// Something to press.
    Button {
        #[serde(rename = "type")]
        style: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<&'static str>,
        text: Text,
        behaviors: Vec<Behavior>,
    },
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Column {
    tag: &'static str,
    width: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<u8>,
    elements: Vec<Element>,
}

/// What a press does.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Behavior {
    /// The platform calls us with this value.
    Callback { value: Pressed },
    /// The client opens an address of ours.
    OpenUrl { default_url: String },
}

/// The value of a button; an object, since some clients fail on anything else.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Pressed {
    decision: Decision,
    /// The delivery's reference.
    b: String,
}

impl Element {
    /// A paragraph in the normal size.
    pub(crate) fn paragraph(content: String) -> Self {
        Self::Div {
            text: Text::plain(content),
        }
    }

    /// A paragraph that stands out: the tool.
    pub(crate) fn heading(content: String) -> Self {
        Self::styled(content, "heading", None)
    }

    /// A small grey line: labels and ids.
    pub(crate) fn note(content: String) -> Self {
        Self::styled(content, "notation", Some("grey"))
    }

    /// A line of ours that must not be overlooked.
    pub(crate) fn warning(content: String) -> Self {
        Self::styled(content, "normal", Some("red"))
    }

    /// A grey box around text of somebody else, so that no line of it can pass for a line of ours.
    pub(crate) fn boxed(content: String) -> Self {
        Self::ColumnSet {
            flex_mode: "none",
            background_style: Some("grey"),
            columns: vec![Column {
                tag: "column",
                width: "weighted",
                weight: Some(1),
                elements: vec![Self::paragraph(content)],
            }],
        }
    }

    /// Buttons side by side, wrapping on narrow screens.
    pub(crate) fn row(buttons: Vec<Self>) -> Self {
        Self::ColumnSet {
            flex_mode: "flow",
            background_style: None,
            columns: buttons
                .into_iter()
                .map(|button| Column {
                    tag: "column",
                    width: "auto",
                    weight: None,
                    elements: vec![button],
                })
                .collect(),
        }
    }

    /// A button that votes.
    pub(crate) fn decide(decision: Decision, label: String, button: ButtonValue) -> Self {
        Self::Button {
            style: match decision {
                Decision::Approve => "primary_filled",
                Decision::Reject => "danger",
            },
            name: Some(decision.as_str()),
            text: Text::plain(label),
            behaviors: vec![Behavior::Callback {
                value: Pressed {
                    decision,
                    b: button.to_string(),
                },
            }],
        }
    }

    /// A button that opens an address of ours.
    pub(crate) fn link(label: String, url: String) -> Self {
        Self::Button {
            style: "default",
            name: None,
            text: Text::plain(label),
            behaviors: vec![Behavior::OpenUrl { default_url: url }],
        }
    }

    fn styled(content: String, size: &'static str, color: Option<&'static str>) -> Self {
        Self::Div {
            text: Text {
                size: Some(size),
                color,
                ..Text::plain(content)
            },
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Div { .. } | Self::Button { .. } => 2,
            Self::ColumnSet { columns, .. } => {
                1 + columns
                    .iter()
                    .map(|column| 1 + column.elements.iter().map(Self::count).sum::<usize>())
                    .sum::<usize>()
            }
        }
    }
}

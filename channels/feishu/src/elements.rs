//! The part of card JSON 2.0 that we use, typed. There is deliberately no element and no field here in which the client reads
//! markup: every text is `plain_text`. The platform refuses unknown properties, so none can be added by accident either.
//!
//! A form stands at the root, holds one field for a reason and the buttons that send it. A button of a form repeats in its
//! name what its value says: some clients leave the value out of what they send.

use gatepost_channel::{ButtonValue, Decision, Fate, OnceMore, Seen};
use serde::Serialize;

/// The most characters that the platform takes in a field.
const LONGEST_FIELD: u16 = 1_000;

/// The name of the field for changed arguments, as it comes back in `form_value`.
pub(crate) const ARGUMENTS: &str = "arguments";
/// The name of the field for a reason beside them.
pub(crate) const REASON_TO_EDIT: &str = "reason_to_edit";

/// The name of the field for the reason of this answer, as it comes back in `form_value`; unique in a card.
pub(crate) const fn reason_of(decision: Decision) -> &'static str {
    match decision {
        Decision::Approve => "reason_to_approve",
        Decision::Reject => "reason",
    }
}

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
    Blue,
    Orange,
    Carmine,
    Purple,
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

/// The colour of a run of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shade {
    /// None.
    Plain,
    /// What comes.
    Green,
    /// What goes.
    Red,
}

impl Shade {
    /// The colour for lines of this fate.
    pub(crate) const fn of(fate: Fate) -> Self {
        match fate {
            Fate::Kept => Self::Plain,
            Fate::Removed => Self::Red,
            Fate::Added => Self::Green,
        }
    }

    const fn word(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Green => Some("green"),
            Self::Red => Some("red"),
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
        name: Option<String>,
        text: Text,
        #[serde(skip_serializing_if = "Option::is_none")]
        confirm: Option<Confirm>,
        #[serde(skip_serializing_if = "Option::is_none")]
        form_action_type: Option<&'static str>,
        behaviors: Vec<Behavior>,
    },
    /// A field and the buttons that send it. Only at the root.
    Form {
        name: &'static str,
        elements: Vec<Element>,
    },
    /// A field for text. One that is required blocks the buttons of its form until something stands in it.
    Input {
        name: &'static str,
        input_type: &'static str,
        required: bool,
        rows: u8,
        max_length: u16,
        #[serde(skip_serializing_if = "Option::is_none")]
        default_value: Option<String>,
        label: Text,
    },
}

/// What the client asks before it sends a press.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Confirm {
    title: Text,
    text: Text,
}

/// A button that votes, before it is known whether it stands in a form.
#[derive(Debug, Clone)]
pub(crate) struct Vote {
    /// What is voted.
    pub(crate) decision: Decision,
    /// The label.
    pub(crate) label: String,
    /// The delivery.
    pub(crate) button: ButtonValue,
    /// The scope for later calls that an approval asks for.
    pub(crate) grant: Option<String>,
    /// Asked before it is sent; its texts are of a fitting length.
    pub(crate) once_more: Option<OnceMore>,
    /// That everything could be seen.
    pub(crate) seen: Option<Seen>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Column {
    tag: &'static str,
    width: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<u8>,
    elements: Vec<Element>,
}

impl Column {
    fn weighted(weight: u8, elements: Vec<Element>) -> Self {
        Self {
            tag: "column",
            width: "weighted",
            weight: Some(weight),
            elements,
        }
    }
}

/// What a press does.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Behavior {
    /// The platform calls us with this value.
    Callback { value: Pressed },
    /// The same, for a button that opens something.
    #[serde(rename = "callback")]
    Show { value: Shows },
    /// The client opens an address of ours.
    OpenUrl { default_url: String },
}

/// The value of a button that shows everything; it has no decision.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Shows {
    show: &'static str,
    /// The delivery's reference.
    b: String,
}

/// What a button shows that has no decision: all there is to see.
pub(crate) const EVERYTHING: &str = "everything";

/// The value of a button; an object, since some clients fail on anything else.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Pressed {
    decision: Decision,
    /// The delivery's reference.
    b: String,
    /// The scope for later calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    grant: Option<String>,
    /// That everything could be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<String>,
    /// That the arguments are those of the form.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    edited: bool,
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
        Self::grey(vec![Column::weighted(1, vec![Self::paragraph(content)])])
    }

    /// The same around runs of lines, each in its colour.
    pub(crate) fn run_box(runs: Vec<(Shade, String)>) -> Self {
        let runs = runs
            .into_iter()
            .map(|(shade, content)| Self::styled(content, "normal", shade.word()));
        Self::grey(vec![Column::weighted(1, runs.collect())])
    }

    /// The same around a name and its value, in two columns.
    pub(crate) fn pair(key: String, value: String) -> Self {
        Self::grey(vec![
            Column::weighted(1, vec![Self::styled(key, "normal", Some("grey"))]),
            Column::weighted(3, vec![Self::paragraph(value)]),
        ])
    }

    fn grey(columns: Vec<Column>) -> Self {
        Self::ColumnSet {
            flex_mode: "none",
            background_style: Some("grey"),
            columns,
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

    /// A button that votes by itself.
    pub(crate) fn vote(vote: Vote) -> Self {
        let mut name = vote.decision.as_str().to_owned();
        if let Some(scope) = &vote.grant {
            name = format!("{name}_{scope}");
        }
        Self::voting(vote, name, None)
    }

    /// A button that votes by itself, on a card with several of them: its name says what its value says, so it is unique.
    pub(crate) fn named_vote(vote: Vote) -> Self {
        let name = spelled(&vote);
        Self::voting(vote, name, None)
    }

    /// A form at the root: a field for the reason of `decision`, and the buttons that send it.
    pub(crate) fn form(decision: Decision, reason: String, required: bool, votes: Vec<Vote>) -> Self {
        let mut elements = vec![Self::reason(reason_of(decision), reason, required)];
        elements.extend(votes.into_iter().map(|vote| {
            let name = spelled(&vote);
            Self::voting(vote, name, Some("submit"))
        }));
        Self::Form {
            name: match decision {
                Decision::Approve => "form_to_approve",
                Decision::Reject => "form_to_reject",
            },
            elements,
        }
    }

    /// A form at the root: a field in which `text` stands to be changed, one for a reason where an approval needs one, and the button
    /// that approves what stands in the field.
    pub(crate) fn editor(label: String, text: String, reason: Option<String>, vote: Vote) -> Self {
        let mut elements = vec![Self::Input {
            name: ARGUMENTS,
            input_type: "multiline_text",
            required: true,
            rows: 8,
            max_length: LONGEST_FIELD,
            default_value: Some(text),
            label: Text::plain(label),
        }];
        elements.extend(reason.map(|reason| Self::reason(REASON_TO_EDIT, reason, true)));
        let name = format!("{EDIT}_{}", reference(&vote));
        let mut button = Self::voting(vote, name, Some("submit"));
        if let Self::Button { behaviors, .. } = &mut button {
            for behavior in behaviors {
                if let Behavior::Callback { value } = behavior {
                    value.edited = true;
                }
            }
        }
        elements.push(button);
        Self::Form {
            name: "form_to_edit",
            elements,
        }
    }

    fn reason(name: &'static str, label: String, required: bool) -> Self {
        Self::Input {
            name,
            input_type: "multiline_text",
            required,
            rows: 2,
            max_length: LONGEST_FIELD,
            default_value: None,
            label: Text::plain(label),
        }
    }

    fn voting(vote: Vote, name: String, form_action_type: Option<&'static str>) -> Self {
        Self::Button {
            style: match (vote.decision, &vote.grant) {
                (Decision::Approve, None) => "primary_filled",
                (Decision::Approve, Some(_)) => "default",
                (Decision::Reject, _) => "danger",
            },
            name: Some(name),
            text: Text::plain(vote.label),
            confirm: vote.once_more.map(|asked| Confirm {
                title: Text::plain(asked.title),
                text: Text::plain(asked.text),
            }),
            form_action_type,
            behaviors: vec![Behavior::Callback {
                value: Pressed {
                    decision: vote.decision,
                    b: vote.button.to_string(),
                    grant: vote.grant,
                    seen: vote.seen.map(|seen| seen.to_string()),
                    edited: false,
                },
            }],
        }
    }

    /// A button that shows everything to whoever presses it.
    pub(crate) fn show(label: String, button: ButtonValue) -> Self {
        Self::Button {
            style: "default",
            name: Some("show".to_owned()),
            text: Text::plain(label),
            confirm: None,
            form_action_type: None,
            behaviors: vec![Behavior::Show {
                value: Shows {
                    show: EVERYTHING,
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
            confirm: None,
            form_action_type: None,
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
            Self::Div { .. } | Self::Input { .. } => 2,
            Self::Button { confirm, .. } => 2 + if confirm.is_some() { 2 } else { 0 },
            Self::Form { elements, .. } => 1 + elements.iter().map(Self::count).sum::<usize>(),
            Self::ColumnSet { columns, .. } => {
                1 + columns
                    .iter()
                    .map(|column| 1 + column.elements.iter().map(Self::count).sum::<usize>())
                    .sum::<usize>()
            }
        }
    }
}

/// What a press says, as the name of a button: `reject_g1_<32 hex digits>_<revision>`, then `s1_<32 hex digits>` if everything could
/// be seen, then the scope if there is one.
fn spelled(vote: &Vote) -> String {
    format!("{}_{}", vote.decision.as_str(), reference(vote))
}

/// The name of the button that approves changed arguments begins so, in the place of the decision.
const EDIT: &str = "edit";

/// What such a name says behind the decision.
fn reference(vote: &Vote) -> String {
    let mut name = vote.button.to_string().replace('.', "_");
    if let Some(seen) = vote.seen {
        name.push('_');
        name.push_str(&seen.to_string().replace('.', "_"));
    }
    if let Some(scope) = &vote.grant {
        name.push('_');
        name.push_str(scope);
    }
    name
}

/// What the name of a button of a form says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named<'a> {
    pub(crate) decision: Decision,
    /// That the arguments are those of the form.
    pub(crate) edited: bool,
    pub(crate) button: ButtonValue,
    pub(crate) seen: Option<Seen>,
    pub(crate) scope: Option<&'a str>,
}

/// Reads the name of a button of a form back.
pub(crate) fn unspelled(name: &str) -> Option<Named<'_>> {
    let mut parts = name.splitn(5, '_');
    let (decision, edited) = match parts.next()? {
        "approve" => (Decision::Approve, false),
        EDIT => (Decision::Approve, true),
        "reject" => (Decision::Reject, false),
        _ => return None,
    };
    let (kind, token, revision) = (parts.next()?, parts.next()?, parts.next()?);
    let button = format!("{kind}.{token}.{revision}").parse().ok()?;
    let mut scope = parts.next();
    let mut seen = None;
    if let Some(rest) = scope.and_then(|rest| rest.strip_prefix("s1_")) {
        let (proof, behind) = match rest.split_once('_') {
            Some((proof, behind)) => (proof, Some(behind)),
            None => (rest, None),
        };
        seen = Some(format!("s1.{proof}").parse().ok()?);
        scope = behind;
    }
    Some(Named {
        decision,
        edited,
        button,
        seen,
        scope,
    })
}

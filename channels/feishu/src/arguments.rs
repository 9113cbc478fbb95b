//! The arguments as elements: each part in grey boxes under a heading of ours, so that no line of them can pass for a line of
//! the card. Rows are pairs of columns: the platform's own table shows ten rows a page, and what is on another page is not seen.

use gatepost_channel::{Body, Card, Clip, Content, Inert, Line, Part, Row, even_share};

use crate::card::{own, weigh};
use crate::elements::{Element, Shade};

/// More rows than this stand in one box instead of columns, since a card has room for so many elements.
const MOST_ROWS: usize = 10;
/// A change with more runs of lines than this stands in one box without colours.
const MOST_RUNS: usize = 12;

/// How much of the arguments goes on a card.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    /// All of each part.
    Whole,
    /// At most so much of each part, in bytes on the wire; what is longer loses its middle, and says so.
    Each(usize),
}

/// What all parts weigh on the wire, in bytes.
pub(crate) fn weight(body: &Body) -> usize {
    weights(body).sum()
}

/// The most that each part may weigh so that all of them weigh at most `room`.
pub(crate) fn share(body: &Body, room: usize) -> Extent {
    Extent::Each(even_share(weights(body), room))
}

fn weights(body: &Body) -> impl Iterator<Item = usize> + '_ {
    body.parts()
        .iter()
        .map(|part| weigh(part.content.text().as_str()))
}

/// The parts as elements.
pub(crate) fn lay_out(card: &Card, body: &Body, extent: Extent) -> Vec<Element> {
    let mut elements = Vec::new();
    for part in body.parts() {
        let heading = if part.heading.is_empty() {
            &card.words.arguments
        } else {
            &part.heading
        };
        elements.push(Element::note(own(heading)));
        match extent {
            Extent::Whole => whole(part, &mut elements),
            Extent::Each(most) => clipped(card, &part.content.text(), most, &mut elements),
        }
    }
    elements
}

fn whole(part: &Part, elements: &mut Vec<Element>) {
    match &part.content {
        Content::Rows(rows) if rows.len() <= MOST_ROWS => elements.extend(
            rows.iter()
                .map(|Row { key, value }| Element::pair(key.as_str().to_owned(), value.as_str().to_owned())),
        ),
        Content::Change(lines) => {
            let runs = lines.chunk_by(|one, other| one.fate == other.fate);
            if runs.clone().count() > MOST_RUNS {
                elements.push(Element::boxed(part.content.text().as_str().to_owned()));
            } else {
                elements.push(Element::run_box(runs.map(run).collect()));
            }
        }
        content => elements.push(Element::boxed(content.text().as_str().to_owned())),
    }
}

/// Lines of one fate.
fn run(lines: &[Line]) -> (Shade, String) {
    let shade = lines.first().map_or(Shade::Plain, |line| Shade::of(line.fate));
    let text = Content::Change(lines.to_vec()).text();
    (shade, text.as_str().to_owned())
}

fn clipped(card: &Card, text: &Inert, most: usize, elements: &mut Vec<Element>) {
    match text.clip(most, weigh) {
        Clip::Whole(text) => elements.push(Element::boxed(text.to_owned())),
        Clip::Cut {
            head,
            tail,
            shown,
            total,
        } => elements.extend([
            Element::boxed(head.to_owned()),
            Element::warning(own(&card.words.cut_line(shown, total))),
            Element::boxed(tail.to_owned()),
        ]),
    }
}

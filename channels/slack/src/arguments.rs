//! The arguments in Block Kit: each part in a preformatted box under a heading of ours, so that no line of them can pass for a
//! line of the card. A table is rows of that box: Slack's own table block pages and wraps, and older clients leave it out.

use gatepost_channel::{Body, Card, Clip, Inert, Part, even_share};

use crate::blocks::{Block, cost};

/// A heading, in units. The first one is part of the card's fixed frame.
pub(crate) const HEADING: usize = 75;
/// The line that says how much is shown, in units. The first one is part of the card's fixed frame.
pub(crate) const CUT_LINE: usize = 200;

/// Whether every part fits into `room` units, whole.
pub(crate) fn fit(body: &Body, room: usize) -> bool {
    let texts: usize = texts(body).iter().map(|text| cost(text.as_str())).sum();
    texts + (body.parts().len() - 1) * HEADING <= room
}

/// The parts within `room` units; long ones lose their middle, and say so.
pub(crate) fn lay_out(card: &Card, room: usize) -> Vec<Block> {
    let body = &card.arguments;
    let texts = texts(body);
    let cap = if fit(body, room) {
        room
    } else {
        let more = (texts.len() - 1) * (HEADING + CUT_LINE);
        even_share(
            texts.iter().map(|text| cost(text.as_str())),
            room.saturating_sub(more),
        )
    };
    let mut blocks = Vec::new();
    for (part, text) in body.parts().iter().zip(&texts) {
        blocks.push(Block::line(heading(card, part), HEADING));
        match text.clip(cap, cost) {
            Clip::Whole(text) => blocks.push(Block::literal(text)),
            Clip::Cut {
                head,
                tail,
                shown,
                total,
            } => blocks.extend([
                Block::literal(head),
                Block::line(&card.words.cut_line(shown, total), CUT_LINE),
                Block::literal(tail),
            ]),
        }
    }
    blocks
}

fn texts(body: &Body) -> Vec<Inert> {
    body.parts().iter().map(|part| part.content.text()).collect()
}

fn heading<'a>(card: &'a Card, part: &'a Part) -> &'a str {
    if part.heading.is_empty() {
        &card.words.arguments
    } else {
        &part.heading
    }
}

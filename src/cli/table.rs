//! Rows under headings, as wide as the terminal lets them be.
//!
//! Into a file or pipe everything is written whole. On a terminal, columns of free text give way down to a few characters; when
//! even that does not fit, each row becomes a small block of its own.

use std::io::IsTerminal as _;

use unicode_segmentation::UnicodeSegmentation as _;

use super::print;

/// Columns are this far apart.
const GAP: usize = 2;
/// A column of free text does not become narrower than this.
const NARROWEST: usize = 8;

/// A column.
#[derive(Debug, Clone, Copy)]
pub enum Column {
    /// Ids, times and numbers: never cut.
    Fixed(&'static str),
    /// Free text: gives way on a narrow terminal.
    Text(&'static str),
}

impl Column {
    const fn heading(self) -> &'static str {
        match self {
            Self::Fixed(heading) | Self::Text(heading) => heading,
        }
    }
}

/// Prints the rows; a row has one cell for each column.
pub fn table(columns: &[Column], rows: &[Vec<String>]) {
    let room = std::io::stdout().is_terminal().then(|| {
        terminal_size::terminal_size().map_or(80, |(terminal_size::Width(width), _)| usize::from(width))
    });
    for line in lay_out(columns, rows, room) {
        print::line(&line);
    }
}

/// The lines of a table in this much room; unlimited when there is none given.
fn lay_out(columns: &[Column], rows: &[Vec<String>], room: Option<usize>) -> Vec<String> {
    let heads: Vec<String> = columns.iter().map(|column| column.heading().to_owned()).collect();
    let mut widths: Vec<usize> = (0..columns.len())
        .map(|at| {
            let cells = rows.iter().chain([&heads]).filter_map(|row| row.get(at));
            cells.map(|cell| cells_of(cell)).max().unwrap_or(0)
        })
        .collect();
    if let Some(room) = room
        && !give_way(columns, &mut widths, room)
    {
        return blocks(&heads, rows);
    }
    std::iter::once(&heads)
        .chain(rows)
        .map(|row| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| fit(cell, *width));
            cells
                .collect::<Vec<_>>()
                .join(&" ".repeat(GAP))
                .trim_end()
                .to_owned()
        })
        .collect()
}

/// Narrows the widest columns of free text until the row fits; tells whether it does.
fn give_way(columns: &[Column], widths: &mut [usize], room: usize) -> bool {
    loop {
        let needed = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        if needed <= room {
            return true;
        }
        let texts = columns
            .iter()
            .zip(widths.iter_mut())
            .filter_map(|(column, width)| match column {
                Column::Text(heading) if *width > NARROWEST.max(heading.len()) => Some(width),
                _ => None,
            });
        match texts.max() {
            Some(widest) => *widest -= 1,
            None => return false,
        }
    }
}

/// Each row as lines of `heading: value`, an empty line between rows.
fn blocks(heads: &[String], rows: &[Vec<String>]) -> Vec<String> {
    let width = heads.iter().map(String::len).max().unwrap_or(0);
    let mut lines = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        if index > 0 {
            lines.push(String::new());
        }
        lines.extend(
            heads
                .iter()
                .zip(row)
                .map(|(head, cell)| format!("{head:<width$}  {cell}")),
        );
    }
    lines
}

/// The text in exactly this many terminal cells: padded, or cut before an ellipsis.
pub fn fit(text: &str, width: usize) -> String {
    let used = cells_of(text);
    if used <= width {
        return format!("{text}{}", " ".repeat(width - used));
    }
    let mut out = String::new();
    let mut left = width.saturating_sub(1);
    for cluster in text.graphemes(true) {
        let cells = cells_of(cluster);
        if cells > left {
            break;
        }
        left -= cells;
        out.push_str(cluster);
    }
    format!("{out}…{}", " ".repeat(left))
}

/// How many terminal cells a text takes: two for the wide scripts of East Asia and for emoji, none for what only marks a letter.
pub fn cells_of(text: &str) -> usize {
    text.graphemes(true)
        .filter_map(|cluster| cluster.chars().next())
        .map(|first| if is_wide(first) { 2 } else { 1 })
        .sum()
}

/// The main ranges of `W` and `F` in Unicode's East Asian Width (UAX 11).
fn is_wide(c: char) -> bool {
    matches!(c as u32, 0x1100..=0x115F | 0x2E80..=0x303E | 0x3041..=0xA4CF | 0xA960..=0xA97F | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF | 0xFE30..=0xFE6F | 0xFF00..=0xFF60 | 0xFFE0..=0xFFE6 | 0x1F300..=0x1F64F
        | 0x1F680..=0x1F6FF | 0x1F900..=0x1FAFF | 0x20000..=0x3FFFD)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column::Fixed("ID"),
        Column::Text("TOOL"),
        Column::Text("REQUESTER"),
    ];

    fn rows() -> Vec<Vec<String>> {
        vec![
            vec![
                "cr_1".into(),
                "oa__purchase_pay_everything".into(),
                "Dana Kim".into(),
            ],
            vec!["cr_22".into(), "支払い".into(), "-".into()],
        ]
    }

    #[test]
    fn without_a_terminal_everything_stands_whole() {
        let lines = lay_out(&COLUMNS, &rows(), None);
        assert_eq!(lines[0], "ID     TOOL                         REQUESTER");
        assert_eq!(lines[1], "cr_1   oa__purchase_pay_everything  Dana Kim");
        assert_eq!(lines[2], "cr_22  支払い                       -");
    }

    #[test]
    fn a_narrow_terminal_cuts_free_text_and_never_ids() {
        let lines = lay_out(&COLUMNS, &rows(), Some(34));
        assert!(lines.iter().all(|line| cells_of(line) <= 34), "{lines:#?}");
        assert_eq!(lines[1], "cr_1   oa__purchase_pa…  Dana Kim");
    }

    #[test]
    fn a_very_narrow_terminal_gets_blocks() {
        let lines = lay_out(&COLUMNS, &rows(), Some(12));
        assert_eq!(lines[0], "ID         cr_1");
        assert_eq!(lines[3], "");
        assert_eq!(lines.len(), 7);
    }

    #[test]
    fn wide_letters_are_cut_whole() {
        assert_eq!(fit("支払い", 6), "支払い");
        assert_eq!(fit("支払い", 5), "支払…");
        assert_eq!(fit("支払い", 4), "支… ");
        assert_eq!(fit("", 3), "   ");
    }
}

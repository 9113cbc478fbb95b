//! What the platform reads out of Markdown text: mentions, images and tables.

/// The ids of `<at id=…>` and `<person id=…>` tags.
pub(super) fn mentioned(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for tag in ["<at ", "<person "] {
        for (start, _) in text.match_indices(tag) {
            let inside = text[start + tag.len()..].split('>').next().unwrap_or_default();
            let id = inside
                .split_whitespace()
                .find_map(|part| part.strip_prefix("id="));
            found.extend(id.map(|id| id.trim_matches(['"', '\'', '/']).to_owned()));
        }
    }
    found
}

/// The targets of `![…](target)`.
pub(super) fn images(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices("![") {
        let target = text[start..]
            .split_once("](")
            .and_then(|(_, rest)| rest.split_once(')'));
        found.extend(target.map(|(target, _)| target.to_owned()));
    }
    found
}

/// How many tables the text holds, code fences left out.
pub(super) fn tables(text: &str) -> usize {
    let mut fenced = false;
    let mut count = 0;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            fenced = !fenced;
        }
        let delimiter =
            line.contains("---") && line.contains('|') && line.chars().all(|c| "|-: ".contains(c));
        if !fenced && delimiter {
            count += 1;
        }
    }
    count
}

//! Text of the outside as it may stand in a message: short, harmless to a terminal, and no secret.

use std::path::Path;

/// Text of the file as it may stand in a message: short, and without characters that a terminal would act on.
pub fn shown(text: &str) -> String {
    shown_line(text, 60)
}

/// As [`shown`], with at most `longest` characters of the text.
pub fn shown_line(text: &str, longest: usize) -> String {
    let mut out: String = text
        .chars()
        .take(longest)
        .map(|c| {
            if c.is_control() || is_invisible(c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect();
    if text.chars().nth(longest).is_some() {
        out.push('…');
    }
    out
}

/// Characters that take no room or turn the direction of the text around.
pub fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A path as it may stand in a message.
pub fn shown_path(path: &Path) -> String {
    path.to_string_lossy()
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .take(300)
        .collect()
}

/// Whether a text that stands under a key for something else could be a secret in the wrong place.
pub fn may_be_secret(text: &str) -> bool {
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

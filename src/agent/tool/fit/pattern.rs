//! The patterns of a schema: `pattern` and the names of `patternProperties`. Knows nothing of places.
//!
//! A schema's patterns are ECMA-262 expressions (JSON Schema 2020-12, core, 6.4), searched anywhere in the text. What the linear-time
//! engine does not have (look-around, references back) or would need too much room for is left to the tool.

use regex_lite::RegexBuilder;

/// The longest pattern that is tried, in bytes: schemas of MCP servers come from outside.
const LONGEST: usize = 1_000;
/// The room that one compiled pattern may take, in bytes.
const ROOM: usize = 256 * 1024;

/// Whether the text holds the pattern; `None` where this engine cannot tell.
pub(super) fn holds(pattern: &str, text: &str) -> Option<bool> {
    if pattern.len() > LONGEST {
        return None;
    }
    let compiled = RegexBuilder::new(pattern).size_limit(ROOM).build().ok()?;
    Some(compiled.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_searched_and_what_cannot_be_told_is_not() {
        for (pattern, text, expected) in [
            ("^[A-Z]{2}[0-9]+$", "DE89", Some(true)),
            ("^[A-Z]{2}[0-9]+$", "DE89\n", Some(false)),
            ("^[A-Z]{2}[0-9]+$", "de89", Some(false)),
            ("[0-9]", "no. 7", Some(true)),
            (r"^\d+$", "१२", Some(false)),
            ("(?=a)b", "ab", None),
            (r"(a)\1", "aa", None),
            ("(", "(", None),
            ("((a{1000}){1000}){1000}", "a", None),
        ] {
            assert_eq!(holds(pattern, text), expected, "{pattern:?} in {text:?}");
        }
        assert_eq!(holds(&"a".repeat(LONGEST + 1), "a"), None);
    }

    #[test]
    fn a_pattern_that_others_choke_on_is_told_in_linear_time() {
        assert_eq!(holds("^(a+)+$", &format!("{}!", "a".repeat(50_000))), Some(false));
    }
}

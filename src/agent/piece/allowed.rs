//! Which tools may be called: names and globs, as in the rules of the policy.

use crate::gate::policy::ToolGlob;

/// Tools by name or glob; none, when empty.
#[derive(Debug, Clone, Default)]
pub struct Allowed(Vec<Pattern>);

#[derive(Debug, Clone)]
struct Pattern {
    text: String,
    means: Means,
}

/// Most patterns need no glob, and scenes are made often.
#[derive(Debug, Clone)]
enum Means {
    Name,
    Beginning,
    Glob(ToolGlob),
    Nothing,
}

impl Allowed {
    /// Reads patterns.
    ///
    /// # Errors
    /// What is wrong with the first that is no glob.
    pub fn parse(patterns: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let read = |text: String| {
            Ok(Pattern {
                means: means(&text)?,
                text,
            })
        };
        patterns
            .into_iter()
            .map(read)
            .collect::<Result<_, String>>()
            .map(Self)
    }

    /// Patterns that were read before, from a memory. What cannot be read any more means nothing.
    pub fn of(patterns: &[String]) -> Self {
        let read = |text: &String| Pattern {
            means: means(text).unwrap_or(Means::Nothing),
            text: text.clone(),
        };
        Self(patterns.iter().map(read).collect())
    }

    /// Whether one of them means the tool.
    pub fn allows(&self, tool: &str) -> bool {
        self.0.iter().any(|pattern| match &pattern.means {
            Means::Name => pattern.text == tool,
            Means::Beginning => pattern
                .text
                .strip_suffix('*')
                .is_some_and(|head| tool.starts_with(head)),
            Means::Glob(glob) => glob.matches(tool),
            Means::Nothing => false,
        })
    }

    /// The patterns as they were written, in a list of their own.
    pub fn to_vec(&self) -> Vec<String> {
        self.texts().map(str::to_owned).collect()
    }

    /// The patterns as they were written.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|pattern| pattern.text.as_str())
    }
}

impl PartialEq for Allowed {
    fn eq(&self, other: &Self) -> bool {
        self.texts().eq(other.texts())
    }
}

impl Eq for Allowed {}

fn means(text: &str) -> Result<Means, String> {
    let is_plain = |text: &str| !text.is_empty() && !text.contains(['*', '?', '[', ']', '{', '}', '\\', '!']);
    let beginning = text
        .strip_suffix('*')
        .is_some_and(|head| head.is_empty() || is_plain(head));
    Ok(if is_plain(text) {
        Means::Name
    } else if beginning {
        Means::Beginning
    } else {
        Means::Glob(ToolGlob::parse(text)?)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn allowed(pattern: &str) -> Allowed {
        Allowed::parse([pattern.to_owned()]).unwrap()
    }

    #[test]
    fn patterns_are_the_globs_of_the_policy() {
        for (pattern, yes, no) in [
            ("oa__pay", "oa__pay", "oa__pay2"),
            ("oa__*", "oa__pay", "ob__pay"),
            ("*", "x", ""),
            ("*__read", "mcp__files__read", "mcp__files__read_all"),
            ("mcp__{files,mail}__*", "mcp__mail__send", "mcp__bank__send"),
            ("disk_usag?", "disk_usage", "disk_usag"),
            ("t[0-9]", "t7", "tx"),
            ("t[!0-9]", "tx", "t7"),
        ] {
            assert!(allowed(pattern).allows(yes), "{pattern} {yes}");
            assert!(no.is_empty() || !allowed(pattern).allows(no), "{pattern} {no}");
        }
        assert!(!Allowed::default().allows("x"), "nothing means none");
        for bad in ["", "a[", "{a", "a\\"] {
            assert!(Allowed::parse([bad.to_owned()]).is_err(), "{bad}");
            assert!(!Allowed::of(&[bad.to_owned()]).allows(bad), "{bad}");
        }
    }

    proptest! {
        /// The short ways mean what the glob means.
        #[test]
        fn a_short_way_is_no_other_way(pattern in "[a-c_.]{1,4}\\*?", tool in "[a-c_.]{1,6}") {
            let glob = ToolGlob::parse(&pattern).unwrap();
            prop_assert_eq!(allowed(&pattern).allows(&tool), glob.matches(&tool), "{} {}", pattern, tool);
        }
    }
}

//! Which tools a rule is about: globs over tool names, case-sensitive; `*` and `**` match everything, `/` included.
//!
//! `?` and a class in brackets match one byte, so they suit ASCII names; alternatives stand in braces.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::Limits;
use crate::gate::arguments::ToolName;

/// A set of globs of which one must match.
#[derive(Debug, Clone)]
pub(super) struct ToolGlobs(GlobSet);

/// What is wrong with one glob of the list; without an index, with the list.
pub(super) struct GlobProblem {
    pub at: Option<usize>,
    pub problem: String,
}

impl ToolGlobs {
    pub(super) fn compile(globs: &[String], limits: &Limits) -> Result<Self, Vec<GlobProblem>> {
        let whole = |problem: String| vec![GlobProblem { at: None, problem }];
        if globs.is_empty() {
            return Err(whole("the rule names no tool".to_owned()));
        }
        if globs.len() > limits.globs {
            return Err(whole(format!("the rule has more than {} globs", limits.globs)));
        }
        let mut set = GlobSetBuilder::new();
        let mut problems = Vec::new();
        for (at, glob) in globs.iter().enumerate() {
            match one(glob, limits) {
                Ok(glob) => {
                    set.add(glob);
                }
                Err(problem) => problems.push(GlobProblem {
                    at: Some(at),
                    problem,
                }),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        set.build()
            .map(Self)
            .map_err(|error| whole(error.kind().to_string()))
    }

    pub(super) fn matches(&self, tool: &ToolName) -> bool {
        self.0.is_match(tool.as_str())
    }
}

/// One glob over names of tools, for whoever names tools outside the policy (the movements of a piece).
#[derive(Debug, Clone)]
pub struct ToolGlob(globset::GlobMatcher);

impl ToolGlob {
    /// Reads one, within the limits of the policy.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(glob: &str) -> Result<Self, String> {
        one(glob, &Limits::default()).map(|glob| Self(glob.compile_matcher()))
    }

    /// Whether it means the tool of this name.
    pub fn matches(&self, tool: &str) -> bool {
        self.0.is_match(tool)
    }
}

fn one(glob: &str, limits: &Limits) -> Result<globset::Glob, String> {
    if glob.is_empty() {
        return Err("the glob is empty".to_owned());
    }
    if glob.chars().nth(limits.glob_characters).is_some() {
        return Err(format!(
            "the glob is longer than {} characters",
            limits.glob_characters
        ));
    }
    GlobBuilder::new(glob)
        .literal_separator(false)
        .backslash_escape(true)
        .build()
        .map_err(|error| format!("the glob does not compile: {}", error.kind()))
}

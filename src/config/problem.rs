//! What is wrong with a configuration, told so that a person can mend it: file, line, key, what was found, what is
//! accepted and what to do.
//!
//! It knows no section. It never holds a secret: whoever builds a [`Problem`] describes a secret by its fault only.

use std::fmt;

use serde::Serialize;

/// A place in the configuration file. Line and column count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Location {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

/// The family of a problem; stable, for scripts that read `gatepost check --json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The file could not be read at all.
    Unreadable,
    /// The text is not YAML.
    Syntax,
    /// The text passes a bound on size, nesting or repetition.
    TooLarge,
    /// A key stands twice in one mapping.
    DuplicateKey,
    /// A key that means nothing here.
    UnknownKey,
    /// A key that must be there is not.
    MissingKey,
    /// A value of another type than the key takes.
    WrongType,
    /// A value of the right type that is not accepted.
    BadValue,
    /// A secret that is missing, empty, too short or badly spelt.
    BadSecret,
    /// Two entries that must differ are the same, or two settings contradict each other.
    Conflict,
    /// A name that stands for nothing that is configured.
    UnknownName,
    /// A setting under which nobody could decide.
    NobodyDecides,
    /// A setting that would weaken the gate.
    Unsafe,
    /// A glob, condition or pointer of the policy that does not compile.
    Policy,
}

/// One thing that must be mended before Gatepost starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Its family.
    pub kind: ProblemKind,
    /// The file, as it was named on the command line.
    pub file: String,
    /// Where in the file; absent when the file could not be read.
    #[serde(flatten)]
    pub at: Option<Location>,
    /// The path of the key, such as `policy.rules[2].when`; empty for the file as a whole.
    pub key: String,
    /// What was found.
    pub message: String,
    /// What is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_head(f, &self.file, self.at, &self.key)?;
        f.write_str(&self.message)?;
        if let Some(accepted) = &self.accepted {
            write!(f, "\n  accepted: {accepted}")?;
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "\n  remedy: {remedy}")?;
        }
        Ok(())
    }
}

/// Something that works, but probably not as it was meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// The file, as it was named on the command line.
    pub file: String,
    /// Where in the file.
    #[serde(flatten)]
    pub at: Option<Location>,
    /// The path of the key.
    pub key: String,
    /// What was found and what follows from it.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_head(f, &self.file, self.at, &self.key)?;
        f.write_str(&self.message)
    }
}

fn write_head(f: &mut fmt::Formatter<'_>, file: &str, at: Option<Location>, key: &str) -> fmt::Result {
    f.write_str(file)?;
    if let Some(Location { line, column }) = at {
        write!(f, ":{line}:{column}")?;
    }
    f.write_str(": ")?;
    if !key.is_empty() {
        write!(f, "{key}: ")?;
    }
    Ok(())
}

/// Everything that is wrong with a configuration, in the order of the file. Never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// Takes the problems in the order of the file; `None` when there are none.
    pub(super) fn new(mut found: Vec<Problem>) -> Option<Self> {
        found.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| a.key.cmp(&b.key)));
        found.dedup();
        (!found.is_empty()).then_some(Self(found))
    }

    /// The problems, in the order of the file.
    pub fn as_slice(&self) -> &[Problem] {
        &self.0
    }
}

impl From<Problem> for Problems {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

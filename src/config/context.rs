//! What is written down while a file is read: problems, warnings, and which keys were asked for.
//!
//! It knows no section and no tree; it also carries what reading needs, the folder of the file and the environment.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    node::Reader,
    problem::{Location, Problem, ProblemKind, Warning},
    yaml::Node,
};

/// How environment variables are looked up; a parameter, so that tests can set it.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// A variable of this process's environment; `None` as well when it is not UTF-8.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the configuration meets the environment"
)]
pub fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What was written down while a file is read, and what reading it needs.
pub struct Context<'a> {
    file: String,
    base: PathBuf,
    env: Env<'a>,
    problems: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Warning>>,
    known: RefCell<BTreeSet<String>>,
}

/// A problem that does not know its place yet.
#[derive(Debug, Clone)]
pub struct Complaint {
    kind: ProblemKind,
    message: String,
    accepted: Option<String>,
    remedy: Option<String>,
}

impl Complaint {
    /// A problem of this family; `message` says what was found.
    pub fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            accepted: None,
            remedy: None,
        }
    }

    /// Says what is accepted.
    #[must_use]
    pub fn accepted(mut self, accepted: impl Into<String>) -> Self {
        self.accepted = Some(accepted.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Gives it its place.
    pub fn at(self, file: &str, at: Option<Location>, key: impl Into<String>) -> Problem {
        let Self {
            kind,
            message,
            accepted,
            remedy,
        } = self;
        Problem {
            kind,
            file: file.to_owned(),
            at,
            key: key.into(),
            message,
            accepted,
            remedy,
        }
    }
}

impl<'a> Context<'a> {
    /// `file` is how the file is named in messages; paths in it are relative to the folder `base`.
    pub fn new(file: &str, base: &Path, env: Env<'a>) -> Self {
        Self {
            file: file.to_owned(),
            base: base.to_owned(),
            env,
            problems: RefCell::default(),
            warnings: RefCell::default(),
            known: RefCell::default(),
        }
    }

    /// The tree's outermost value.
    pub fn root<'n>(&'n self, node: &'n Node) -> Reader<'n> {
        Reader {
            cx: self,
            node,
            at: node.at,
            path: String::new(),
            shape: String::new(),
        }
    }

    /// The file as it is named in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// A path of the file, relative to its folder.
    pub fn resolve(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    /// Writes a problem down.
    pub fn complain(&self, at: Option<Location>, key: &str, complaint: Complaint) {
        self.problems.borrow_mut().push(complaint.at(&self.file, at, key));
    }

    /// Takes over problems of a file that this one names.
    pub(super) fn pass_on(&self, problems: Vec<Problem>) {
        self.problems.borrow_mut().extend(problems);
    }

    /// Writes a warning down.
    pub fn warn(&self, at: Option<Location>, key: &str, message: impl Into<String>) {
        let warning = Warning {
            file: self.file.clone(),
            at,
            key: key.to_owned(),
            message: message.into(),
        };
        self.warnings.borrow_mut().push(warning);
    }

    /// Whether a problem of this key was written down.
    pub(super) fn has(&self, key: &str) -> bool {
        self.problems.borrow().iter().any(|problem| problem.key == key)
    }

    /// How many problems there are by now.
    pub fn count(&self) -> usize {
        self.problems.borrow().len()
    }

    /// Every key that was asked for, as `channels[].mode` or `hooks.builtins.*.enabled`.
    pub fn known(&self) -> BTreeSet<String> {
        self.known.borrow().clone()
    }

    pub(super) fn remember(&self, shape: String) {
        self.known.borrow_mut().insert(shape);
    }

    /// Looks an environment variable up.
    pub(super) fn env(&self, name: &str) -> Option<String> {
        (self.env)(name)
    }

    /// What was written down.
    pub fn into_found(self) -> (Vec<Problem>, Vec<Warning>) {
        (self.problems.into_inner(), self.warnings.into_inner())
    }
}

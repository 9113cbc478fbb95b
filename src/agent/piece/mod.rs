//! Pieces: the plans of jobs. [`folder`] reads them from YAML files, [`decode`] one of them with the reader of the configuration,
//! so that every problem is told with file, line and key; [`allowed`] is which tools a movement may call, [`lint`] what can be
//! said of a piece that can be used all the same.

use std::collections::{BTreeMap, BTreeSet};

use super::limits::OwnLimits;
use super::sentinel::Sentinel;
use crate::config::Warning;
use crate::config::hook::HooksConfig;

mod allowed;
mod decode;
mod folder;
mod lint;

pub use allowed::Allowed;

/// The sentinel that a rule may name.
pub const WAIT_SUBTASKS: &str = Sentinel::WaitSubtasks.as_str();

/// All pieces, by name.
#[derive(Debug, Clone, Default)]
pub struct Pieces {
    all: BTreeMap<String, Piece>,
    warnings: Vec<Warning>,
}

/// A plan.
#[derive(Debug, Clone)]
pub struct Piece {
    /// Its name.
    pub name: String,
    /// What it is for, for people and the model.
    pub description: Option<String>,
    /// Where it begins.
    pub initial_movement: String,
    /// How many movements a run may go through, the first included.
    pub max_movements: u32,
    /// The pieces that its sub-tasks may play; those that the job's token may submit, when it lists none.
    pub pieces: Option<BTreeSet<String>>,
    /// Its stages, names unique.
    pub movements: Vec<Movement>,
    /// What its runs may spend, where it differs from the configuration.
    pub limits: OwnLimits,
    /// Hooks of its own, beside those for every agent.
    pub hooks: Option<HooksConfig>,
}

/// One stage of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Movement {
    /// Its name.
    pub name: String,
    /// What the model shall do.
    pub instruction: String,
    /// As whom.
    pub persona: Option<String>,
    /// The tools it may call. Empty means none.
    pub allowed_tools: Allowed,
    /// Which movement may follow.
    pub rules: Vec<Rule>,
    /// Which follows when no rule does, and where the run goes on after a rule let it wait for sub-tasks.
    pub default_next: Option<String>,
    /// How often it may be entered again; the house's limit, when it says nothing.
    pub max_revisits: Option<u32>,
}

/// One way on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// When, in words for the model.
    pub condition: String,
    /// The movement that follows, or [`WAIT_SUBTASKS`].
    pub next: String,
}

impl Pieces {
    /// These pieces.
    pub fn new(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self {
            all: pieces
                .into_iter()
                .map(|piece| (piece.name.clone(), piece))
                .collect(),
            warnings: Vec::new(),
        }
    }

    /// What works, but probably not as it was meant.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// The piece of that name.
    pub fn get(&self, name: &str) -> Option<&Piece> {
        self.all.get(name)
    }

    /// All of them, by name.
    pub fn all(&self) -> impl Iterator<Item = &Piece> {
        self.all.values()
    }
}

impl Piece {
    /// The movement of that name.
    pub fn movement(&self, name: &str) -> Option<&Movement> {
        self.movements.iter().find(|movement| movement.name == name)
    }
}

impl Movement {
    /// Whether it may call the tool.
    pub fn allows(&self, tool: &str) -> bool {
        self.allowed_tools.allows(tool)
    }
}

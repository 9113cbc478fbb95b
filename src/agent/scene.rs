//! The scene: what a run may do at this moment, from its piece, its movement and what it remembers. It is made anew for each
//! step, so that a tool that was granted or a movement that was entered holds from then on.

use std::collections::{BTreeMap, BTreeSet};

use super::limits::Limits;
use super::memory::Memory;
use super::piece::{Allowed, Movement, Piece, Pieces};
use super::tool::Shelf;
use super::tool::mcp::may_mean;

/// See the module.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The plan.
    pub piece: &'a Piece,
    /// The stage of it.
    pub movement: &'a Movement,
    /// The tools that may be called, and whether each may be sent twice.
    pub tools: BTreeMap<&'a str, bool>,
    /// The tools that there are, and that people could be asked for.
    pub requestable: BTreeSet<&'a str>,
    /// The pieces that sub-tasks may play; none at the limits.
    pub spawnable: Vec<&'a Piece>,
    /// The servers of tools that it may call, as far as they are not there.
    pub absent: Vec<&'a str>,
    /// Whether a sub-task was begun whose end was not told yet.
    pub has_subtasks: bool,
}

/// What scenes are made of.
#[derive(Clone, Copy)]
pub struct House<'a> {
    /// The tools there are.
    pub toolbox: &'a Shelf,
    /// The pieces there are.
    pub pieces: &'a Pieces,
    /// The pieces that the job's token may submit; all, when it lists none.
    pub submits: Option<&'a BTreeSet<String>>,
    /// What a run may spend.
    pub limits: Limits,
}

impl<'a> Scene<'a> {
    /// The scene of this movement.
    pub fn set(house: House<'a>, piece: &'a Piece, movement: &'a Movement, memory: &Memory) -> Self {
        let mut tools = BTreeMap::new();
        let mut requestable = BTreeSet::new();
        let granted = memory.granted.get(&movement.name);
        let ceilings: Vec<Allowed> = memory
            .ceilings
            .iter()
            .map(|ceiling| Allowed::of(ceiling))
            .collect();
        for tool in house.toolbox.all() {
            // A sub-task has at most the tools of those above it, whatever its piece says and whatever it is granted.
            let within = ceilings.iter().all(|ceiling| ceiling.allows(&tool.name));
            if !within {
                continue;
            }
            if movement.allows(&tool.name) || granted.is_some_and(|granted| granted.contains(&tool.name)) {
                tools.insert(tool.name.as_str(), tool.idempotent);
            } else {
                requestable.insert(tool.name.as_str());
            }
        }
        let absent = house.toolbox.absent().iter().map(String::as_str);
        let absent = absent.filter(|server| may_mean(&movement.allowed_tools.to_vec(), server));
        let may_spawn =
            memory.depth < house.limits.subtask_depth && memory.children.len() < house.limits.subtasks;
        let is_spawnable = |other: &&Piece| match (&piece.pieces, house.submits) {
            (Some(listed), _) => listed.contains(&other.name),
            (None, Some(submits)) => submits.contains(&other.name),
            (None, None) => true,
        };
        let spawnable = if may_spawn {
            house.pieces.all().filter(is_spawnable).collect()
        } else {
            Vec::new()
        };
        Self {
            piece,
            movement,
            tools,
            requestable,
            spawnable,
            absent: absent.collect(),
            has_subtasks: memory.children.iter().any(|child| !child.told),
        }
    }

    /// The movement that `default_next` names; none when it is a sentinel or left out.
    pub fn default_movement(&self) -> Option<&'a str> {
        let name = self.movement.default_next.as_deref()?;
        self.piece.movement(name).map(|_| name)
    }

    /// What a sub-task of this run may have at most: everything that any movement of the piece may call, and what was granted.
    pub fn ceiling(&self, memory: &Memory) -> Vec<String> {
        let mut ceiling: Vec<String> = self
            .piece
            .movements
            .iter()
            .flat_map(|movement| movement.allowed_tools.texts().map(str::to_owned))
            .chain(memory.granted.values().flatten().cloned())
            .collect();
        ceiling.sort();
        ceiling.dedup();
        ceiling
    }
}

//! Control-flow tools: calls with which the model steers the run itself. They do no work; they move, end or park the run.
//!
//! Each is one file and one line of [`Control`]: `docs/guides/new-park-tool.md` shows how to add one. No tool waits by itself:
//! it says what it leads to ([`Steer`]), and the engine parks the job, so that no worker is held.

use serde_json::Value;

use super::memory::CallState;
use super::model::ToolOffer;
use super::scene::Scene;
use super::tool::misfit;
use crate::gate::{Arguments, Json};
use crate::job::WaitReason;
use crate::job::finish::Ending;

mod browser_login;
mod complete;
mod request_tool;
mod spawn_subtask;
mod transition;
mod wait_subtasks;

pub use request_tool::wanted;

/// One control-flow tool.
trait Steers: Sync {
    /// Whether a call of it must be the only one of its reply: whatever parks, moves or ends the run.
    fn alone(&self) -> bool {
        true
    }

    /// How it is offered in this scene: description and JSON Schema of its arguments; `None` where there is no use for it.
    fn offer(&self, scene: &Scene<'_>) -> Option<(String, Value)>;

    /// What a call with these arguments leads to, or what is wrong with it, in words for the model.
    fn steer(&self, args: &Arguments, scene: &Scene<'_>) -> Result<Steer, String>;
}

/// The enum, its names and its files, from one line for each tool.
macro_rules! controls {
    ($($(#[$doc:meta])* $variant:ident = $name:literal => $tool:path,)*) => {
        /// The control-flow tools there are.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Control { $($(#[$doc])* $variant,)* }

        impl Control {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name as the model sees it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            fn tool(self) -> &'static dyn Steers {
                match self { $(Self::$variant => &$tool,)* }
            }
        }
    };
}

controls! {
    /// Ends the run, or asks the user.
    Complete = "complete" => complete::Complete,
    /// Goes on in another movement.
    Transition = "transition" => transition::Transition,
    /// Begins a job of its own.
    SpawnSubtask = "spawn_subtask" => spawn_subtask::SpawnSubtask,
    /// Waits for the sub-tasks.
    WaitSubtasks = "wait_subtasks" => wait_subtasks::WaitSubtasks,
    /// Asks people for a tool.
    RequestTool = "request_tool" => request_tool::RequestTool,
    /// Asks an operator to log in.
    BrowserLogin = "browser_login" => browser_login::BrowserLogin,
}

/// What a sound call of a control-flow tool leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Steer {
    /// The run is over.
    End(Ending),
    /// Somebody is asked, and their words will be the result of the call.
    Ask {
        /// Why the job waits; one that is answered in words.
        wait: WaitReason,
        /// What they are asked.
        question: String,
    },
    /// The run goes on in another movement.
    Enter {
        /// Which.
        movement: String,
    },
    /// The run waits until all sub-tasks ended.
    WaitSubtasks {
        /// Where it goes on; where it is, when `None`.
        resume: Option<String>,
    },
    /// A sub-task begins.
    Spawn {
        /// Its piece.
        piece: String,
        /// What it is given.
        input: String,
    },
    /// People are asked for a tool.
    Request {
        /// Which.
        tool: String,
    },
}

impl Control {
    /// The tool of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.name() == name)
    }

    /// Whether a call of it must be the only one of its reply.
    pub fn alone(self) -> bool {
        self.tool().alone()
    }

    /// How it is offered to the model in this scene, if at all.
    pub fn offer(self, scene: &Scene<'_>) -> Option<ToolOffer> {
        let (description, parameters) = self.tool().offer(scene)?;
        Some(ToolOffer {
            name: self.name().to_owned(),
            description,
            parameters,
        })
    }

    /// What a call with these arguments leads to, or what is wrong with it. The tool says what it knows better; nothing goes
    /// through that does not fit the schema under which the tool is offered.
    pub fn steer(self, args: &Arguments, scene: &Scene<'_>) -> Result<Steer, String> {
        let tool = self.tool();
        let steer = tool.steer(args, scene)?;
        let misfit = tool.offer(scene).and_then(|(_, schema)| misfit(&schema, args));
        misfit.map_or(Ok(steer), Err)
    }
}

/// The state in which a call of a control-flow tool enters the turn: planned when it is sound.
pub(super) fn judge(tool: Control, args: &Arguments, scene: &Scene<'_>) -> CallState {
    match tool.steer(args, scene) {
        Ok(_) => CallState::Planned,
        Err(why) => CallState::Done {
            result: format!("error: {why}"),
        },
    }
}

/// A member that is text with something in it.
fn text<'a>(args: &'a Arguments, name: &str) -> Result<&'a str, String> {
    args.json()
        .get(name)
        .and_then(Json::as_str)
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .ok_or_else(|| format!("`{name}` must be a text"))
}

//! All of the room together, from the configuration: what the composition root opens and starts.

use std::sync::Arc;

use super::desk::Desk;
use super::limits::Limits;
use super::model::client::{BadModel, ModelClient, Patience};
use super::piece::Pieces;
use super::runner::{HookSets, Runner};
use super::tool::{OnLoan, Toolbox};
use crate::config::agent::ToolConfig;
use crate::config::hook::HooksConfig;
use crate::config::{AgentConfig, Config, JobConfig, Problem, Role};
use crate::gate::{Arguments, ToolName};
use crate::gatekeeper::{Gatekeeper, Shapes};
use crate::hook::{self, BuildError, Hooks, Outside};
use crate::ids::{Org, TokenName};
use crate::job::queue::Queue;
use crate::lifecycle::Tasks;
use crate::mcp::Watcher;

/// See the module.
pub struct Agents {
    gatekeeper: Gatekeeper,
    desk: Desk,
    toolbox: Toolbox,
    runner: Option<Arc<Runner>>,
}

/// The agents cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Pieces hold problems.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Pieces(Vec<Problem>),
    /// Hooks cannot be built.
    #[error(transparent)]
    Hooks(#[from] BuildError),
    /// The model cannot be used.
    #[error(transparent)]
    Model(#[from] BadModel),
    /// There are pieces, and nothing to run them.
    #[error("agent.pieces is set without agent.model: name the endpoint that runs the pieces")]
    NoModel,
}

/// Reads the pieces of a configuration and checks them against its tools; none when there is no folder.
///
/// # Errors
/// Every problem of every file.
pub fn pieces(config: &AgentConfig) -> Result<Pieces, Vec<Problem>> {
    let tools = config.tools.iter().map(ToolConfig::name).collect();
    config
        .pieces
        .as_ref()
        .map_or_else(|| Ok(Pieces::default()), |folder| Pieces::load(folder, &tools))
}

/// The hooks for every agent, and those of pieces that have their own beside them.
fn hooks(
    general: (&HooksConfig, Arc<Hooks>),
    pieces: &Pieces,
    outside: &Outside,
) -> Result<HookSets, BuildError> {
    let (block, general) = general;
    let own = pieces.all().filter_map(|piece| {
        let hooks = hook::build(&[block, piece.hooks.as_ref()?], outside);
        Some(hooks.map(|hooks| (piece.name.clone(), hooks)))
    });
    let own = own.collect::<Result<_, _>>()?;
    Ok(HookSets::new(general, own))
}

impl Shapes for OnLoan {
    fn misfit(&self, tool: &ToolName, args: &Arguments) -> Option<String> {
        self.toolbox().shelf().misfit(tool.as_str(), args)
    }
}

impl Agents {
    /// Reads the pieces and builds tools, hooks and model. `http` must follow no redirect; `general` are the hooks of every
    /// agent, `outside` is what those of pieces run with.
    pub fn open(
        config: &Config,
        gatekeeper: Gatekeeper,
        http: &reqwest::Client,
        general: Arc<Hooks>,
        outside: &Outside,
    ) -> Result<Self, AgentError> {
        let (block, tokens) = (&config.hooks, &config.tokens);
        let config = &config.agent;
        let toolbox = Toolbox::new(&config.tools, http);
        gatekeeper.shapes().know(Arc::new(toolbox.on_loan()));
        let watcher: Arc<dyn Watcher> = Arc::new(super::servers::Told(Arc::clone(&general)));
        toolbox.watched_by(&watcher);
        let pieces = Arc::new(pieces(config).map_err(AgentError::Pieces)?);
        let runner = match &config.model {
            Some(model) => {
                let hooks = hooks((block, general), &pieces, outside)?;
                let limits = Limits {
                    context: usize::try_from(model.context).unwrap_or(usize::MAX),
                    ..Limits::from(&config.limits)
                };
                let model = ModelClient::new(model, http.clone(), Patience::of(model.retries))?;
                let runner = Runner::new(
                    gatekeeper.clone(),
                    Arc::new(model),
                    toolbox.clone(),
                    Arc::clone(&pieces),
                    limits,
                );
                let submits = tokens.iter().filter_map(|token| {
                    let pieces = token.pieces.as_ref()?.iter().cloned().collect();
                    Some((TokenName(token.name.clone()), pieces))
                });
                let agents = tokens.iter().filter(|token| token.role == Role::Agent);
                let agents = agents.map(|token| (TokenName(token.name.clone()), Org(token.org.clone())));
                let evaluations = config.evaluation.tokens.iter().cloned().map(TokenName);
                let runner = runner
                    .with_hooks(hooks)
                    .with_tokens(agents.collect())
                    .with_submits(submits.collect())
                    .with_evaluations(evaluations.collect());
                Some(Arc::new(runner))
            }
            None if config.pieces.is_some() => return Err(AgentError::NoModel),
            None => None,
        };
        let desk = Desk::new(pieces);
        Ok(Self {
            desk: match &runner {
                Some(runner) => desk.with_feed(runner.feed().clone()),
                None => desk,
            },
            gatekeeper,
            toolbox,
            runner,
        })
    }

    /// What those who take jobs in need; `None` when there is nothing to run jobs with.
    pub fn desk(&self) -> Option<&Desk> {
        self.runner.as_ref().map(|_| &self.desk)
    }

    /// Starts the servers of tools and the workers. Without a model there are none, and no piece to submit.
    pub fn start(&self, config: JobConfig, tasks: &Tasks) {
        let Some(runner) = &self.runner else { return };
        self.toolbox.start(tasks);
        let queue = Queue::new(
            self.gatekeeper.store().clone(),
            Arc::clone(runner) as Arc<dyn crate::job::worker::Run>,
            usize::try_from(config.workers).unwrap_or(1),
            config.lease,
            &**self.gatekeeper.ids(),
            tasks.clone(),
        );
        let per_agent = config.per_agent.map(|most| usize::try_from(most).unwrap_or(1));
        queue.with_per_agent(per_agent).start();
    }
}

//! From the configuration to the registry: the block that holds for every agent, and the block of a piece on top of it.
//!
//! A piece adds; it lifts nothing. Only for `result_truncate` and `audit_log` do its settings stand in for the general ones;
//! a guard or a limit of the general block stays beside its own.

use std::sync::Arc;
use std::time::Duration;

use super::builtin::audit_log::AuditLog;
use super::builtin::connector_rate_limit::ConnectorRateLimit;
use super::builtin::read_only_guard::ReadOnlyGuard;
use super::builtin::result_truncate::ResultTruncate;
use super::builtin::settings::{BadSetting, Settings};
use super::command::CommandHook;
use super::event::EventKind;
use super::observe::Wanted;
use super::point::surfaces as surfaces_of;
use super::process::{Backoff, Keeper, Limits, ProcessHook};
use super::registry::{BadGlob, Hooks, Mount, Source};
use super::{Point, Recorder};
use crate::clock::{Clock, SystemClock};
use crate::config::hook::{self as config, Builtin, BuiltinHook, HooksConfig};
use crate::gatekeeper::meter::Meter;
use crate::gatekeeper::{Journal, Via};
use crate::ids::{Ids, SystemIds};
use crate::lifecycle::Tasks;

/// How long a program has between TERM and KILL.
pub const GRACE: Duration = Duration::from_millis(500);

/// What hooks are built with.
#[derive(Clone)]
pub struct Outside {
    /// Where their answers are put on record.
    pub recorder: Recorder,
    /// Time, for events.
    pub clock: Arc<dyn Clock>,
    /// Where calls are counted.
    pub meter: Meter,
    /// Where observers and the readers of programs run.
    pub tasks: Tasks,
}

impl Outside {
    /// What hooks of a server are built with.
    pub fn new(
        journal: &Journal,
        meter: Meter,
        ids: &Arc<dyn Ids>,
        clock: &Arc<dyn Clock>,
        tasks: &Tasks,
    ) -> Self {
        Self {
            recorder: Recorder::new(journal.clone(), Arc::clone(ids)),
            clock: Arc::clone(clock),
            meter,
            tasks: tasks.clone(),
        }
    }

    /// Nothing is put on record and nothing runs: for an agent without hooks.
    pub fn none(ids: Arc<dyn Ids>) -> Self {
        Self {
            recorder: Recorder::forgetful(ids),
            clock: Arc::new(SystemClock),
            meter: Meter::none(),
            tasks: Tasks::new(),
        }
    }
}

/// Checks a block without starting anything.
///
/// # Errors
/// The first thing that [`build`] would stumble over.
pub fn check(block: &HooksConfig) -> Result<(), BuildError> {
    for (name, process) in &block.processes {
        wanted(name, &process.observe)?;
    }
    let quiet = HooksConfig {
        processes: std::collections::BTreeMap::new(),
        ..block.clone()
    };
    build(&[&quiet], &Outside::none(Arc::new(SystemIds))).map(|_| ())
}

/// What a block asks for that never comes: for each the key, and why.
pub fn absent(block: &HooksConfig) -> Vec<(String, String)> {
    let mut absent = Vec::new();
    for (name, process) in &block.processes {
        for word in &process.observe {
            if let Some(why) = EventKind::named(word).and_then(EventKind::absence) {
                let key = format!("hooks.processes.{name}.observe");
                absent.push((key, format!("`{word}` never occurs: {why}")));
            }
        }
    }
    absent
}

/// Hooks that cannot be built. The texts name the hook and the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A setting of a built-in hook.
    #[error("hooks.builtins.{hook}.config: {why}")]
    Setting {
        /// Which.
        hook: &'static str,
        /// What is wrong.
        why: BadSetting,
    },
    /// An event that does not exist.
    #[error(
        "hooks.processes.{hook}.observe: there is no event `{event}`; use `*` for all, or a name such as tool_exec_start"
    )]
    Event {
        /// Which hook.
        hook: String,
        /// The word.
        event: String,
    },
    /// A glob over tools.
    #[error(transparent)]
    Glob(#[from] BadGlob),
}

/// Builds the hooks of one agent: the general block first, then that of its piece.
pub fn build(blocks: &[&HooksConfig], outside: &Outside) -> Result<Hooks, BuildError> {
    let defaults = blocks.last().map(|block| block.defaults).unwrap_or_default();
    let mut hooks = Hooks::new(defaults, outside);
    for (name, builtin) in Builtin::ALL {
        mount_builtin(&mut hooks, blocks, name, builtin, outside)?;
    }
    for block in blocks {
        for (name, process) in block.processes.iter().filter(|(_, process)| process.enabled) {
            mount_process(&mut hooks, name, process, block, outside)?;
        }
        for command in &block.commands {
            mount_command(&mut hooks, command, block)?;
        }
    }
    Ok(hooks)
}

fn mount_builtin(
    hooks: &mut Hooks,
    blocks: &[&HooksConfig],
    name: &'static str,
    builtin: Builtin,
    outside: &Outside,
) -> Result<(), BuildError> {
    let bad = |why| BuildError::Setting { hook: name, why };
    let named: Vec<&BuiltinHook> = blocks
        .iter()
        .filter_map(|block| block.builtins.get(&builtin))
        .collect();
    let last = named.last().copied();
    let all = named.iter().copied().filter(|hook| hook.enabled);
    let on = |hook: &BuiltinHook, mount: Mount| Mount {
        surfaces: surfaces_of(&hook.surfaces),
        ..mount
    };
    match builtin {
        Builtin::ConfirmationGate => {
            for hook in all {
                let mut settings = Settings::new(hook.config.clone());
                let every = settings
                    .switch("require_confirmation_for_all", false)
                    .map_err(bad)?;
                settings.finish().map_err(bad)?;
                if every {
                    hooks.confirm_all(&surfaces_of(&hook.surfaces));
                }
            }
        }
        Builtin::AuditLog => {
            if let Some(named) = last.filter(|hook| hook.enabled) {
                let recorder = outside.recorder.clone();
                let (mount, hook) =
                    AuditLog::new(named.config.clone(), named.priority, recorder).map_err(bad)?;
                hooks.intercept(on(named, mount), Arc::new(hook))?;
            }
        }
        Builtin::ReadOnlyGuard => {
            for named in all {
                let (mount, hook) = ReadOnlyGuard::new(named.config.clone(), named.priority).map_err(bad)?;
                hooks.intercept(on(named, mount), Arc::new(hook))?;
            }
        }
        // The one that is on when nobody names it.
        Builtin::ResultTruncate if last.is_none_or(|hook| hook.enabled) => {
            let config = last.map(|hook| hook.config.clone()).unwrap_or_default();
            let priority = last.and_then(|hook| hook.priority);
            let (mut mount, hook) = ResultTruncate::new(config, priority).map_err(bad)?;
            // Elsewhere the result is not ours to shorten.
            mount.surfaces = vec![Via::Job];
            hooks.intercept(mount, Arc::new(hook))?;
        }
        Builtin::ResultTruncate => {}
        Builtin::ConnectorRateLimit => {
            for (at, block) in blocks.iter().enumerate() {
                let Some(named) = block.builtins.get(&builtin).filter(|hook| hook.enabled) else {
                    continue;
                };
                let meter = outside.meter.clone();
                let (mount, hook) =
                    ConnectorRateLimit::new(named.config.clone(), named.priority, meter, at > 0)
                        .map_err(bad)?;
                hooks.intercept(on(named, mount), Arc::new(hook))?;
            }
        }
    }
    Ok(())
}

fn mount_process(
    hooks: &mut Hooks,
    name: &str,
    process: &config::ProcessHook,
    block: &HooksConfig,
    outside: &Outside,
) -> Result<(), BuildError> {
    let points: Vec<Point> = process.intercept.iter().copied().map(Point::from).collect();
    let wanted = wanted(name, &process.observe)?;
    let limits = Limits {
        observer: block.defaults.observer_timeout,
        interceptor: block.defaults.interceptor_timeout,
        approval: block.defaults.approval_timeout,
        grace: GRACE,
    };
    let keeper = Keeper::new(
        name,
        process.child.clone(),
        &points,
        wanted.is_some(),
        limits,
        Backoff::default(),
        outside.tasks.clone(),
    );
    let hook = Arc::new(ProcessHook::new(Arc::new(keeper), limits));
    let mut mount = Mount {
        name: name.to_owned(),
        source: Source::Program,
        priority: process.priority,
        points,
        tools: vec!["*".to_owned()],
        surfaces: surfaces_of(&process.surfaces),
        limit: Some(limits.interceptor),
        on_failure: process.on_failure,
    };
    if mount.points.iter().any(|point| *point != Point::ApproveTool) {
        hooks.intercept(mount.clone(), Arc::clone(&hook) as _)?;
    }
    if mount.points.contains(&Point::ApproveTool) {
        mount.limit = Some(limits.approval);
        hooks.approve(mount.clone(), Arc::clone(&hook) as _)?;
    }
    if let Some(wanted) = wanted {
        mount.limit = Some(limits.observer);
        hooks.observe(&mount, wanted, hook);
    }
    Ok(())
}

fn mount_command(
    hooks: &mut Hooks,
    command: &config::CommandHook,
    block: &HooksConfig,
) -> Result<(), BuildError> {
    let point = Point::from(command.event);
    let default = match point {
        Point::ApproveTool => block.defaults.approval_timeout,
        _ => block.defaults.interceptor_timeout,
    };
    let limit = command.timeout.unwrap_or(default);
    let hook = Arc::new(CommandHook::new(command.child.clone(), limit, GRACE));
    let mount = Mount {
        name: command.name.clone(),
        source: Source::Program,
        priority: command.priority,
        points: vec![point],
        tools: command.tools.clone(),
        surfaces: surfaces_of(&command.surfaces),
        limit: Some(limit),
        on_failure: command.on_failure,
    };
    match point {
        Point::ApproveTool => hooks.approve(mount, hook)?,
        _ => hooks.intercept(mount, hook)?,
    }
    Ok(())
}

/// The events that a process is told of; none when it observes nothing.
fn wanted(hook: &str, observe: &[String]) -> Result<Option<Wanted>, BuildError> {
    if observe.is_empty() {
        return Ok(None);
    }
    if observe
        .iter()
        .any(|word| matches!(word.as_str(), "" | "*" | "all"))
    {
        return Ok(Some(Wanted::All));
    }
    let kinds = observe.iter().map(|word| {
        EventKind::named(word).ok_or_else(|| BuildError::Event {
            hook: hook.to_owned(),
            event: word.chars().filter(|c| !c.is_control()).take(60).collect(),
        })
    });
    Ok(Some(Wanted::Only(kinds.collect::<Result<_, _>>()?)))
}

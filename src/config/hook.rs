//! The `hooks` section: built-in hooks, hook processes and hook commands. A piece may hold the same block for itself.
//!
//! It says what is to run; how a hook is run and what its answer means is the hook room's business.

use std::{collections::BTreeMap, time::Duration};

use super::{
    child::{ChildConfig, decode_timeout},
    context::Complaint,
    node::{MapReader, Reader, did_you_mean, one_of},
    problem::ProblemKind,
    shown::shown,
};

/// The `hooks` section.
#[derive(Debug, Clone, Default)]
pub struct HooksConfig {
    /// How long hooks may take.
    pub defaults: HookDefaults,
    /// Settings of built-in hooks, by name.
    pub builtins: BTreeMap<Builtin, BuiltinHook>,
    /// Processes that speak JSON-RPC, by name.
    pub processes: BTreeMap<String, ProcessHook>,
    /// Commands that follow the convention of agent hosts, in the order of the file.
    pub commands: Vec<CommandHook>,
}

/// How long hooks may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookDefaults {
    /// A hook that only looks on.
    pub observer_timeout: Duration,
    /// A hook that may change or stop.
    pub interceptor_timeout: Duration,
    /// A hook that is asked for approval.
    pub approval_timeout: Duration,
}

impl Default for HookDefaults {
    fn default() -> Self {
        Self {
            observer_timeout: Duration::from_millis(500),
            interceptor_timeout: Duration::from_secs(5),
            approval_timeout: Duration::from_mins(1),
        }
    }
}

/// The hooks that Gatepost brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Builtin {
    /// Judges every call last; cannot be disabled.
    ConfirmationGate,
    /// Writes what happened into the audit log.
    AuditLog,
    /// Lets only reading tools through.
    ReadOnlyGuard,
    /// Shortens long results.
    ResultTruncate,
    /// Bounds the calls of one connector in a span of time.
    ConnectorRateLimit,
}

impl Builtin {
    /// Every built-in hook with its word.
    pub const ALL: [(&'static str, Self); 5] = [
        ("confirmation_gate", Self::ConfirmationGate),
        ("audit_log", Self::AuditLog),
        ("read_only_guard", Self::ReadOnlyGuard),
        ("result_truncate", Self::ResultTruncate),
        ("connector_rate_limit", Self::ConnectorRateLimit),
    ];
}

/// Whose calls a hook is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookSurface {
    /// Those of agent jobs.
    Job,
    /// Those that come over `POST /api/confirmations`.
    Api,
    /// Those of agent hosts.
    Host,
}

impl HookSurface {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Job, Self::Api, Self::Host];
}

/// Settings of a built-in hook. A hook that the block does not name keeps its own defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltinHook {
    /// Whether it runs.
    pub enabled: bool,
    /// Its place in the order, the lower first; `None` leaves the hook its own.
    pub priority: Option<i32>,
    /// Whose calls it is asked about.
    pub surfaces: Vec<HookSurface>,
    /// Its own settings; the hook judges them.
    pub config: serde_json::Map<String, serde_json::Value>,
}

/// A process that speaks JSON-RPC 2.0 over its standard streams.
#[derive(Debug, Clone)]
pub struct ProcessHook {
    /// Whether it runs.
    pub enabled: bool,
    /// What is started.
    pub child: ChildConfig,
    /// Its place in the order, the lower first.
    pub priority: i32,
    /// The events that it is told of, as written; `*` is all.
    pub observe: Vec<String>,
    /// The points at which it is asked.
    pub intercept: Vec<HookPoint>,
    /// Whose calls it is asked about, and told of.
    pub surfaces: Vec<HookSurface>,
    /// What follows when it fails, is late or answers nonsense.
    pub on_failure: OnFailure,
}

/// A command that is started for each event.
#[derive(Debug, Clone)]
pub struct CommandHook {
    /// Its name in messages and in the order; the program's name and place in the list when left out.
    pub name: String,
    /// When it runs.
    pub event: HookPoint,
    /// For which tools: globs. Of no meaning at `session_start`.
    pub tools: Vec<String>,
    /// Whose calls it is asked about.
    pub surfaces: Vec<HookSurface>,
    /// What is started.
    pub child: ChildConfig,
    /// How long it may take; `None` is the default of its kind.
    pub timeout: Option<Duration>,
    /// Its place in the order, the lower first.
    pub priority: i32,
    /// What follows when it fails, is late or answers nonsense.
    pub on_failure: OnFailure,
}

/// The points at which hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookPoint {
    /// A session begins.
    SessionStart,
    /// Before the model is asked.
    BeforeModel,
    /// After the model answered.
    AfterModel,
    /// Before a tool runs: the arguments may still change.
    PreToolUse,
    /// Whether the tool may run.
    ApproveTool,
    /// After a tool ran.
    PostToolUse,
}

/// What follows when a hook fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OnFailure {
    /// The call is denied, the turn ends.
    #[default]
    Deny,
    /// As if the hook had no opinion.
    Continue,
}

const INTERCEPT: [(&str, HookPoint); 9] = [
    ("before_model", HookPoint::BeforeModel),
    ("before_llm", HookPoint::BeforeModel),
    ("after_model", HookPoint::AfterModel),
    ("after_llm", HookPoint::AfterModel),
    ("before_tool", HookPoint::PreToolUse),
    ("pre_tool_use", HookPoint::PreToolUse),
    ("approve_tool", HookPoint::ApproveTool),
    ("after_tool", HookPoint::PostToolUse),
    ("post_tool_use", HookPoint::PostToolUse),
];
const COMMAND_EVENTS: [(&str, HookPoint); 6] = [
    ("session_start", HookPoint::SessionStart),
    ("pre_tool_use", HookPoint::PreToolUse),
    ("before_tool", HookPoint::PreToolUse),
    ("approve_tool", HookPoint::ApproveTool),
    ("post_tool_use", HookPoint::PostToolUse),
    ("after_tool", HookPoint::PostToolUse),
];
const SURFACES: [(&str, HookSurface); 3] = [
    ("job", HookSurface::Job),
    ("api", HookSurface::Api),
    ("host", HookSurface::Host),
];
const FAILURES: [(&str, OnFailure); 2] = [("deny", OnFailure::Deny), ("continue", OnFailure::Continue)];
const PRIORITY: i32 = 100;
const HIGHEST_PRIORITY: i32 = 1_000_000;

impl HooksConfig {
    /// Reads the block, in the configuration or in a piece.
    pub fn decode(reader: &Reader<'_>) -> Option<Self> {
        let before = reader.context().count();
        let mut map = reader.map()?;
        let defaults = map
            .optional("defaults")
            .and_then(|defaults| decode_defaults(&defaults));
        let builtins = map
            .optional("builtins")
            .and_then(|builtins| decode_builtins(&builtins));
        let processes = map
            .optional("processes")
            .and_then(|processes| decode_processes(&processes));
        let commands = map
            .optional("commands")
            .and_then(|commands| decode_commands(&commands));
        map.finish();
        (reader.context().count() == before).then(|| Self {
            defaults: defaults.unwrap_or_default(),
            builtins: builtins.unwrap_or_default(),
            processes: processes.unwrap_or_default(),
            commands: commands.unwrap_or_default(),
        })
    }
}

fn decode_defaults(reader: &Reader<'_>) -> Option<HookDefaults> {
    const LONGEST_MS: u64 = 24 * 3600 * 1000;
    let mut map = reader.map()?;
    let default = HookDefaults::default();
    let mut span = |key, default: Duration| {
        map.optional(key).map_or(Some(default), |span| {
            span.integer(1, LONGEST_MS).map(Duration::from_millis)
        })
    };
    let observer = span("observer_timeout_ms", default.observer_timeout);
    let interceptor = span("interceptor_timeout_ms", default.interceptor_timeout);
    let approval = span("approval_timeout_ms", default.approval_timeout);
    map.finish();
    Some(HookDefaults {
        observer_timeout: observer?,
        interceptor_timeout: interceptor?,
        approval_timeout: approval?,
    })
}

fn decode_builtins(reader: &Reader<'_>) -> Option<BTreeMap<Builtin, BuiltinHook>> {
    let mut hooks = BTreeMap::new();
    for (name, reader) in reader.names()? {
        let words: Vec<&str> = Builtin::ALL.iter().map(|(word, _)| *word).collect();
        let Some((_, builtin)) = Builtin::ALL.iter().find(|(word, _)| *word == name) else {
            reader.complain(
                Complaint::new(
                    ProblemKind::UnknownName,
                    format!("there is no built-in hook `{}`", shown(name)),
                )
                .accepted(one_of(&words))
                .remedy(did_you_mean(name, &words).unwrap_or_else(|| "choose one of these".into())),
            );
            continue;
        };
        if let Some(hook) = decode_builtin(&reader, *builtin) {
            hooks.insert(*builtin, hook);
        }
    }
    Some(hooks)
}

fn decode_builtin(reader: &Reader<'_>, builtin: Builtin) -> Option<BuiltinHook> {
    let mut map = reader.map()?;
    let enabled_reader = map.optional("enabled");
    let enabled = enabled_reader.as_ref().map_or(Some(true), Reader::boolean);
    let priority = map
        .optional("priority")
        .map_or(Some(None), |priority| decode_priority(&priority).map(Some));
    let surfaces = decode_surfaces(&mut map);
    let config = map
        .optional("config")
        .map_or_else(|| Some(serde_json::Map::new()), |config| config.json_object());
    map.finish();
    let enabled = enabled?;
    if builtin == Builtin::ConfirmationGate && !enabled {
        enabled_reader.as_ref().unwrap_or(reader).complain(
            Complaint::new(ProblemKind::Unsafe, "the confirmation gate cannot be disabled")
                .remedy("remove the key; a rule with effect allow lets calls through"),
        );
        return None;
    }
    Some(BuiltinHook {
        enabled,
        priority: priority?,
        surfaces: surfaces?,
        config: config?,
    })
}

fn decode_processes(reader: &Reader<'_>) -> Option<BTreeMap<String, ProcessHook>> {
    let mut hooks = BTreeMap::new();
    for (name, reader) in reader.names()? {
        if let Some(hook) = decode_process(&reader) {
            hooks.insert(name.to_owned(), hook);
        }
    }
    Some(hooks)
}

fn decode_process(reader: &Reader<'_>) -> Option<ProcessHook> {
    let mut map = reader.map()?;
    let enabled = map
        .optional("enabled")
        .map_or(Some(true), |enabled| enabled.boolean());
    let child = ChildConfig::decode(&mut map);
    let priority = map
        .optional("priority")
        .map_or(Some(PRIORITY), |priority| decode_priority(&priority));
    let observe = map
        .optional("observe")
        .map_or_else(|| Some(Vec::new()), |observe| observe.texts());
    let intercept = map
        .optional("intercept")
        .map_or_else(|| Some(Vec::new()), |intercept| decode_points(&intercept));
    let surfaces = decode_surfaces(&mut map);
    if let (Some(surfaces), Some(points)) = (&surfaces, &intercept) {
        complain_unless_met(reader, surfaces, points);
    }
    let on_failure = decode_failure(&mut map);
    if !map.has("observe") && !map.has("intercept") {
        reader.complain(
            Complaint::new(
                ProblemKind::MissingKey,
                "the hook is asked at no point and told of no event",
            )
            .remedy("add `observe`, `intercept` or both, or remove the hook"),
        );
    }
    map.finish();
    Some(ProcessHook {
        enabled: enabled?,
        child: child?,
        priority: priority?,
        observe: observe?,
        intercept: intercept?,
        surfaces: surfaces?,
        on_failure: on_failure?,
    })
}

fn decode_points(reader: &Reader<'_>) -> Option<Vec<HookPoint>> {
    reader.texts()?;
    let points: Vec<Option<HookPoint>> = reader
        .list()?
        .iter()
        .map(|point| point.choice(&INTERCEPT))
        .collect();
    let mut points: Vec<HookPoint> = points.into_iter().collect::<Option<_>>()?;
    points.sort_unstable();
    points.dedup();
    Some(points)
}

fn decode_commands(reader: &Reader<'_>) -> Option<Vec<CommandHook>> {
    Some(
        reader
            .list()?
            .iter()
            .enumerate()
            .filter_map(|(index, reader)| decode_command(index, reader))
            .collect(),
    )
}

fn decode_command(index: usize, reader: &Reader<'_>) -> Option<CommandHook> {
    let mut map = reader.map()?;
    let name = map.optional("name").map(|name| name.name());
    let event = map
        .required("event")
        .and_then(|event| event.choice(&COMMAND_EVENTS));
    let tools = map
        .optional("tools")
        .map_or_else(|| Some(vec!["*".to_owned()]), |tools| decode_globs(&tools));
    let surfaces = decode_surfaces(&mut map);
    if let (Some(surfaces), Some(event)) = (&surfaces, event) {
        complain_unless_met(reader, surfaces, &[event]);
    }
    let child = ChildConfig::decode(&mut map);
    let timeout = map
        .optional("timeout")
        .map_or(Some(None), |timeout| decode_timeout(&timeout).map(Some));
    let priority = map
        .optional("priority")
        .map_or(Some(PRIORITY), |priority| decode_priority(&priority));
    let on_failure = decode_failure(&mut map);
    map.finish();
    let child = child?;
    let name = name.unwrap_or_else(|| Some(format!("{}#{index}", child.program)))?;
    Some(CommandHook {
        name,
        event: event?,
        tools: tools?,
        surfaces: surfaces?,
        child,
        timeout: timeout?,
        priority: priority?,
        on_failure: on_failure?,
    })
}

/// Globs over tool names; one that does not compile would match nothing.
pub(super) fn decode_globs(reader: &Reader<'_>) -> Option<Vec<String>> {
    let globs = reader.texts()?;
    let mut good = true;
    for (item, glob) in reader.list()?.iter().zip(&globs) {
        if let Err(fault) = globset::Glob::new(glob) {
            good = false;
            item.complain(
                Complaint::new(
                    ProblemKind::BadValue,
                    format!("the glob does not compile: {}", fault.kind()),
                )
                .accepted("a glob such as *, files_* or mcp__*")
                .remedy("close every bracket and brace"),
            );
        }
    }
    good.then_some(globs)
}

/// Whose calls; all when the key is left out.
fn decode_surfaces(map: &mut MapReader<'_>) -> Option<Vec<HookSurface>> {
    let Some(reader) = map.optional("surfaces") else {
        return Some(HookSurface::ALL.to_vec());
    };
    reader.texts()?;
    let surfaces: Vec<Option<HookSurface>> =
        reader.list()?.iter().map(|word| word.choice(&SURFACES)).collect();
    let mut surfaces: Vec<HookSurface> = surfaces.into_iter().collect::<Option<_>>()?;
    surfaces.sort_unstable();
    surfaces.dedup();
    Some(surfaces)
}

/// Only jobs have sessions and a model of ours: a hook that waits for them elsewhere waits for ever.
fn complain_unless_met(reader: &Reader<'_>, surfaces: &[HookSurface], points: &[HookPoint]) {
    let of_jobs = |point: &HookPoint| {
        matches!(
            point,
            HookPoint::SessionStart | HookPoint::BeforeModel | HookPoint::AfterModel
        )
    };
    if !surfaces.contains(&HookSurface::Job) && points.iter().any(of_jobs) {
        reader.complain(
            Complaint::new(
                ProblemKind::BadValue,
                "the hook is asked at a point that only jobs have, and `surfaces` leaves jobs out",
            )
            .remedy("add `job` to `surfaces`, or take session_start, before_model and after_model out"),
        );
    }
}

fn decode_failure(map: &mut MapReader<'_>) -> Option<OnFailure> {
    map.optional("on_failure")
        .map_or(Some(OnFailure::Deny), |failure| failure.choice(&FAILURES))
}

fn decode_priority(reader: &Reader<'_>) -> Option<i32> {
    reader.integer(-HIGHEST_PRIORITY, HIGHEST_PRIORITY)
}

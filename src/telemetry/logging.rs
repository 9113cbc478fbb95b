//! Log lines: text for people or JSON for machines, to standard error, so that answers on standard output stay clean.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::util::TryInitError;

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Format {
    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Libraries that log the messages that they carry: what a tool is told and answers stands in no log, whatever the filter says.
const SILENT: &str = "rmcp";

/// What is logged when nothing is said: our own lines, and warnings of the libraries.
pub const USUAL: &str = "warn,gatepost=info";

/// Starts logging for the whole process. `filter` is in the form of `RUST_LOG`; one that cannot be read is the usual one.
///
/// # Errors
/// When the process logs already.
pub fn install(format: Format, filter: Option<&str>) -> Result<(), TryInitError> {
    let filter = filter
        .and_then(|filter| EnvFilter::try_new(filter).ok())
        .unwrap_or_else(|| EnvFilter::new(USUAL));
    let coloured = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let lines = fmt()
        .with_env_filter(filter)
        .with_ansi(coloured)
        .with_writer(std::io::stderr);
    let heard = filter_fn(|line| line.target().split("::").next() != Some(SILENT));
    match format {
        Format::Text => lines.finish().with(heard).try_init(),
        Format::Json => lines.json().flatten_event(true).finish().with(heard).try_init(),
    }
}

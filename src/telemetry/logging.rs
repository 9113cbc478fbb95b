//! Log lines: text for people or JSON for machines, to standard error, so that answers on standard output stay clean.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
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
    match format {
        Format::Text => lines.finish().try_init(),
        Format::Json => lines.json().flatten_event(true).finish().try_init(),
    }
}

//! What a keeper tells of its server to whoever watches. Must not know who that is.

/// Something that happened to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment<'a> {
    /// It is being connected.
    Connecting,
    /// It is there, and named its tools.
    Connected {
        /// How many of them can be called.
        tools: usize,
    },
    /// It could not be reached, or was lost.
    Failed {
        /// Why, without secrets.
        why: &'a str,
    },
    /// It offers a tool that it did not offer, or not like this, before.
    Discovered {
        /// The tool's name at the server.
        tool: &'a str,
    },
}

/// Whoever watches. Called by the keeper itself, so it must return at once.
pub trait Watcher: Send + Sync {
    /// Something happened to the server of this name.
    fn told(&self, server: &str, moment: Moment<'_>);
}

//! The `storage` section: which database, and how it is reached.

use std::path::Path;

use super::{
    context::{Complaint, Context},
    node::Reader,
    problem::ProblemKind,
    secret::Secret,
};

/// The `storage` section.
#[derive(Debug, Clone)]
pub struct StorageConfig {
    /// The kind of the database.
    pub backend: Backend,
    /// Its address, in which a relative SQLite path was made relative to the configuration's folder. May hold a password.
    pub url: Secret,
}

/// The databases that Gatepost speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// A file.
    Sqlite,
    /// A server.
    Postgres,
}

impl StorageConfig {
    /// The section when it is left out: a SQLite file beside the configuration.
    pub(super) fn absent(cx: &Context<'_>) -> Self {
        Self {
            backend: Backend::Sqlite,
            url: anchored("sqlite://gatepost.db", &cx.resolve("")),
        }
    }

    pub(super) fn decode(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let url = map.required("url");
        map.finish();
        let url_reader = url?;
        let url = url_reader.secret()?;
        let text = url.expose();
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            if url::Url::parse(text).is_err() {
                url_reader.complain(
                    Complaint::new(ProblemKind::BadValue, "the database address cannot be read")
                        .accepted("postgres://user:password@host:5432/database")
                        .remedy("percent-encode special characters of the password"),
                );
                return None;
            }
            return Some(Self {
                backend: Backend::Postgres,
                url,
            });
        }
        if text.starts_with("sqlite:") {
            if text.contains(":memory:") || text.contains("mode=memory") {
                url_reader
                    .warn("the database is in memory: every request and job is lost when the server ends");
            }
            return Some(Self {
                backend: Backend::Sqlite,
                url: anchored(text, &reader.context().resolve("")),
            });
        }
        url_reader.complain(
            Complaint::new(
                ProblemKind::BadValue,
                "the database address begins with neither sqlite: nor postgres://",
            )
            .accepted("sqlite://gatepost.db or postgres://user@host/database")
            .remedy("choose one of the two databases"),
        );
        None
    }
}

/// Makes the relative path of a SQLite address relative to the folder of the configuration.
fn anchored(url: &str, folder: &Path) -> Secret {
    let rest = url.strip_prefix("sqlite:").unwrap_or(url);
    let path = rest.strip_prefix("//").unwrap_or(rest);
    let here = folder.as_os_str().is_empty() || folder == Path::new(".");
    if here
        || path.is_empty()
        || path.starts_with('/')
        || path.starts_with(':')
        || path.contains("mode=memory")
    {
        return Secret::verbatim(url);
    }
    let folder = folder
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3F")
        .replace('#', "%23");
    Secret::verbatim(&format!("sqlite://{}/{path}", folder.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::anchored;
    use std::path::Path;

    #[test]
    fn a_relative_database_lies_beside_the_configuration() {
        for (url, folder, expected) in [
            (
                "sqlite://gatepost.db",
                "/etc/gatepost",
                "sqlite:///etc/gatepost/gatepost.db",
            ),
            (
                "sqlite:gatepost.db?mode=rwc",
                "/etc/gate post",
                "sqlite:///etc/gate post/gatepost.db?mode=rwc",
            ),
            ("sqlite://gatepost.db", "a?b", "sqlite://a%3Fb/gatepost.db"),
            ("sqlite://gatepost.db", "", "sqlite://gatepost.db"),
            ("sqlite:///var/gatepost.db", "/etc", "sqlite:///var/gatepost.db"),
            ("sqlite::memory:", "/etc", "sqlite::memory:"),
        ] {
            assert_eq!(anchored(url, Path::new(folder)).expose(), expected);
        }
    }
}

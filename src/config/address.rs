//! Where the server listens, how the outside names it, and the addresses of others. It opens no socket.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use url::{Host, Url};

use super::{context::Complaint, node::Reader, problem::ProblemKind, yaml::Value};

/// What is accepted as a listen address, for messages.
pub const ACCEPTED: &str = "127.0.0.1:8460, 0.0.0.0:8460, [::1]:8460, [::]:8460 or localhost:8460";

/// The address on which the server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen {
    host: ListenHost,
    port: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListenHost {
    Address(IpAddr),
    /// Both loopback addresses, so that a probe of `localhost` succeeds whichever it resolves to.
    Localhost,
}

/// Why a text is no listen address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// An IPv6 address without brackets.
    #[error("an IPv6 address needs brackets around it, as in [::]:8460 or [::1]:8460")]
    Brackets,
    /// An IPv6 address with a zone.
    #[error("an address with a zone (`%…`) is not supported; use [::]:8460 and a firewall")]
    Zone,
    /// No port.
    #[error("the port is missing: write HOST:PORT, as in 127.0.0.1:8460")]
    NoPort,
    /// A port that is no number up to 65535.
    #[error("the port is not a number from 0 to 65535")]
    BadPort,
    /// No host.
    #[error("the host is missing; write 0.0.0.0:PORT or [::]:PORT to listen on every address")]
    NoHost,
    /// A name other than `localhost`.
    #[error("the host is neither an IP address nor localhost")]
    NotAnAddress,
}

impl Listen {
    /// The default, 127.0.0.1:8460.
    pub const DEFAULT: Self = Self {
        host: ListenHost::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        port: 8460,
    };

    /// The sockets to bind. `localhost` is both loopback addresses; where the host has no IPv6, the second may fail.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        match self.host {
            ListenHost::Address(ip) => vec![SocketAddr::new(ip, self.port)],
            ListenHost::Localhost => vec![
                SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), self.port),
                SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), self.port),
            ],
        }
    }

    /// The port; 0 lets the system choose.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether only this machine can reach it.
    pub fn is_loopback(&self) -> bool {
        match self.host {
            ListenHost::Address(ip) => ip.is_loopback(),
            ListenHost::Localhost => true,
        }
    }

    /// Whether it is every address of the machine.
    pub fn is_unspecified(&self) -> bool {
        matches!(self.host, ListenHost::Address(ip) if ip.is_unspecified())
    }
}

impl FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        if text.contains('%') {
            return Err(ListenError::Zone);
        }
        if text.parse::<Ipv6Addr>().is_ok() || (!text.starts_with('[') && text.matches(':').count() > 1) {
            return Err(ListenError::Brackets);
        }
        let (host, port) = text.rsplit_once(':').ok_or(ListenError::NoPort)?;
        if text.ends_with(']') {
            return Err(ListenError::NoPort);
        }
        if host.is_empty() {
            return Err(ListenError::NoHost);
        }
        if port.is_empty() {
            return Err(ListenError::NoPort);
        }
        if !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ListenError::BadPort);
        }
        let port = port.parse().map_err(|_| ListenError::BadPort)?;
        let host = if host.eq_ignore_ascii_case("localhost") {
            ListenHost::Localhost
        } else if let Some(inner) = host.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(ListenError::Brackets)?;
            ListenHost::Address(IpAddr::V6(inner.parse().map_err(|_| ListenError::NotAnAddress)?))
        } else {
            ListenHost::Address(IpAddr::V4(host.parse().map_err(|_| ListenError::NotAnAddress)?))
        };
        Ok(Self { host, port })
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host {
            ListenHost::Address(ip) => write!(f, "{}", SocketAddr::new(ip, self.port)),
            ListenHost::Localhost => write!(f, "localhost:{}", self.port),
        }
    }
}

/// How the outside names the server: `https://gate.example.com` or with a base path, never with a slash at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(Url);

impl PublicUrl {
    /// Scheme, host and port, as an `Origin` header has them.
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// Host and, unless it is the scheme's own, port, as a `Host` header has them.
    pub fn authority(&self) -> String {
        let host = self.0.host_str().unwrap_or_default();
        self.0
            .port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// The path below which the server is reached: empty, or `/base` without a slash at the end.
    pub fn base_path(&self) -> &str {
        self.0.path().trim_end_matches('/')
    }

    /// The full address of a path of ours, which begins with a slash.
    pub fn join(&self, path: &str) -> String {
        format!(
            "{}{}/{}",
            self.origin(),
            self.base_path(),
            path.trim_start_matches('/')
        )
    }

    /// Whether it is reached by https.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    pub(super) fn read(reader: &Reader<'_>) -> Option<Self> {
        let url = read_url(reader, true)?;
        let path = url.path();
        // Escapes and dot segments are gone from the parsed path; what was written must not hold them either.
        let written = match reader.value() {
            Value::Text(text) => text.as_str(),
            _ => "",
        };
        let plain = !written.contains('%')
            && !written.contains("/.")
            && path
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '~'));
        if !plain || path.contains("//") {
            reader.complain(
                Complaint::new(ProblemKind::BadValue, "found an address with an unusual path")
                    .accepted("https://gate.example.com or https://gate.example.com/base")
                    .remedy("use letters, digits, - and _ between single slashes"),
            );
            return None;
        }
        if !is_loopback(&url) && url.scheme() == "http" {
            reader.warn("plain http: tokens and console sessions cross the network unprotected; use https");
        }
        Some(Self(url))
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.base_path())
    }
}

/// Whether the host of an address is this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        None => false,
    }
}

/// Reads an http(s) address without credentials, query and fragment. The text is never repeated: it may hold a secret.
pub(super) fn read_url(reader: &Reader<'_>, plain_allowed: bool) -> Option<Url> {
    const ACCEPTED: &str = "an address such as https://host/path";
    let refuse = |kind, found: String, remedy: &str| {
        reader.complain(Complaint::new(kind, found).accepted(ACCEPTED).remedy(remedy));
    };
    let Value::Text(text) = reader.value() else {
        refuse(
            ProblemKind::WrongType,
            "found something other than text".into(),
            "put the address in quotes",
        );
        return None;
    };
    let url = match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => url,
        Ok(_) => {
            refuse(
                ProblemKind::BadValue,
                "the address is not http or https".into(),
                "begin it with https://",
            );
            return None;
        }
        Err(fault) => {
            refuse(
                ProblemKind::BadValue,
                format!("not an address: {fault}"),
                "begin it with https:// and the host",
            );
            return None;
        }
    };
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) || text.contains('\\') {
        refuse(
            ProblemKind::BadValue,
            "the address holds a blank or a backslash".into(),
            "type it anew",
        );
        return None;
    }
    if !url.username().is_empty() || url.password().is_some() {
        refuse(
            ProblemKind::Unsafe,
            "the address holds a user name or password".into(),
            "remove what stands before the @",
        );
        return None;
    }
    if url.query().is_some() || url.fragment().is_some() {
        refuse(
            ProblemKind::BadValue,
            "the address holds a query or a fragment".into(),
            "remove what follows ? or #",
        );
        return None;
    }
    if url.scheme() == "http" && !plain_allowed && !is_loopback(&url) {
        refuse(
            ProblemKind::Unsafe,
            "plain http to another machine: the secrets of this address would cross the network unprotected"
                .into(),
            "use https; plain http is accepted on loopback only",
        );
        return None;
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::{Listen, ListenError};

    #[test]
    fn listens_where_it_is_told() {
        for (text, addresses) in [
            ("127.0.0.1:8460", vec!["127.0.0.1:8460"]),
            ("0.0.0.0:8080", vec!["0.0.0.0:8080"]),
            ("[::]:8460", vec!["[::]:8460"]),
            ("[::1]:8460", vec!["[::1]:8460"]),
            ("localhost:8460", vec!["127.0.0.1:8460", "[::1]:8460"]),
            ("127.0.0.1:0", vec!["127.0.0.1:0"]),
        ] {
            let listen: Listen = text.parse().unwrap();
            let bound: Vec<String> = listen.addresses().iter().map(ToString::to_string).collect();
            assert_eq!(bound, addresses, "{text}");
            assert_eq!(listen.to_string(), text);
        }
    }

    #[test]
    fn shows_the_right_spelling() {
        for (text, error) in [
            ("::8080", ListenError::Brackets),
            ("::1", ListenError::Brackets),
            ("::", ListenError::Brackets),
            ("fe80::1:8460", ListenError::Brackets),
            ("[fe80::1%eth0]:8080", ListenError::Zone),
            (":8080", ListenError::NoHost),
            ("8080", ListenError::NoPort),
            ("[::1]", ListenError::NoPort),
            ("127.0.0.1", ListenError::NoPort),
            ("127.0.0.1:", ListenError::NoPort),
            ("127.0.0.1:99999", ListenError::BadPort),
            ("127.0.0.1:+80", ListenError::BadPort),
            ("gate.example.com:80", ListenError::NotAnAddress),
            ("[127.0.0.1]:80", ListenError::NotAnAddress),
            ("[::1:80", ListenError::Brackets),
            ("", ListenError::NoPort),
        ] {
            assert_eq!(text.parse::<Listen>(), Err(error), "{text}");
        }
    }
}

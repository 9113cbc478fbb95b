//! By which names the server is known: a request that names another host, or that a browser sends from another site, is
//! refused. This is what keeps a web page from reaching a loopback server through a name of its own (DNS rebinding).

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::{HeaderMap, Uri, header};

use super::problem::{Code, Problem};
use crate::config::address::PublicUrl;

/// The names, as `Host` and `Origin` spell them. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Names(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    authorities: BTreeSet<String>,
    origins: BTreeSet<String>,
    /// Ports on which every address of the machine is served: any address is a name there, for an address cannot be rebound.
    open_ports: BTreeSet<u16>,
}

impl Names {
    /// The names of a server that is bound to these addresses.
    pub fn new(bound: &[SocketAddr], public: Option<&PublicUrl>) -> Self {
        let mut inner = Inner::default();
        for address in bound {
            let port = address.port();
            inner.add(&address.ip().to_string(), address.is_ipv6(), port);
            if address.ip().is_unspecified() {
                inner.open_ports.insert(port);
            }
            if address.ip().is_unspecified() || address.ip().is_loopback() {
                for (host, v6) in [("localhost", false), ("127.0.0.1", false), ("::1", true)] {
                    inner.add(host, v6, port);
                }
            }
        }
        if let Some(public) = public {
            inner.authorities.insert(public.authority().to_ascii_lowercase());
            inner.origins.insert(public.origin().to_ascii_lowercase());
            // Proxies may spell the scheme's own port out.
            if !public.authority().contains(':') || public.authority().ends_with(']') {
                let port = if public.is_https() { 443 } else { 80 };
                inner
                    .authorities
                    .insert(format!("{}:{port}", public.authority()).to_ascii_lowercase());
            }
        }
        Self(Arc::new(inner))
    }

    /// Checks the host and, where one stands, the origin.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let host = single(headers, &header::HOST)
            .or_else(|| uri.authority().map(axum::http::uri::Authority::as_str))
            .ok_or_else(|| {
                Problem::new(Code::WrongHost).because("the request names no host, or more than one")
            })?;
        if !self.0.knows(host) {
            return Err(Problem::new(Code::WrongHost)
                .because("set `server.public_url` to the address by which the server is reached"));
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let ours = origins.all(|origin| {
            origin.to_str().is_ok_and(|origin| {
                let origin = origin.to_ascii_lowercase();
                self.0.origins.contains(&origin)
                    || origin
                        .strip_prefix("http://")
                        .is_some_and(|authority| self.0.knows_bound(authority))
            })
        });
        if ours {
            Ok(())
        } else {
            Err(Problem::new(Code::ForeignOrigin))
        }
    }
}

impl Inner {
    fn add(&mut self, host: &str, v6: bool, port: u16) {
        let host = if v6 { format!("[{host}]") } else { host.to_owned() };
        if port == 80 {
            self.authorities.insert(host.clone());
            self.origins.insert(format!("http://{host}"));
        }
        self.origins.insert(format!("http://{host}:{port}"));
        self.authorities.insert(format!("{host}:{port}"));
    }

    fn knows(&self, authority: &str) -> bool {
        self.authorities.contains(&authority.to_ascii_lowercase()) || self.knows_bound(authority)
    }

    /// An address of this machine, where all of them are served.
    fn knows_bound(&self, authority: &str) -> bool {
        let parsed = authority.parse::<SocketAddr>().ok().or_else(|| {
            let host = authority.trim_start_matches('[').trim_end_matches(']');
            host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 80))
        });
        parsed.is_some_and(|address| self.open_ports.contains(&address.port()))
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(bound: &str) -> Names {
        Names::new(&[bound.parse().unwrap()], None)
    }

    fn check(names: &Names, host: &str, origin: Option<&str>) -> Option<Code> {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        names
            .check(&Uri::from_static("/x"), &headers)
            .err()
            .map(|problem| problem.code())
    }

    #[test]
    fn loopback_is_known_by_its_own_names_only() {
        let names = names("127.0.0.1:8460");
        for host in ["127.0.0.1:8460", "localhost:8460", "LocalHost:8460", "[::1]:8460"] {
            assert_eq!(check(&names, host, None), None, "{host}");
        }
        for host in [
            "evil.example:8460",
            "127.0.0.1",
            "127.0.0.1:80",
            "10.0.0.1:8460",
            "",
        ] {
            assert_eq!(check(&names, host, None), Some(Code::WrongHost), "{host}");
        }
    }

    #[test]
    fn every_address_means_addresses_not_names() {
        let names = names("0.0.0.0:8460");
        assert_eq!(check(&names, "10.1.2.3:8460", None), None);
        assert_eq!(check(&names, "10.1.2.3:8461", None), Some(Code::WrongHost));
        assert_eq!(check(&names, "gate.example:8460", None), Some(Code::WrongHost));
    }

    #[test]
    fn a_page_of_another_site_is_refused() {
        let names = names("127.0.0.1:8460");
        let host = "127.0.0.1:8460";
        assert_eq!(check(&names, host, Some("http://localhost:8460")), None);
        for origin in [
            "null",
            "https://evil.example",
            "http://localhost",
            "https://localhost:8460",
            "http://localhost:8461",
        ] {
            assert_eq!(
                check(&names, host, Some(origin)),
                Some(Code::ForeignOrigin),
                "{origin}"
            );
        }
    }
}

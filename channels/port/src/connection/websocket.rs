//! Opening and using a WebSocket (RFC 6455) through the one HTTP client of the installation: its trust store, proxy and
//! connect time-out hold here too, and no second TLS stack is needed. Knows no platform.
//!
//! Everything is bounded: the handshake, the size of a message, every write, the close. Nothing of an address is ever told,
//! since tickets stand in it.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use reqwest::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use reqwest::{StatusCode, Upgraded, Url, Version};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message, Utf8Bytes};

/// From the first byte to the answer of the handshake.
const UPGRADE_WITHIN: Duration = Duration::from_secs(10);
/// A peer that takes no byte for this long is gone.
const WRITE_WITHIN: Duration = Duration::from_secs(5);
/// How long a close may take; after that the connection is dropped.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);
/// The largest message that is read, in bytes. A click with its message is some tens of kilobytes.
const LARGEST_MESSAGE: usize = 1024 * 1024;
/// What is held for a peer that reads slowly, in bytes.
const LARGEST_BACKLOG: usize = 4 * 1024 * 1024;
const READ_BUFFER: usize = 16 * 1024;

/// A WebSocket was not opened. The texts hold no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// The address is none, or would carry the ticket in the clear: plain `ws` is for loopback only.
    #[error("bad_socket_address")]
    Address,
    /// No connection, or no answer in time.
    #[error("{0}")]
    Unreachable(&'static str),
    /// The server answered something else than an upgrade.
    #[error("handshake_http_{}", status.as_u16())]
    Refused {
        /// Its status.
        status: StatusCode,
        /// Its headers: some platforms say there why.
        headers: HeaderMap,
    },
    /// The server's upgrade is not the one that was asked for.
    #[error("handshake_malformed")]
    Malformed,
}

/// A frame that came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A text message.
    Text(Utf8Bytes),
    /// A binary message.
    Binary(Bytes),
    /// A ping or pong: the peer lives. Pings are answered below.
    Alive,
}

/// A frame to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outgoing {
    /// A text message.
    Text(String),
    /// A binary message.
    Binary(Vec<u8>),
    /// A ping of the WebSocket itself.
    Ping,
}

/// The connection is gone; the word says how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Gone(pub &'static str);

/// An open WebSocket.
#[derive(Debug)]
pub struct Socket(WebSocketStream<Upgraded>);

/// Opens a WebSocket at `address` (`wss://`, or `ws://` on loopback). `http` must speak HTTP/1.1 only and follow no redirect.
pub async fn dial(http: &reqwest::Client, address: &str) -> Result<Socket, DialError> {
    let key = generate_key();
    let response = http
        .get(over_http(address)?)
        .version(Version::HTTP_11)
        .timeout(UPGRADE_WITHIN)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header("Sec-WebSocket-Version", "13")
        .header("Sec-WebSocket-Key", &key)
        .send()
        .await
        .map_err(|error| {
            DialError::Unreachable(if error.is_timeout() {
                "handshake_timeout"
            } else if error.is_connect() {
                "connect_failed"
            } else {
                "handshake_lost"
            })
        })?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(DialError::Refused {
            status: response.status(),
            headers: response.headers().clone(),
        });
    }
    if !is_agreed(response.headers(), &key) {
        return Err(DialError::Malformed);
    }
    let stream = response
        .upgrade()
        .await
        .map_err(|_| DialError::Unreachable("handshake_lost"))?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(LARGEST_MESSAGE))
        .max_frame_size(Some(LARGEST_MESSAGE))
        .max_write_buffer_size(LARGEST_BACKLOG)
        .read_buffer_size(READ_BUFFER);
    Ok(Socket(
        WebSocketStream::from_raw_socket(stream, Role::Client, Some(config)).await,
    ))
}

impl Socket {
    /// The next frame. May be dropped and called again without losing one.
    pub async fn next(&mut self) -> Result<Frame, Gone> {
        loop {
            return match self.0.next().await {
                Some(Ok(Message::Text(text))) => Ok(Frame::Text(text)),
                Some(Ok(Message::Binary(bytes))) => Ok(Frame::Binary(bytes)),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(Frame::Alive),
                Some(Ok(Message::Frame(_))) => continue,
                Some(Ok(Message::Close(_))) | None => Err(Gone("closed_by_platform")),
                Some(Err(_)) => Err(Gone("connection_lost")),
            };
        }
    }

    /// Writes a frame out. After an error, or when it was dropped half-way, the socket is of no more use.
    pub async fn send(&mut self, frame: Outgoing) -> Result<(), Gone> {
        let message = match frame {
            Outgoing::Text(text) => Message::Text(text.into()),
            Outgoing::Binary(bytes) => Message::Binary(bytes.into()),
            Outgoing::Ping => Message::Ping(Bytes::new()),
        };
        match timeout(WRITE_WITHIN, self.0.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Gone("connection_lost")),
            Err(_) => Err(Gone("nothing_can_be_written")),
        }
    }

    /// Says goodbye, so that the platform does not go on counting the connection, and waits for the answer a little.
    pub async fn close(mut self) {
        let goodbye = async {
            if self.0.close(None).await.is_ok() {
                while let Some(Ok(_)) = self.0.next().await {}
            }
        };
        // Too slow is fine too: the connection is dropped either way.
        let _ = timeout(CLOSE_WITHIN, goodbye).await;
    }
}

/// The address of the handshake.
fn over_http(address: &str) -> Result<Url, DialError> {
    let mut url = Url::parse(address).map_err(|_| DialError::Address)?;
    let scheme = match url.scheme() {
        "wss" => "https",
        "ws" if is_loopback(&url) => "http",
        _ => return Err(DialError::Address),
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err(DialError::Address);
    }
    url.set_fragment(None);
    url.set_scheme(scheme).map_err(|()| DialError::Address)?;
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// RFC 6455, 4.1: the upgrade is to a WebSocket, proves our key, and holds no extension or protocol that was not asked for.
fn is_agreed(headers: &HeaderMap, key: &str) -> bool {
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_ascii_lowercase();
    let upgrade = headers.get(UPGRADE).map(text);
    let connection = headers.get(CONNECTION).map(text).unwrap_or_default();
    upgrade.as_deref() == Some("websocket")
        && connection.split(',').any(|word| word.trim() == "upgrade")
        && headers
            .get("sec-websocket-accept")
            .is_some_and(|value| value.as_bytes() == derive_accept_key(key.as_bytes()).as_bytes())
        && !headers.contains_key("sec-websocket-extensions")
        && !headers.contains_key("sec-websocket-protocol")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_never_travels_in_the_clear() {
        for (good, http) in [
            (
                "wss://a.example/link/?ticket=x#y",
                "https://a.example/link/?ticket=x",
            ),
            ("ws://127.0.0.1:9/x", "http://127.0.0.1:9/x"),
            ("ws://[::1]:9/x", "http://[::1]:9/x"),
        ] {
            assert_eq!(over_http(good).unwrap().as_str(), http);
        }
        for bad in [
            "",
            "a.example",
            "ws://a.example/",
            "ws://127.0.0.1.a.example/",
            "https://a.example/",
            "wss://u:p@a.example/",
        ] {
            assert_eq!(over_http(bad), Err(DialError::Address), "{bad}");
        }
    }

    #[test]
    fn only_the_upgrade_that_was_asked_for_is_taken() {
        // The example of RFC 6455, 1.3.
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let good: HeaderMap = [
            (UPGRADE, "WebSocket"),
            (CONNECTION, "keep-alive, Upgrade"),
            (
                reqwest::header::SEC_WEBSOCKET_ACCEPT,
                "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
            ),
        ]
        .into_iter()
        .map(|(name, value)| (name, HeaderValue::from_static(value)))
        .collect();
        assert!(is_agreed(&good, key));
        assert!(!is_agreed(&good, "another key"));
        for name in ["upgrade", "connection", "sec-websocket-accept"] {
            let mut missing = good.clone();
            missing.remove(name);
            assert!(!is_agreed(&missing, key), "{name}");
        }
        let mut extended = good;
        extended.insert(
            "sec-websocket-extensions",
            HeaderValue::from_static("permessage-deflate"),
        );
        assert!(!is_agreed(&extended, key));
    }
}

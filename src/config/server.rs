//! The `server` section: where it listens, how it is named from outside, and its key.

use std::path::PathBuf;

use crate::clock::Zone;

use super::{
    address::{ACCEPTED, Listen, PublicUrl},
    channel::time_zone,
    context::{Complaint, Context},
    node::Reader,
    problem::ProblemKind,
    server_key::ServerKey,
    yaml::Value,
};

/// The `server` section.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where it listens.
    pub listen: Listen,
    /// How the outside names it; needed for links in cards and for a Host other than the listen address.
    pub public_url: Option<PublicUrl>,
    /// Where its key is.
    pub key: KeySource,
    /// The zone of the times on the console's pages.
    pub time_zone: Zone,
    /// Connections that may be open at the same time; by the system's limit on open files, when `None`.
    pub max_connections: Option<u32>,
    /// Waits for people (long polls, streams, hooks that are held) of one token at the same time; half of all there is room for,
    /// when `None`.
    pub max_waits_per_token: Option<u32>,
}

/// Where the server's key comes from.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// A file, made at the first start.
    File(PathBuf),
    /// Given in the configuration or the environment.
    Given(ServerKey),
}

impl ServerConfig {
    /// The section when it is left out.
    pub(super) fn absent(cx: &Context<'_>) -> Self {
        Self {
            listen: Listen::DEFAULT,
            public_url: None,
            key: default_key(cx),
            time_zone: Zone::default(),
            max_connections: None,
            max_waits_per_token: None,
        }
    }

    pub(super) fn decode(reader: &Reader<'_>) -> Option<Self> {
        let cx = reader.context();
        let before = cx.count();
        let mut map = reader.map()?;
        let listen = map
            .optional("listen")
            .map(|listen| listen.parsed::<Listen>(ACCEPTED));
        let public_url = map.optional("public_url").and_then(|url| PublicUrl::read(&url));
        let key = map.optional("key").map(|key| decode_key(&key));
        let time_zone = map
            .optional("time_zone")
            .map_or_else(|| Some(Zone::default()), |zone| time_zone(&zone));
        let max_connections = map
            .optional("max_connections")
            .map_or(Some(None), |number| number.integer(4, 1_000_000).map(Some));
        let max_waits_per_token = map
            .optional("max_waits_per_token")
            .map_or(Some(None), |number| number.integer(1, 1_000_000).map(Some));
        map.finish();
        let listen = listen.unwrap_or(Some(Listen::DEFAULT))?;
        if listen.is_unspecified() && public_url.is_none() {
            reader.warn("listens on every address without a `public_url`: only requests that call it `localhost` or by an IP address are answered, none that use another host name");
        }
        let key = key.unwrap_or_else(|| Some(default_key(cx)))?;
        (cx.count() == before).then_some(Self {
            listen,
            public_url,
            key,
            time_zone: time_zone?,
            max_connections: max_connections?,
            max_waits_per_token: max_waits_per_token?,
        })
    }
}

fn default_key(cx: &Context<'_>) -> KeySource {
    KeySource::File(cx.resolve("gatepost.key"))
}

/// `{file: PATH}` names a file that may not exist yet; any other source must hold the key now.
fn decode_key(reader: &Reader<'_>) -> Option<KeySource> {
    if matches!(reader.value(), Value::Map(_)) {
        let mut map = reader.map()?;
        if map.has("file") && !map.has("env") {
            let path = map.required("file").and_then(|file| file.path_value());
            map.finish();
            return path.map(KeySource::File);
        }
    }
    let secret = reader.secret()?;
    let key = ServerKey::from_hex(secret.expose());
    if key.is_none() {
        reader.complain(
            Complaint::new(
                ProblemKind::BadSecret,
                "the server's key is not 64 hexadecimal digits (32 bytes)",
            )
            .remedy("use {file: gatepost.key}, which is made at the first start, or 32 random bytes in hex"),
        );
    }
    key.map(KeySource::Given)
}

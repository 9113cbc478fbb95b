//! What the platforms say: whether a card would go through, and what only shows when somebody clicks.

use std::sync::Arc;

use futures_util::future::join_all;
use gatepost_channel::Needs;

use super::finding::{Finding, State};
use super::people::known_by_address;
use crate::app::channels;
use crate::clock::Clock;
use crate::config::address::is_loopback;
use crate::config::{ChannelConfig, Config};

/// Asks every channel.
pub(super) async fn ask(config: &Config, http: &reqwest::Client, clock: &Arc<dyn Clock>) -> Vec<Finding> {
    let registry = match channels::build(&config.channels, http, clock) {
        Ok(registry) => registry,
        Err(error) => return vec![Finding::new("channels", Err(error.to_string()))],
    };
    let asked = config.channels.iter().filter_map(|channel| {
        let listed = registry.get(&channel.name)?;
        Some(async move {
            let name = format!("channel {}", listed.name);
            let health = listed.channel.check().await;
            let looked = if health.healthy {
                Ok(health.detail)
            } else {
                Err(health.detail)
            };
            let mut found = vec![Finding::new(&name, looked)];
            let closer = listed.channel.examine(&needs(config, channel)).await;
            found.extend(closer.into_iter().map(|finding| {
                let name = format!("{name}: {}", finding.about);
                Finding::of(name, State::from(finding.state), finding.detail)
            }));
            found
        })
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// What the installation uses of a channel.
fn needs(config: &Config, channel: &ChannelConfig) -> Needs {
    Needs {
        callback: callback(config, channel),
        emails: known_by_address(config, &channel.org),
        groups: config
            .operator_groups
            .iter()
            .any(|group| group.channel == channel.name),
    }
}

/// The address that the platform must call; nothing where it calls none, or none is known.
pub(super) fn callback(config: &Config, channel: &ChannelConfig) -> Option<String> {
    let base = channel.base_url().filter(|_| channel.is_called())?;
    let path = format!("/api/channels/{}/callback", channel.name);
    match &config.server.public_url {
        Some(url) => Some(url.join(&path)),
        // A platform on this machine, as in tests, needs no public address.
        None if is_loopback(base) => Some(format!("http://{}{path}", config.server.listen)),
        None => None,
    }
}

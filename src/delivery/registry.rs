//! The configured channels, by name, and by what a verified click says of itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use gatepost_channel::{AppKey, Channel};

use super::card::Voice;
use crate::ids::{ChannelName, Org};

/// A channel with what Gatepost knows of it.
#[derive(Clone)]
pub struct Listed {
    /// Its name.
    pub name: ChannelName,
    /// Whose it is.
    pub org: Org,
    /// How it is spoken to.
    pub voice: Voice,
    /// The adapter.
    pub channel: Arc<dyn Channel>,
}

/// All channels. Clones share them.
#[derive(Clone, Default)]
pub struct Registry(Arc<BTreeMap<ChannelName, Listed>>);

impl Registry {
    /// The channels of an installation.
    pub fn new(channels: impl IntoIterator<Item = Listed>) -> Self {
        Self(Arc::new(
            channels
                .into_iter()
                .map(|listed| (listed.name.clone(), listed))
                .collect(),
        ))
    }

    /// A channel by name.
    pub fn get(&self, name: &str) -> Option<&Listed> {
        self.0.get(&ChannelName(name.to_owned()))
    }

    /// All channels in order of name.
    pub fn all(&self) -> impl Iterator<Item = &Listed> {
        self.0.values()
    }

    /// The channels among these names that belong to the organisation. A request is posted nowhere else.
    pub fn of_org<'a>(&'a self, org: &'a Org, names: &'a [String]) -> impl Iterator<Item = &'a Listed> {
        names
            .iter()
            .filter_map(|name| self.get(name))
            .filter(move |listed| listed.org == *org)
    }

    /// The channel in which a verified click happened: the same app, the same organisation, that chat.
    pub fn of_click(&self, app: &AppKey, org: &Org, chat: &str) -> Option<&Listed> {
        self.all().find(|listed| {
            listed.org == *org && listed.channel.app() == *app && listed.channel.chat() == chat
        })
    }
}

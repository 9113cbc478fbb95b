//! The questions: each is put to a platform once, within a time, and not at all where the app was told that it may not.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use gatepost_channel::{AppKey, Channel, Directory, Failure, Group, Profile, Unfound, UtcMillis};
use tracing::warn;

use super::shelf::{Answer, Flight, MAY_NOT, pause};
use super::{Listed, Listing, Parts};

/// A kind of question; a missing right or a rate limit holds for all questions of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Person,
    Address,
    Members,
    Chat,
    Belongs,
}

impl Kind {
    const fn what(self) -> &'static str {
        match self {
            Self::Person => "accounts",
            Self::Address => "e-mail addresses",
            Self::Members | Self::Belongs => "user groups",
            Self::Chat => "members of the chat",
        }
    }
}

/// What apps were told of whole kinds of questions.
#[derive(Default)]
pub(super) struct Asked(Mutex<BTreeMap<(AppKey, Kind), (UtcMillis, Unfound)>>);

impl Asked {
    /// What the app may not ask, in one line.
    pub(super) fn missing(&self, app: &AppKey) -> Option<String> {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<String> = told
            .iter()
            .filter_map(|((of, kind), (_, why))| match why {
                Unfound::MayNotAsk { why } if of == app => Some(format!("{} ({why})", kind.what())),
                _ => None,
            })
            .collect();
        (!lines.is_empty()).then(|| format!("cannot look up {}", lines.join(", ")))
    }

    fn closed(&self, app: &AppKey, kind: Kind, now: UtcMillis) -> Option<Unfound> {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, why) = told.get(&(app.clone(), kind))?;
        (now < *until).then(|| why.clone())
    }

    /// Takes note of what holds for the whole kind; says it in the log when it is new.
    fn note<V>(&self, channel: &dyn Channel, kind: Kind, answer: &Answer<V>, now: UtcMillis) {
        let key = (channel.app(), kind);
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = matches!(told.get(&key), Some((_, Unfound::MayNotAsk { .. })));
        match answer {
            Err(Unfound::MayNotAsk { why }) => {
                if !known {
                    warn!(
                        channel = channel.name(), %why,
                        "the app cannot look up {}: identities in the configuration count all the same, people known by an \
                         address or a group do not", kind.what()
                    );
                }
                let why = Unfound::MayNotAsk { why: why.clone() };
                told.insert(key, (now.plus(MAY_NOT), why));
            }
            Err(Unfound::Failed(failure @ Failure::Retry { after: Some(_), .. })) if !known => {
                let until = now.plus(pause(failure));
                told.insert(key, (until, Unfound::Failed(failure.clone())));
            }
            Ok(_) => {
                told.remove(&key);
            }
            Err(_) => {}
        }
    }
}

/// Whose question it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// About somebody who answers or is in the configuration.
    Ours,
    /// About a name that an agent chose: what the platform refuses to say of it holds for nobody else.
    Agents,
}

/// Puts a question to a platform, unless its kind is known to lead nowhere.
fn put<V: Send + 'static>(
    parts: &Arc<Parts>,
    listed: &Listed,
    (kind, whose): (Kind, Whose),
    question: impl for<'a> FnOnce(&'a dyn Directory) -> BoxFuture<'a, Answer<V>> + Send + 'static,
) -> BoxFuture<'static, Answer<V>> {
    let (parts, channel) = (Arc::clone(parts), Arc::clone(&listed.channel));
    async move {
        if let Some(closed) = parts.asked.closed(&channel.app(), kind, parts.clock.now()) {
            return Err(closed);
        }
        let Some(directory) = channel.directory() else {
            return Err(Unfound::MayNotAsk {
                why: "the channel has no directory".to_owned(),
            });
        };
        let answer = question(directory).await;
        if whose == Whose::Ours || !matches!(answer, Err(Unfound::MayNotAsk { .. })) {
            parts.asked.note(&*channel, kind, &answer, parts.clock.now());
        }
        answer
    }
    .boxed()
}

/// Waits for an answer as long as the caller can.
pub(super) async fn within<V: Clone>(patience: Duration, flight: Flight<V>) -> Answer<V> {
    tokio::time::timeout(patience, flight).await.unwrap_or_else(|_| {
        Err(Unfound::Failed(Failure::Retry {
            after: None,
            why: "too slow".to_owned(),
        }))
    })
}

impl Parts {
    /// The account of this id.
    pub(super) fn person(self: &Arc<Self>, listed: &Listed, id: &str) -> Flight<Profile> {
        self.person_for(listed, id, Whose::Ours)
    }

    /// The account of this id, for whoever asks.
    pub(super) fn person_for(self: &Arc<Self>, listed: &Listed, id: &str, whose: Whose) -> Flight<Profile> {
        let name = id.to_owned();
        self.persons.get((listed.channel.app(), id.to_owned()), || {
            put(self, listed, (Kind::Person, whose), |directory| {
                async move { directory.person(&name).await }.boxed()
            })
        })
    }

    /// The account of this address.
    pub(super) fn address(self: &Arc<Self>, listed: &Listed, email: &str) -> Flight<String> {
        self.address_for(listed, email, Whose::Ours)
    }

    /// The account of this address, for whoever asks.
    pub(super) fn address_for(
        self: &Arc<Self>,
        listed: &Listed,
        email: &str,
        whose: Whose,
    ) -> Flight<String> {
        let email = email.to_lowercase();
        self.addresses.get((listed.channel.app(), email.clone()), || {
            put(self, listed, (Kind::Address, whose), |directory| {
                async move { directory.by_email(&email).await }.boxed()
            })
        })
    }

    /// The members of a group.
    pub(super) fn members(self: &Arc<Self>, listed: &Listed, group: &Group) -> Flight<Listing> {
        let kind = match group {
            Group::Named(_) => Kind::Members,
            Group::Chat => Kind::Chat,
        };
        let which = group.clone();
        self.members.get((listed.name.clone(), group.clone()), || {
            put(self, listed, (kind, Whose::Ours), |directory| {
                async move {
                    let members = directory.members(&which).await?;
                    Ok(Arc::new(members.into_iter().collect()))
                }
                .boxed()
            })
        })
    }

    /// Whether somebody who is not listed is in the group all the same.
    pub(super) fn belongs(
        self: &Arc<Self>,
        listed: &Listed,
        group: &Group,
        id: &str,
    ) -> Flight<Option<bool>> {
        let (which, name) = (group.clone(), id.to_owned());
        let key = (listed.name.clone(), group.clone(), id.to_owned());
        self.belongs.get(key, || {
            put(self, listed, (Kind::Belongs, Whose::Ours), |directory| {
                async move { directory.belongs(&which, &name).await }.boxed()
            })
        })
    }
}

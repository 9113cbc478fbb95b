//! What a batch touches, spelled for the statements that find it.

use serde::Serialize;

use super::Touches;
use super::rows::Text;

/// The touched keys as texts, in the order of their sets.
#[derive(Debug, Default, Serialize)]
pub(super) struct Wanted {
    pub(super) orgs: Vec<Text>,
    pub(super) confirmations: Vec<String>,
    /// Organisation, token, session, call.
    pub(super) calls: Vec<[Text; 4]>,
    /// Organisation, token, session, digest.
    pub(super) twins: Vec<[Text; 4]>,
    pub(super) alikes: Vec<String>,
    pub(super) tokens: Vec<String>,
    /// Kind of app, app, press.
    pub(super) replays: Vec<[Text; 3]>,
    /// Organisation, counter, scope, token, person.
    pub(super) tallies: Vec<[Text; 5]>,
    pub(super) jobs: Vec<String>,
    pub(super) outbox: Vec<String>,
    pub(super) grants: Vec<String>,
    /// Organisation, token, tool.
    pub(super) grant_keys: Vec<[Text; 3]>,
    /// Organisation, kind.
    pub(super) notes: Vec<[Text; 2]>,
}

impl From<&Touches> for Wanted {
    fn from(touches: &Touches) -> Self {
        let calls = touches
            .calls
            .iter()
            .map(|key| [key.org.as_str(), key.token.as_str(), &key.session, &key.call].map(Text::keep));
        let twins = touches.twins.iter().map(|key| {
            let digest = hex::encode(key.digest);
            [key.org.as_str(), key.token.as_str(), &key.session, &digest].map(Text::keep)
        });
        let replays = touches
            .replays
            .iter()
            .map(|replay| [&*replay.app.kind, &*replay.app.id, &*replay.key].map(Text::keep));
        let grant_keys = touches
            .grant_keys
            .iter()
            .map(|key| [key.org.as_str(), key.token.as_str(), &key.tool].map(Text::keep));
        let tallies = touches.tallies.iter().map(|key| {
            let (org, token) = (key.org.as_str(), key.token.as_str());
            [org, &key.counter, &key.scope, token, &key.person].map(Text::keep)
        });
        let notes = touches
            .notes
            .iter()
            .map(|key| [key.org.as_str(), key.kind.as_str()].map(Text::keep));
        Self {
            orgs: touches.orgs.iter().map(|org| Text::keep(org.as_str())).collect(),
            confirmations: touches
                .confirmations
                .iter()
                .map(|id| id.as_str().to_owned())
                .collect(),
            calls: calls.collect(),
            twins: twins.collect(),
            alikes: touches
                .alikes
                .iter()
                .map(|alike| hex::encode(alike.as_bytes()))
                .collect(),
            tokens: touches.tokens.iter().map(hex::encode).collect(),
            replays: replays.collect(),
            tallies: tallies.collect(),
            jobs: touches.jobs.iter().map(|id| id.as_str().to_owned()).collect(),
            outbox: touches.outbox.iter().map(|id| id.as_str().to_owned()).collect(),
            grants: touches.grants.iter().map(|id| id.as_str().to_owned()).collect(),
            grant_keys: grant_keys.collect(),
            notes: notes.collect(),
        }
    }
}

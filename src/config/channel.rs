//! The `channels` section: the groups on IM platforms in which cards stand.
//!
//! A channel that could run without its secret cannot be built: what a mode needs is part of the mode.

use url::Url;

use crate::clock::Zone;

use super::{
    auth::DEFAULT_ORG,
    context::Complaint,
    node::{MapReader, Reader},
    problem::ProblemKind,
    secret::Secret,
};

/// A configured group.
#[derive(Debug, Clone)]
pub struct ChannelConfig {
    /// Its name, unique; part of the callback's path.
    pub name: String,
    /// Its organisation.
    pub org: String,
    /// The language of its cards.
    pub language: Language,
    /// The zone of the times on its cards.
    pub time_zone: Zone,
    /// What its platform needs.
    pub platform: Platform,
}

/// The kinds of channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Feishu and Lark.
    Feishu,
    /// Slack.
    Slack,
    /// The console inbox and the terminal.
    Local,
}

impl Kind {
    /// Every kind with its word.
    pub const ALL: [(&'static str, Self); 3] = [
        ("feishu", Self::Feishu),
        ("slack", Self::Slack),
        ("local", Self::Local),
    ];

    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Feishu => "feishu",
            Self::Slack => "slack",
            Self::Local => "local",
        }
    }

    /// The kind of a word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(name, _)| *name == word)
            .map(|(_, kind)| *kind)
    }
}

/// The languages of cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
    /// Japanese.
    Ja,
}

impl Language {
    /// Every language with its word.
    pub const ALL: [(&'static str, Self); 3] = [("en", Self::En), ("zh", Self::Zh), ("ja", Self::Ja)];

    /// The word of the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Zh => "zh",
            Self::Ja => "ja",
        }
    }
}

/// What a channel's platform needs.
#[derive(Debug, Clone)]
pub enum Platform {
    /// A Feishu or Lark group.
    Feishu(FeishuConfig),
    /// A Slack channel.
    Slack(SlackConfig),
    /// The console inbox and the terminal.
    Local,
}

/// A Feishu or Lark group.
#[derive(Debug, Clone)]
pub struct FeishuConfig {
    /// `https://open.feishu.cn` or `https://open.larksuite.com`.
    pub base_url: Url,
    /// The app's id.
    pub app_id: String,
    /// The app's secret.
    pub app_secret: Secret,
    /// The group.
    pub chat_id: String,
    /// Whose people may click; `None` leaves it to the app's own tenant.
    pub tenants: Option<Vec<String>>,
    /// How clicks arrive.
    pub mode: FeishuMode,
}

/// How clicks arrive from Feishu.
#[derive(Debug, Clone)]
pub enum FeishuMode {
    /// By HTTP callback.
    Webhook {
        /// Decrypts and authenticates callbacks.
        encrypt_key: Secret,
        /// Stands in every callback.
        verification_token: Secret,
    },
    /// By a connection that we open.
    LongConnection {
        /// Compared with the token of each event when it is given.
        verification_token: Option<Secret>,
    },
}

/// A Slack channel.
#[derive(Debug, Clone)]
pub struct SlackConfig {
    /// `https://slack.com/api`.
    pub base_url: Url,
    /// The app's id (`A…`), when it should be compared with that of the callbacks.
    pub app_id: Option<String>,
    /// The bot's token.
    pub bot_token: Secret,
    /// The channel's id.
    pub channel: String,
    /// Whose people may click; `None` leaves it to the bot's own team.
    pub teams: Option<Vec<String>>,
    /// How clicks arrive.
    pub mode: SlackMode,
}

/// How clicks arrive from Slack.
#[derive(Debug, Clone)]
pub enum SlackMode {
    /// By HTTP callback, signed with one of these; never empty, several while one is rotated.
    Webhook {
        /// The secrets, the current one first.
        signing_secrets: Vec<Secret>,
    },
    /// By a connection that we open.
    Socket {
        /// The app-level token.
        app_token: Secret,
    },
}

impl ChannelConfig {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self.platform {
            Platform::Feishu(_) => Kind::Feishu,
            Platform::Slack(_) => Kind::Slack,
            Platform::Local => Kind::Local,
        }
    }

    /// Where its platform is called; nothing where there is no platform.
    pub fn base_url(&self) -> Option<&Url> {
        match &self.platform {
            Platform::Feishu(feishu) => Some(&feishu.base_url),
            Platform::Slack(slack) => Some(&slack.base_url),
            Platform::Local => None,
        }
    }

    /// Whether its platform calls us, so that we need an address which it can reach.
    pub fn is_called(&self) -> bool {
        match &self.platform {
            Platform::Feishu(feishu) => matches!(feishu.mode, FeishuMode::Webhook { .. }),
            Platform::Slack(slack) => matches!(slack.mode, SlackMode::Webhook { .. }),
            Platform::Local => false,
        }
    }

    fn decode(reader: &Reader<'_>) -> Option<Self> {
        let before = reader.context().count();
        let mut map = reader.map()?;
        let name = map.required("name").and_then(|name| name.name());
        let kind = map.required("kind").and_then(|kind| kind.choice(&Kind::ALL));
        let org = map
            .optional("org")
            .map_or_else(|| Some(DEFAULT_ORG.to_owned()), |org| org.name());
        let language = map.optional("language").map_or_else(
            || Some(Language::default()),
            |language| language.choice(&Language::ALL),
        );
        let time_zone = map
            .optional("time_zone")
            .map_or_else(|| Some(Zone::default()), |zone| time_zone(&zone));
        // Without a kind nothing can be said about the other keys.
        let platform = match kind? {
            Kind::Feishu => decode_feishu(&mut map).map(Platform::Feishu),
            Kind::Slack => decode_slack(&mut map).map(Platform::Slack),
            Kind::Local => Some(Platform::Local),
        };
        map.finish();
        let channel = Self {
            name: name?,
            org: org?,
            language: language?,
            time_zone: time_zone?,
            platform: platform?,
        };
        (reader.context().count() == before).then_some(channel)
    }
}

/// A zone of the IANA database.
pub(super) fn time_zone(reader: &Reader<'_>) -> Option<Zone> {
    reader.parsed("the name of a zone of the IANA database, such as Asia/Shanghai, or UTC")
}

/// The channels, in the order of the file; `None` for one that could not be read.
pub(super) fn decode(reader: &Reader<'_>) -> Option<Vec<Option<ChannelConfig>>> {
    Some(reader.list()?.iter().map(ChannelConfig::decode).collect())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ModeWord {
    Webhook,
    Connection,
}

fn decode_feishu(map: &mut MapReader<'_>) -> Option<FeishuConfig> {
    const MODES: [(&str, ModeWord); 2] = [
        ("webhook", ModeWord::Webhook),
        ("long_connection", ModeWord::Connection),
    ];
    let mode = map
        .optional("mode")
        .map_or(Some(ModeWord::Webhook), |mode| mode.choice(&MODES));
    let base_url = base_url(map, "https://open.feishu.cn");
    let app_id_reader = map.required("app_id");
    let app_id = app_id_reader.as_ref().and_then(platform_id);
    let app_secret = map.required("app_secret").and_then(|secret| secret.secret());
    let encrypt_key = map.optional("encrypt_key");
    let verification_token = map.optional("verification_token");
    let chat_id = map.required("chat_id").and_then(|chat| {
        let id = platform_id(&chat)?;
        if !id.starts_with("oc_") {
            chat.warn("does not look like the id of a group, which begins with `oc_`: copy it from the foot of the group's settings");
        }
        Some(id)
    });
    let tenants = map.optional("tenants").map(|tenants| platform_ids(&tenants));
    let app_id_ok = |id: &str| {
        id.strip_prefix("cli_")
            .is_some_and(|tail| !tail.is_empty() && tail.chars().all(|c| c.is_ascii_alphanumeric()))
    };
    if let (Some(reader), Some(id)) = (&app_id_reader, &app_id)
        && !app_id_ok(id)
    {
        reader.warn("does not look like the id of an app, which is `cli_` and letters and digits: copy it from the app's page `Credentials`");
    }
    let mode = match mode? {
        ModeWord::Connection => {
            without_effect(encrypt_key, "long_connection");
            match verification_token {
                Some(token) => token.secret().map(Some),
                None => Some(None),
            }
            .map(|verification_token| FeishuMode::LongConnection { verification_token })
        }
        ModeWord::Webhook => {
            const REMEDY: &str = "copy it from the app's page `Events & callbacks`, `Encryption strategy`; without it anybody could forge a click";
            let encrypt_key = needed(map, "encrypt_key", encrypt_key, REMEDY);
            let verification_token = needed(map, "verification_token", verification_token, REMEDY);
            let encrypt_key = encrypt_key.and_then(|key| key.secret());
            let verification_token = verification_token.and_then(|token| token.secret());
            encrypt_key
                .zip(verification_token)
                .map(|(encrypt_key, verification_token)| FeishuMode::Webhook {
                    encrypt_key,
                    verification_token,
                })
        }
    };
    let tenants = tenants.map_or(Some(None), |tenants| tenants.map(Some))?;
    Some(FeishuConfig {
        base_url: base_url?,
        app_id: app_id?,
        app_secret: app_secret?,
        chat_id: chat_id?,
        tenants,
        mode: mode?,
    })
}

fn decode_slack(map: &mut MapReader<'_>) -> Option<SlackConfig> {
    const MODES: [(&str, ModeWord); 2] = [("webhook", ModeWord::Webhook), ("socket", ModeWord::Connection)];
    let mode = map
        .optional("mode")
        .map_or(Some(ModeWord::Webhook), |mode| mode.choice(&MODES));
    let base_url = base_url(map, "https://slack.com/api");
    let app_id = map.optional("app_id").map(|app_id| platform_id(&app_id));
    let bot_token = map.required("bot_token").and_then(|token| {
        let secret = token.header_secret()?;
        // Tokens that are rotated have a second prefix (Slack: token rotation).
        if !["xoxb-", "xoxe.xoxb-"].iter().any(|start| secret.expose().starts_with(start)) {
            token.warn("does not look like the token of a bot, which begins with `xoxb-`: copy the Bot User OAuth Token from the app's page `OAuth & Permissions`");
        }
        Some(secret)
    });
    let app_token = map.optional("app_token");
    let signing_secret = map.optional("signing_secret");
    let channel = map.required("channel").and_then(|channel| conversation(&channel));
    let teams = map.optional("teams").map(|teams| platform_ids(&teams));
    let mode = match mode? {
        ModeWord::Webhook => {
            const REMEDY: &str =
                "copy it from the app's page `Basic Information`; without it anybody could forge a click";
            const OR_SOCKET: &str = "`app_token` is for Socket Mode: write `mode: socket` beside it, or copy the signing secret from the app's page `Basic Information`";
            let meant_socket = app_token.is_some() && !map.has("mode");
            without_effect(app_token, "webhook");
            let remedy = if meant_socket { OR_SOCKET } else { REMEDY };
            needed(map, "signing_secret", signing_secret, remedy)
                .and_then(|secret| decode_signing_secrets(&secret))
                .map(|signing_secrets| SlackMode::Webhook { signing_secrets })
        }
        ModeWord::Connection => {
            const REMEDY: &str = "create an app-level token (xapp-…) with the scope connections:write";
            without_effect(signing_secret, "socket");
            needed(map, "app_token", app_token, REMEDY)
                .and_then(|token| {
                    let secret = token.header_secret()?;
                    if !secret.expose().starts_with("xapp-") {
                        token.warn("does not look like an app-level token, which begins with `xapp-`: generate one on the app's page `Basic Information`, App-Level Tokens");
                    }
                    Some(secret)
                })
                .map(|app_token| SlackMode::Socket { app_token })
        }
    };
    let app_id = app_id.map_or(Some(None), |app_id| app_id.map(Some))?;
    let teams = teams.map_or(Some(None), |teams| teams.map(Some))?;
    Some(SlackConfig {
        base_url: base_url?,
        app_id,
        bot_token: bot_token?,
        channel: channel?,
        teams,
        mode: mode?,
    })
}

/// A key that the mode cannot do without.
fn needed<'a>(map: &MapReader<'a>, key: &str, found: Option<Reader<'a>>, remedy: &str) -> Option<Reader<'a>> {
    if found.is_none() {
        map.missing(key, remedy);
    }
    found
}

/// A secret of another mode is neither used nor looked up.
fn without_effect(found: Option<Reader<'_>>, mode: &str) {
    if let Some(reader) = found {
        reader.warn(format!("has no effect in mode {mode}"));
    }
}

/// An id of a platform. Ids travel in paths and are compared with those of clicks, so nothing else may stand here.
fn platform_id(reader: &Reader<'_>) -> Option<String> {
    let id = reader.line(128)?;
    if !is_platform_id(&id) {
        reader.bad_value(
            "letters, digits, _ and -",
            "copy the id from the platform; a name does not do",
        );
        return None;
    }
    Some(id)
}

fn platform_ids(reader: &Reader<'_>) -> Option<Vec<String>> {
    let ids = reader.texts()?;
    let items = reader.list()?;
    items
        .iter()
        .filter_map(platform_id)
        .count()
        .eq(&ids.len())
        .then_some(ids)
}

fn is_platform_id(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Clicks name a conversation by its id, so a name such as `#ops` would never match.
fn conversation(reader: &Reader<'_>) -> Option<String> {
    let id = platform_id(reader)?;
    if !id.starts_with(['C', 'G', 'D']) {
        reader.bad_value(
            "the id of a conversation: C…, G… or D…",
            "copy it from the foot of the conversation's details",
        );
        return None;
    }
    Some(id)
}

/// One secret, or a list of at least one while it is rotated.
fn decode_signing_secrets(reader: &Reader<'_>) -> Option<Vec<Secret>> {
    let super::yaml::Value::List(_) = reader.value() else {
        return reader.header_secret().map(|secret| vec![secret]);
    };
    let items = reader.list()?;
    if items.is_empty() {
        reader.complain(
            Complaint::new(ProblemKind::BadSecret, "found an empty list of secrets")
                .accepted("a secret, or a list of at least one")
                .remedy("set it: nothing runs without its secret"),
        );
        return None;
    }
    let secrets: Vec<Option<Secret>> = items.iter().map(Reader::header_secret).collect();
    secrets.into_iter().collect()
}

fn base_url(map: &mut MapReader<'_>, default: &str) -> Option<Url> {
    match map.optional("base_url") {
        Some(reader) => reader.url(false),
        None => Url::parse(default).ok(),
    }
}

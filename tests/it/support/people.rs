//! The people around the stories.

/// A person who may decide somewhere.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    /// The operator's id.
    pub id: &'static str,
    /// As cards name the person.
    pub name: &'static str,
    /// The e-mail address.
    pub email: &'static str,
    /// The Slack user.
    pub slack: &'static str,
    /// The Feishu `open_id`.
    pub feishu: &'static str,
    org: &'static str,
    roles: &'static str,
    /// Further keys of the entry.
    more: &'static str,
}

impl Operator {
    const fn of_acme(id: &'static str, name: &'static str, email: &'static str, roles: &'static str) -> Self {
        Self {
            id,
            name,
            email,
            slack: "",
            feishu: "",
            org: "acme",
            roles,
            more: "",
        }
    }

    const fn known_as(self, slack: &'static str, feishu: &'static str) -> Self {
        Self {
            slack,
            feishu,
            ..self
        }
    }

    const fn with(self, more: &'static str) -> Self {
        Self { more, ..self }
    }

    /// The entry of the configuration.
    pub fn yaml(&self) -> String {
        let Self {
            id,
            name,
            email,
            slack,
            feishu,
            org,
            roles,
            more,
        } = self;
        format!(
            "  - {{ id: {id}, name: {name}, email: {email}, orgs: [{org}], roles: [{roles}], \
             identities: {{ slack: {slack}, feishu: {feishu} }}{more} }}\n"
        )
    }
}

/// Decides about money, and has an authenticator app: see [`authenticator`](super::authenticator).
pub const DANA: Operator = Operator::of_acme("dana", "Dana Kim", "dana@example.com", "finance")
    .known_as("U024BE7LH", "ou_7d8a6e")
    .with(", totp: GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
/// Decides about money.
pub const NOOR: Operator = Operator::of_acme("noor", "Noor Haddad", "noor@example.com", "finance")
    .known_as("U061F7AUR", "ou_51c0de");
/// Decides about money.
pub const OMAR: Operator =
    Operator::of_acme("omar", "Omar Sy", "omar@example.com", "finance").known_as("U0OMAR001", "ou_0a4a12");
/// Decides about money, and asks for it.
pub const RITA: Operator =
    Operator::of_acme("rita", "Rita Roe", "rita@example.com", "finance").known_as("U0RITA001", "ou_417a33");
/// An operator who may decide nothing here.
pub const OLGA: Operator =
    Operator::of_acme("olga", "Olga Out", "olga@example.com", "guest").known_as("U0OLGA001", "ou_016a44");
/// Of the other organisation.
pub const BOB: Operator = Operator {
    org: "umbrella",
    ..Operator::of_acme("bob", "Bob Brolly", "bob@example.com", "umbrella").known_as("U0BOB0001", "ou_b0b055")
};

/// Decides about the vault, and is away; meanwhile Olga acts.
pub const VERA: Operator = Operator::of_acme("vera", "Vera Vault", "vera@example.com", "vault")
    .known_as("U0VERA001", "ou_7e4a55")
    .with(", away: [{ from: \"2000-01-01T00:00:00Z\", until: \"2100-01-01T00:00:00Z\", substitute: olga }]");

/// All of them.
pub const PEOPLE: [Operator; 7] = [DANA, NOOR, OMAR, RITA, OLGA, VERA, BOB];

/// A member of the groups who is no operator.
pub const STRANGER_SLACK: &str = "U0STRANGE";
/// The same on Feishu.
pub const STRANGER_FEISHU: &str = "ou_5714a6";

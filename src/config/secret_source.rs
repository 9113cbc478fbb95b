//! Where secrets come from: a literal, the environment or a file. What a secret must be like is said in `secret`.

use zeroize::Zeroizing;

use super::{
    context::Complaint,
    node::{Reader, describe_type},
    problem::ProblemKind,
    secret::{self, Secret, SecretFault, Trimmed},
    shown::shown_path,
    yaml::Value,
};

impl Reader<'_> {
    /// A secret: a literal, `{env: NAME}` or `{file: PATH}`, under the one rule of [`Secret::accept`].
    pub fn secret(&self) -> Option<Secret> {
        let (raw, origin) = self.secret_text()?;
        match Secret::accept(&raw) {
            Ok((secret, Trimmed::No)) => Some(secret),
            Ok((secret, Trimmed::LineEnd)) => {
                self.warn(format!(
                    "the line end after the secret{origin} is not part of it and was left out; `printf %s` writes none"
                ));
                Some(secret)
            }
            Ok((secret, Trimmed::Yes)) => {
                self.warn(format!(
                    "blanks, a line end or a byte-order mark around the secret{origin} were removed"
                ));
                Some(secret)
            }
            Err(fault) => {
                self.bad_secret(&origin, fault);
                None
            }
        }
    }

    /// A secret that is sent in an HTTP header.
    pub fn header_secret(&self) -> Option<Secret> {
        match self.secret()?.for_header() {
            Ok(secret) => Some(secret),
            Err(fault) => {
                self.bad_secret("", fault);
                None
            }
        }
    }

    /// An entry of a child's environment: a literal as it stands, or `{env: NAME}` and `{file: PATH}` as for secrets.
    pub fn env_value(&self) -> Option<Secret> {
        match self.value() {
            Value::Text(text) if text.contains('\0') => {
                self.wrong_type("text with a NUL character", "text");
                None
            }
            Value::Text(text) => Some(Secret::verbatim(text)),
            Value::Number(spelling) => Some(Secret::verbatim(spelling)),
            _ => self.secret(),
        }
    }

    fn bad_secret(&self, origin: &str, fault: SecretFault) {
        let remedy = match fault {
            SecretFault::Empty => "set it: nothing runs without its secret",
            SecretFault::Quoted => "remove the quotes: they would be part of the secret",
            SecretFault::SecondLine => "keep the line with the secret only",
            SecretFault::EscapedLineEnd => {
                "remove the last two characters: no shell turned them into a line end"
            }
            SecretFault::Invisible | SecretFault::NotForHeader => "copy the secret anew, as plain text",
            SecretFault::NotText => "store the file as UTF-8",
            SecretFault::TooLong => "check that this is the right value",
        };
        let message = format!("the secret{origin} cannot be used: {fault}");
        self.complain(Complaint::new(ProblemKind::BadSecret, message).remedy(remedy));
    }

    /// The raw text of a secret and, for messages, where it came from.
    fn secret_text(&self) -> Option<(Zeroizing<String>, String)> {
        const ACCEPTED: &str = "text, {env: NAME} or {file: PATH}";
        let entries = match self.value() {
            Value::Text(text) => return Some((text.clone().into(), String::new())),
            Value::Map(entries) => entries,
            other => {
                self.wrong_type(&describe_type(other), ACCEPTED);
                return None;
            }
        };
        let mut map = self.map_of(entries);
        let (env, file) = (map.optional("env"), map.optional("file"));
        map.finish();
        match (env, file) {
            (Some(env), None) => env.in_environment(),
            (None, Some(file)) => file.in_file(),
            _ => {
                self.complain(
                    Complaint::new(
                        ProblemKind::WrongType,
                        "found a mapping without exactly one of `env` and `file`",
                    )
                    .accepted(ACCEPTED)
                    .remedy("name one source of the secret"),
                );
                None
            }
        }
    }

    fn in_environment(&self) -> Option<(Zeroizing<String>, String)> {
        let is_name = |text: &str| {
            text.len() <= 128
                && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        let name = match self.value() {
            Value::Text(name) if is_name(name) => name,
            // The text may be the secret itself, put in the wrong place: it is not repeated.
            _ => {
                self.complain(
                    Complaint::new(
                        ProblemKind::BadValue,
                        "found what is not the name of an environment variable",
                    )
                    .accepted("letters, digits and _")
                    .remedy("write the variable's name here, not its value"),
                );
                return None;
            }
        };
        if let Some(value) = self.cx.env(name) {
            return Some((value.into(), format!(" in the environment variable {name}")));
        }
        let message = format!("the environment variable {name} is not set, or is not UTF-8 text");
        self.complain(
            Complaint::new(ProblemKind::BadSecret, message)
                .remedy(format!("set {name} before the start, or use {{file: PATH}}")),
        );
        None
    }

    fn in_file(&self) -> Option<(Zeroizing<String>, String)> {
        let text = self.text()?;
        let path = self.cx.resolve(&text);
        match secret::read_file(&path) {
            Ok(raw) => Some((raw, format!(" in the file {}", shown_path(&path)))),
            Err(secret::SecretFileError::Fault(fault)) => {
                self.bad_secret(&format!(" in the file {}", shown_path(&path)), fault);
                None
            }
            Err(fault) => {
                self.complain(
                    Complaint::new(ProblemKind::BadSecret, format!("{}: {fault}", shown_path(&path))).remedy(
                        "create the file with the secret in it; a relative path starts at the folder of the configuration",
                    ),
                );
                None
            }
        }
    }
}

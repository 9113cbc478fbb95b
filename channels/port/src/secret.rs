//! A secret that an adapter was given: it does not print, and it is wiped when it is dropped.

use std::fmt;

use zeroize::Zeroizing;

/// A secret text, never empty.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// An empty or blank secret protects nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the secret is empty")]
pub struct EmptySecret;

impl Secret {
    /// Takes a secret; an empty or blank one is refused, so that no check is ever keyed with nothing.
    pub fn new(text: impl Into<String>) -> Result<Self, EmptySecret> {
        let text = Zeroizing::new(text.into());
        if text.trim().is_empty() {
            Err(EmptySecret)
        } else {
            Ok(Self(text))
        }
    }

    /// The secret itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

//! Secrets and the one rule that all of them obey, wherever they come from.
//!
//! Surrounding blanks, line ends and a byte-order mark are removed (with a warning that names the key); an empty secret
//! is refused, and so is whatever is almost surely not part of it: quotes around it, a second line, invisible or control
//! characters. It knows no key of the configuration and prints no secret.

use std::{fmt, io::Read as _, path::Path};

use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use super::shown::is_invisible;

/// The longest secret, in bytes.
pub const MAX_BYTES: usize = 16 * 1024;

/// A value that must not be seen: no `Display`, a redacted `Debug`, wiped from memory when dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// Whether something around the secret was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trimmed {
    /// It stood as it is.
    No,
    /// One line end after it was removed, as editors and `echo` leave it.
    LineEnd,
    /// More than that: blanks, line ends or a byte-order mark were removed.
    Yes,
}

/// Why a text cannot be a secret. The texts never hold a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    /// Nothing, or nothing but blanks.
    #[error("it is empty")]
    Empty,
    /// More than [`MAX_BYTES`].
    #[error("it is longer than {MAX_BYTES} bytes")]
    TooLong,
    /// It begins and ends with a quote.
    #[error("there are quotes around it")]
    Quoted,
    /// A line end inside.
    #[error("it has more than one line")]
    SecondLine,
    /// The two characters `\n` at the end, left over from a shell or an env file.
    #[error("it ends in a backslash and the letter n or r")]
    EscapedLineEnd,
    /// A control, invisible or non-breaking character inside.
    #[error("it holds a control character, an invisible character or a blank that is no plain space")]
    Invisible,
    /// A character that cannot stand in an HTTP header.
    #[error("it holds a blank or a character outside of ASCII, which cannot be sent in a header")]
    NotForHeader,
    /// Not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
}

impl Secret {
    /// Applies the rule to a raw text.
    ///
    /// # Errors
    /// The first fault found.
    pub fn accept(raw: &str) -> Result<(Self, Trimmed), SecretFault> {
        let clean = raw.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{feff}' || c == '\u{b}');
        if clean.trim().is_empty() || clean.chars().all(|c| c.is_whitespace() || is_invisible(c)) {
            return Err(SecretFault::Empty);
        }
        if clean.len() > MAX_BYTES {
            return Err(SecretFault::TooLong);
        }
        if clean.contains(['\n', '\r']) {
            return Err(SecretFault::SecondLine);
        }
        if clean
            .chars()
            .any(|c| c.is_control() || is_invisible(c) || (c.is_whitespace() && c != ' '))
        {
            return Err(SecretFault::Invisible);
        }
        if is_quoted(clean) {
            return Err(SecretFault::Quoted);
        }
        if clean.ends_with("\\n") || clean.ends_with("\\r") {
            return Err(SecretFault::EscapedLineEnd);
        }
        let trimmed = match raw.strip_prefix(clean) {
            Some("") => Trimmed::No,
            Some("\n" | "\r\n") => Trimmed::LineEnd,
            _ => Trimmed::Yes,
        };
        Ok((Self(Zeroizing::new(clean.to_owned())), trimmed))
    }

    /// A text that is kept out of sight but taken as it stands, such as an entry of a child's environment.
    pub fn verbatim(text: &str) -> Self {
        Self(Zeroizing::new(text.to_owned()))
    }

    /// Demands that it can be sent in an HTTP header: visible ASCII only.
    ///
    /// # Errors
    /// [`SecretFault::NotForHeader`].
    pub fn for_header(self) -> Result<Self, SecretFault> {
        if self.0.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(self)
        } else {
            Err(SecretFault::NotForHeader)
        }
    }

    /// The secret itself. The caller keeps it out of logs, errors and pages.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Its length in characters, which may be shown.
    pub fn length(&self) -> usize {
        self.0.chars().count()
    }

    /// Compares without telling by the time it takes where they differ.
    pub fn same_as(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Why a secret's file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// It is not there, or not for us to read.
    #[error("the file cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// A folder, a device or a pipe.
    #[error("it is not a regular file")]
    NotAFile,
    /// Its content breaks the rule.
    #[error(transparent)]
    Fault(#[from] SecretFault),
}

/// Reads the raw text of a secret's file, bounded.
///
/// # Errors
/// [`SecretFileError`] when there is no readable regular file of UTF-8 text within the bound.
pub fn read_file(path: &Path) -> Result<Zeroizing<String>, SecretFileError> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(SecretFileError::NotAFile);
    }
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(64);
    let mut bytes = Zeroizing::new(Vec::new());
    std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| SecretFault::NotText)?;
    if bytes.len() > MAX_BYTES {
        return Err(SecretFault::TooLong.into());
    }
    Ok(Zeroizing::new(text.to_owned()))
}

fn is_quoted(text: &str) -> bool {
    const PAIRS: [(char, char); 6] = [
        ('"', '"'),
        ('\'', '\''),
        ('`', '`'),
        ('“', '”'),
        ('‘', '’'),
        ('«', '»'),
    ];
    text.chars().count() > 1
        && PAIRS
            .iter()
            .any(|(open, close)| text.starts_with(*open) && text.ends_with(*close))
}

//! Addresses with slots, such as `https://host/items/{id}`: what a call may fill in, and nothing else of the address.
//!
//! A slot stands in the path alone, never in the host. Filling escapes every character that is not unreserved (RFC 3986
//! section 2.3) and looks at the whole address once more, so that no value can add, drop or climb a segment.
//! It knows no argument: whoever fills brings the values.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use url::Url;

/// The longest address that is sent, in bytes.
pub const MAX_ADDRESS: usize = 8_192;

/// An http(s) address whose path may hold slots. It has neither query, fragment nor credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Scheme, host and port.
    origin: Url,
    /// The segments of the path; a path that ends with a slash ends with an empty one.
    segments: Vec<Vec<Part>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// As it stands in the address, escaped.
    Text(String),
    /// Filled by every call.
    Slot(String),
}

/// Why a text is no address with slots.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The part before the path is no address.
    #[error("not an address: {0}")]
    Address(#[from] url::ParseError),
    /// Another scheme, or no host.
    #[error("the address is not http or https")]
    Scheme,
    /// A user name or a password.
    #[error("the address holds a user name or password")]
    Credentials,
    /// A query or a fragment.
    #[error("the address holds a query or a fragment")]
    Query,
    /// A brace without its other half, or a slot outside the path.
    #[error("a slot is a name in braces, and stands in the path")]
    Slot,
    /// A slot that stands twice.
    #[error("a slot stands in the path twice")]
    Twice,
    /// A blank, a control character, a backslash, a stray `%`, or a segment that would be taken out again.
    #[error("the path holds a blank, a backslash, a stray % or a segment that is empty, `.` or `..`")]
    Path,
}

/// Why a value cannot stand in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// No value.
    #[error("it is missing")]
    Missing,
    /// Nothing would stand there, and another segment would take its place.
    #[error("it is empty")]
    Empty,
    /// It climbs, as it stands or once it is decoded.
    #[error("it holds `.` or `..` as a part of a path")]
    Climbs,
    /// A control character.
    #[error("it holds a control character")]
    Control,
    /// The address would be too long.
    #[error("the address would have more than {MAX_ADDRESS} bytes")]
    Long,
    /// What came out is not the address that was meant.
    #[error("it would change the address")]
    Changed,
}

impl Template {
    /// The names of the slots, in the order of the path.
    pub fn slots(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flatten().filter_map(|part| match part {
            Part::Slot(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// Scheme, host and port, with the path `/`.
    pub const fn origin(&self) -> &Url {
        &self.origin
    }

    /// This address with the path of another behind it.
    ///
    /// # Errors
    /// As for an address as a whole.
    pub fn joined(&self, path: &str) -> Result<Self, TemplateError> {
        let mut whole = self.to_string();
        if whole.ends_with('/') {
            whole.pop();
        }
        if !path.starts_with('/') {
            return Err(TemplateError::Path);
        }
        (whole + path).parse()
    }

    /// The address with its slots filled; `query` is what follows the `?`, escaped by [`escaped`].
    ///
    /// # Errors
    /// The name of the slot that cannot be filled (empty where it is the address as a whole), and why.
    pub fn fill<'v>(
        &self,
        value: impl Fn(&str) -> Option<&'v str>,
        query: &str,
    ) -> Result<Url, (String, FillError)> {
        let mut path = String::new();
        for segment in &self.segments {
            path.push('/');
            let start = path.len();
            for part in segment {
                match part {
                    Part::Text(text) => path.push_str(text),
                    Part::Slot(name) => {
                        let value = value(name).ok_or_else(|| (name.clone(), FillError::Missing))?;
                        judge(value).map_err(|why| (name.clone(), why))?;
                        path.push_str(&escaped(value));
                    }
                }
            }
            let slots = segment.iter().any(|part| matches!(part, Part::Slot(_)));
            if slots && is_dots(path.get(start..).unwrap_or_default()) {
                return Err((String::new(), FillError::Climbs));
            }
        }
        let mut text = format!("{}{path}", self.origin.as_str().trim_end_matches('/'));
        if !query.is_empty() {
            text.push('?');
            text.push_str(query);
        }
        if text.len() > MAX_ADDRESS {
            return Err((String::new(), FillError::Long));
        }
        // The last look: what will be asked for is what was put together, character for character.
        match Url::parse(&text) {
            Ok(url)
                if url.origin() == self.origin.origin()
                    && url.path() == path
                    && url.query().unwrap_or_default() == query
                    && url.fragment().is_none() =>
            {
                Ok(url)
            }
            _ => Err((String::new(), FillError::Changed)),
        }
    }
}

impl FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let begin = text.find("://").ok_or(TemplateError::Scheme)? + 3;
        let rest = text.get(begin..).unwrap_or_default();
        let end = rest
            .find(['/', '?', '#', '\\'])
            .map_or(text.len(), |at| begin + at);
        let (origin, path) = text.split_at(end);
        if origin.contains(['{', '}']) {
            return Err(TemplateError::Slot);
        }
        if origin.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(TemplateError::Path);
        }
        let origin = Url::parse(&format!("{origin}/"))?;
        if !matches!(origin.scheme(), "http" | "https") || !origin.has_host() {
            return Err(TemplateError::Scheme);
        }
        if !origin.username().is_empty() || origin.password().is_some() {
            return Err(TemplateError::Credentials);
        }
        if path.contains(['?', '#']) {
            return Err(TemplateError::Query);
        }
        let path = if path.is_empty() { "/" } else { path };
        if !path.starts_with('/') {
            return Err(TemplateError::Path);
        }
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        let last = segments.len().saturating_sub(1);
        let read = segments
            .iter()
            .enumerate()
            .map(|(at, text)| segment(text, at == last))
            .collect::<Result<Vec<_>, _>>()?;
        let template = Self {
            origin,
            segments: read,
        };
        let mut names: Vec<&str> = template.slots().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        if names.len() != count {
            return Err(TemplateError::Twice);
        }
        // With harmless values the address must be what it looks like.
        template
            .fill(|_| Some("x"), "")
            .map_err(|_| TemplateError::Path)?;
        Ok(template)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.origin.as_str().trim_end_matches('/'))?;
        for segment in &self.segments {
            f.write_str("/")?;
            for part in segment {
                match part {
                    Part::Text(text) => f.write_str(text)?,
                    Part::Slot(name) => write!(f, "{{{name}}}")?,
                }
            }
        }
        Ok(())
    }
}

fn segment(text: &str, is_last: bool) -> Result<Vec<Part>, TemplateError> {
    if text.is_empty() {
        return if is_last {
            Ok(Vec::new())
        } else {
            Err(TemplateError::Path)
        };
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (plain, slot) = rest.split_once('{').map_or((rest, None), |(a, b)| (a, Some(b)));
        if !plain.is_empty() {
            parts.push(Part::Text(spelt(plain)?));
        }
        let Some(slot) = slot else { break };
        let (name, after) = slot.split_once('}').ok_or(TemplateError::Slot)?;
        if name.is_empty() || name.contains('{') || name.chars().any(|c| c.is_control() || c == '%') {
            return Err(TemplateError::Slot);
        }
        parts.push(Part::Slot(name.to_owned()));
        rest = after;
    }
    if let [Part::Text(text)] = &*parts
        && is_dots(text)
    {
        return Err(TemplateError::Path);
    }
    Ok(parts)
}

/// Text of a path as it is sent: `pchar` (RFC 3986 section 3.3) stays, what else may stand there is escaped.
fn spelt(text: &str) -> Result<String, TemplateError> {
    let mut out = String::new();
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'}' => return Err(TemplateError::Slot),
            b'\\' | b' ' => return Err(TemplateError::Path),
            _ if byte.is_ascii_control() => return Err(TemplateError::Path),
            b'%' => {
                let digits = bytes.get(at + 1..at + 3).unwrap_or_default();
                if digits.len() != 2 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(TemplateError::Path);
                }
                out.push('%');
            }
            _ if is_unreserved(*byte) || b"!$&'()*+,;=:@".contains(byte) => out.push(char::from(*byte)),
            _ => escape(*byte, &mut out),
        }
    }
    Ok(out)
}

/// A value as it stands in a path or a query: every byte but the unreserved ones is escaped.
pub fn escaped(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if is_unreserved(byte) {
            out.push(char::from(byte));
        } else {
            escape(byte, &mut out);
        }
    }
    out
}

fn escape(byte: u8, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = write!(out, "%{byte:02X}");
}

const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether a segment would be taken out of the path again, however its dots are spelt.
fn is_dots(segment: &str) -> bool {
    matches!(
        segment.to_ascii_lowercase().replace("%2e", ".").as_str(),
        "." | ".."
    )
}

/// Whether a value may stand in a path. Servers that decode too often are common, so that a value is looked at in every form
/// that decoding can give it.
fn judge(value: &str) -> Result<(), FillError> {
    /// Escapes within escapes that are still looked through.
    const ROUNDS: usize = 4;
    if value.is_empty() {
        return Err(FillError::Empty);
    }
    let mut bytes = value.as_bytes().to_vec();
    for _ in 0..ROUNDS {
        if bytes.iter().any(u8::is_ascii_control) {
            return Err(FillError::Control);
        }
        // Some servers cut parameters off behind a semicolon before they look at the dots.
        let climbs = |part: &[u8]| {
            let name = part.split(|byte| *byte == b';').next().unwrap_or_default();
            matches!(name, b"." | b"..")
        };
        if bytes.split(|byte| matches!(byte, b'/' | b'\\')).any(climbs) {
            return Err(FillError::Climbs);
        }
        let decoded = decoded(&bytes);
        if decoded == bytes {
            return Ok(());
        }
        bytes = decoded;
    }
    Err(FillError::Climbs)
}

fn decoded(bytes: &[u8]) -> Vec<u8> {
    let digit = |at: usize| {
        bytes
            .get(at)
            .and_then(|byte| char::from(*byte).to_digit(16))
            .and_then(|digit| u8::try_from(digit).ok())
    };
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if let (b'%', Some(high), Some(low)) = (byte, digit(at + 1), digit(at + 2)) {
            out.push(high * 16 + low);
            at += 3;
        } else {
            out.push(*byte);
            at += 1;
        }
    }
    out
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;

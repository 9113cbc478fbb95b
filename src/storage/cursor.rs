//! Where the next page starts: opaque to callers, and nothing but what the store itself could have given out.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::ReadError;

/// The list that a cursor belongs to; one of another list is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Confirmations,
    Jobs,
    Grants,
    Audit,
}

impl List {
    const fn tag(self) -> &'static str {
        match self {
            Self::Confirmations => "c",
            Self::Jobs => "j",
            Self::Grants => "g",
            Self::Audit => "a",
        }
    }
}

/// The last row of a page: its number (a time, a place) and its name (an id, an organisation). Together they are unique.
pub(super) fn write(list: List, number: i64, name: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{} {number} {name}", list.tag()))
}

/// Reads a cursor.
pub(super) fn read(list: List, cursor: &str) -> Result<(i64, String), ReadError> {
    /// Longer than any id or name of an organisation can make it.
    const LONGEST: usize = 1024;
    let read = || {
        if cursor.len() > LONGEST {
            return None;
        }
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
        let mut parts = text.splitn(3, ' ');
        let (tag, number, name) = (parts.next()?, parts.next()?, parts.next()?);
        let number: i64 = number.parse().ok()?;
        let ours = tag == list.tag() && !name.is_empty() && !name.contains('\0');
        // One spelling only: "+1" and "01" are not ours.
        (ours && write(list, number, name) == cursor).then(|| (number, name.to_owned()))
    };
    read().ok_or(ReadError::BadCursor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_and_nothing_else_is_one() {
        for (number, name) in [(0, "cr_1"), (-5, "a b c"), (i64::MAX, "組")] {
            let cursor = write(List::Jobs, number, name);
            assert_eq!(
                read(List::Jobs, &cursor).expect("ours"),
                (number, name.to_owned())
            );
            assert!(matches!(read(List::Audit, &cursor), Err(ReadError::BadCursor)));
        }
        let plus = URL_SAFE_NO_PAD.encode("j +1 x");
        let huge = URL_SAFE_NO_PAD.encode(format!("j 1 {}", "x".repeat(2000)));
        for wrong in [
            "",
            "x",
            "%%%",
            "-1",
            "' OR 1=1",
            &plus,
            &huge,
            &URL_SAFE_NO_PAD.encode("j 99999999999999999999 x"),
        ] {
            assert!(
                matches!(read(List::Jobs, wrong), Err(ReadError::BadCursor)),
                "{wrong}"
            );
        }
    }
}

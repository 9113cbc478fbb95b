//! The rows as both databases keep them, and the way between a row and what it means.
//!
//! A row travels as one JSON object with a key for each column: SQLite takes sets through `json_each` and gives rows through
//! `json_array`, which names no column (reading takes both forms), PostgreSQL takes them through `json_populate_recordset` and gives them through
//! `row_to_json`. So there is one codec for both, and a set is one parameter. Reading is exhaustive: a row that means nothing
//! is [`StoreError::Inconsistent`], never a guess. This file must not know how rows are found.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::StoreError;

pub(super) mod grant;
pub(super) mod log;
pub(super) mod note;
pub(super) mod request;
pub(super) mod work;

#[cfg(test)]
mod rows_tests;

/// Declares a row: its columns, and the SQL that follows from nothing but their names.
macro_rules! row {
    ($(#[$doc:meta])* $name:ident in $table:literal { $first:ident: $first_type:ty $(, $column:ident: $type:ty)* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        pub(in crate::storage) struct $name {
            pub(in crate::storage) $first: $first_type,
            $(pub(in crate::storage) $column: $type,)*
        }

        impl $name {
            /// The row of the table as text of a JSON array, in the order of the columns here (SQLite).
            pub(in crate::storage) const SQLITE: &str = concat!(
                "json_array(", $table, ".", stringify!($first), $(", ", $table, ".", stringify!($column),)* ")"
            );
            /// The row of the table as text of a JSON object (PostgreSQL).
            pub(in crate::storage) const POSTGRES: &str = concat!("row_to_json(", $table, ")::text");
            /// Inserts the rows of the JSON array `$1` (SQLite).
            pub(in crate::storage) const SQLITE_INSERT: &str = concat!(
                "INSERT INTO ", $table, " (", stringify!($first), $(", ", stringify!($column),)* ") SELECT value->>'",
                stringify!($first), "'", $(", value->>'", stringify!($column), "'",)* " FROM jsonb_each($1) WHERE true"
            );
            /// Inserts the rows of the JSON array `$1` (PostgreSQL).
            pub(in crate::storage) const POSTGRES_INSERT: &str = concat!(
                "INSERT INTO ", $table, " (", stringify!($first), $(", ", stringify!($column),)* ") SELECT ",
                stringify!($first), $(", ", stringify!($column),)* " FROM json_populate_recordset(NULL::", $table, ", $1::json)"
            );
        }
    };
}
pub(in crate::storage) use row;

/// Text from outside. PostgreSQL keeps no NUL, so NUL and the escape character itself are spelled with U+001A in front, on
/// both databases alike; every other character stands for itself, and the exact value comes back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Text(String);

const ESCAPE: char = '\u{1a}';

impl Text {
    /// Spells a text for the database.
    pub(super) fn keep(text: &str) -> Self {
        if !text.contains(['\0', ESCAPE]) {
            return Self(text.to_owned());
        }
        let mut kept = String::with_capacity(text.len() + 8);
        for character in text.chars() {
            match character {
                '\0' => kept.extend([ESCAPE, '0']),
                ESCAPE => kept.extend([ESCAPE, '1']),
                other => kept.push(other),
            }
        }
        Self(kept)
    }

    /// A text as the database gave it.
    pub(super) const fn kept(text: String) -> Self {
        Self(text)
    }

    /// The exact text that was kept; `None` when it was never spelled by [`Text::keep`].
    pub(super) fn give(self) -> Option<String> {
        if !self.0.contains([ESCAPE, '\0']) {
            return Some(self.0);
        }
        let mut given = String::with_capacity(self.0.len());
        let mut characters = self.0.chars();
        while let Some(character) = characters.next() {
            match character {
                ESCAPE => given.push(match characters.next()? {
                    '0' => '\0',
                    '1' => ESCAPE,
                    _ => return None,
                }),
                '\0' => return None,
                other => given.push(other),
            }
        }
        Some(given)
    }

    /// As it is spelled in the database.
    pub(super) fn into_kept(self) -> String {
        self.0
    }
}

/// Spells an optional text.
pub(super) fn keep(text: Option<&String>) -> Option<Text> {
    text.map(|text| Text::keep(text))
}

/// Which row is being read, for the error that names it.
#[derive(Debug, Clone)]
pub(super) struct Site {
    pub(super) table: &'static str,
    pub(super) id: String,
}

impl Site {
    pub(super) fn new(table: &'static str, id: &str) -> Self {
        Self {
            table,
            id: id.to_owned(),
        }
    }

    /// The row does not make sense; `what` names the column or the rule, never a value.
    pub(super) fn fault(&self, what: &str) -> StoreError {
        StoreError::Inconsistent {
            table: self.table,
            id: self.id.clone(),
            what: what.to_owned(),
        }
    }

    pub(super) fn need<T>(&self, value: Option<T>, what: &str) -> Result<T, StoreError> {
        value.ok_or_else(|| self.fault(what))
    }

    pub(super) fn text(&self, text: Text, what: &str) -> Result<String, StoreError> {
        self.need(text.give(), what)
    }

    pub(super) fn maybe_text(&self, text: Option<Text>, what: &str) -> Result<Option<String>, StoreError> {
        text.map(|text| self.text(text, what)).transpose()
    }

    pub(super) fn count<N: TryFrom<i64>>(&self, number: i64, what: &str) -> Result<N, StoreError> {
        N::try_from(number).map_err(|_| self.fault(what))
    }

    pub(super) fn json<T: DeserializeOwned>(&self, text: &str, what: &str) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|_| self.fault(what))
    }

    pub(super) fn bytes<const N: usize>(&self, hex: &str, what: &str) -> Result<[u8; N], StoreError> {
        let mut bytes = [0; N];
        hex::decode_to_slice(hex, &mut bytes).map_err(|_| self.fault(what))?;
        Ok(bytes)
    }
}

/// Reads a row's JSON object or array; the table is named when it has the wrong columns.
pub(super) fn parse<R: DeserializeOwned>(table: &'static str, body: &str) -> Result<R, StoreError> {
    serde_json::from_str(body).map_err(|_| Site::new(table, "?").fault("columns"))
}

/// Reads what the database gave of one kind: one row as [`parse`] reads it, or an array of many. That the columns are there and of
/// their types is the schema's promise; what they mean is each row's own matter.
pub(super) fn parse_all<R: DeserializeOwned>(table: &'static str, body: &str) -> Result<Vec<R>, StoreError> {
    // No row begins with a column that is an array or an object itself.
    if body == "[]" || body.starts_with("[[") || body.starts_with("[{") {
        return serde_json::from_str(body).map_err(|_| Site::new(table, "?").fault("columns"));
    }
    Ok(vec![parse(table, body)?])
}

/// Spells a value of ours as JSON text. What is given here has string keys only, so it cannot fail; were it to, the empty text
/// would be refused as a row that means nothing.
pub(super) fn spell<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

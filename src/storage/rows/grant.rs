//! The row of a grant. What finds it stands in columns, everything else in one JSON text.

use serde::Serialize;

use super::{Site, Text, row, spell};
use crate::confirmation::grant::Grant;
use crate::storage::StoreError;

row! {
    /// A row of `standing_grant`.
    GrantRow in "standing_grant" {
        id: String,
        org: Text,
        token: Text,
        tool: Text,
        created_at: i64,
        live_until: Option<i64>,
        body: String,
        version: i64,
    }
}

impl From<&Grant> for GrantRow {
    fn from(grant: &Grant) -> Self {
        Self {
            id: grant.id.as_str().to_owned(),
            org: Text::keep(grant.org.as_str()),
            token: Text::keep(grant.token.as_str()),
            tool: Text::keep(grant.tool.as_str()),
            created_at: grant.created_at.0,
            live_until: grant.end.is_none().then_some(grant.expires_at.0),
            body: spell(grant),
            version: grant.version,
        }
    }
}

impl GrantRow {
    /// What the row means. The columns must say what the body says.
    pub(in crate::storage) fn read(self) -> Result<Grant, StoreError> {
        let site = Site::new("standing_grant", &self.id);
        let mut grant: Grant = site.json(&self.body, "body")?;
        let same = grant.id.as_str() == self.id
            && grant.org.as_str() == site.text(self.org, "org")?
            && grant.token.as_str() == site.text(self.token, "token")?
            && grant.tool.as_str() == site.text(self.tool, "tool")?
            && grant.end.is_none() == self.live_until.is_some();
        if !same {
            return Err(site.fault("its columns and its body differ"));
        }
        grant.version = self.version;
        Ok(grant)
    }
}

/// A change of a grant, from the version that was read.
#[derive(Debug, Serialize)]
pub(in crate::storage) struct GrantChange {
    id: String,
    stored: i64,
    live_until: Option<i64>,
    body: String,
    version: i64,
}

impl GrantChange {
    pub(in crate::storage) fn of(grant: &Grant, stored: i64) -> Self {
        let row = GrantRow::from(grant);
        Self {
            id: row.id,
            stored,
            live_until: row.live_until,
            body: row.body,
            version: row.version,
        }
    }
}

//! The JSON Schema (draft 2020-12) of the configuration, for editors. A test keeps it and the decoder in step.

/// The schema, as `gatepost schema` prints it.
pub const SCHEMA: &str = include_str!("../../schemas/config.schema.json");

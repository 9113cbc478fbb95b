//! `gatepost schema`: JSON Schemas for editors and for those who write hooks.

use clap::{Args, ValueEnum};

use super::print;
use crate::config::schema::SCHEMA;
use crate::hook::schema::SCHEMA as HOOKS;

/// Arguments of `gatepost schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Of what
    #[arg(value_enum, default_value_t = Which::Config)]
    which: Which,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Which {
    /// The configuration file
    Config,
    /// The protocol of hooks
    Hooks,
}

/// Prints the schema.
pub fn run(args: &SchemaArgs) {
    print::line(match args.which {
        Which::Config => SCHEMA.trim_end(),
        Which::Hooks => HOOKS.trim_end(),
    });
}

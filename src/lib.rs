//! map
pub mod gate;

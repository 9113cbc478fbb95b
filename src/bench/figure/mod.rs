//! The figures: each a limit, the product and the limit again.

pub mod callback;
pub mod create;
pub mod parked;
pub mod resume;

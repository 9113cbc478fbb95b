//! The limits: what disk, driver and web framework give when nothing is done but the one thing. They use the same driver, the
//! same settings of the database and the same crates as the product, so that a ratio says what the product adds.

pub mod endpoint;
pub mod fsync;
pub mod postgres;
pub mod sqlite;
pub mod writer;

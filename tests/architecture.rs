//! Walls.

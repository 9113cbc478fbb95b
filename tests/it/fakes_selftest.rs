//! The fakes themselves: each refuses what its platform refuses.

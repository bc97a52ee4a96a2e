//! States of jobs, and counts by state: the engine's types.

pub use crate::engine::{Counts, EffectiveState};

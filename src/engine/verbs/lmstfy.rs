//! The lmstfy verbs. `consume` is the shared claim (`verbs/claim.rs`).

pub mod acknowledge;
pub mod destroy;
pub mod publish;
pub mod respawn;

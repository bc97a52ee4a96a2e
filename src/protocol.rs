//! The fronts: each turns its protocol's requests into verbs of the engine, and what they return into
//! its protocol's answers.

mod body;
pub mod jobq;
pub mod lmstfy;
pub mod qless;
pub mod relay;
pub(crate) mod request;
pub mod token;

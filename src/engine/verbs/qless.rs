//! The verbs of qless.

pub mod cancel;
pub mod complete;
pub mod depend;
pub mod heartbeat;
pub mod put;
pub mod tag;
pub mod track;
pub mod unfail;

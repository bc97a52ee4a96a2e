//! The qless verbs: one file per command, or per small family of commands.

pub mod cancel;
pub mod complete;
pub mod depend;
pub mod fail;
pub mod heartbeat;
pub mod manual;
pub mod note;
pub mod peek;
pub mod prioritize;
pub mod put;
pub mod recurring;
pub mod relocate;
pub mod retry;
pub mod tag;
pub mod timeout;
pub mod track;
pub mod unfail;

//! The protocols. Each module translates requests of its protocol into engine methods, and their results into
//! responses.

mod body;
pub mod common_error;
pub mod jobq;
pub mod lmstfy;
mod long_list;
pub mod qless;
pub mod redis;
pub mod relay;
pub(crate) mod request;
pub mod token;

//! Several servers on one PostgreSQL database act as one queue server.

mod cached_jobs;
mod claims;
mod frozen;
mod leader;
mod locks;
#[cfg(target_os = "linux")]
mod machine_clock;
mod network;
mod outage;
mod together;
mod unnoticed;
mod waking;

use crate::support::pair::{Pair, assert_consistent};

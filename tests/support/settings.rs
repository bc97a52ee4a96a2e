//! Settings of long runs, from the environment (`scripts/chaos.sh`).

use std::time::{SystemTime, UNIX_EPOCH};

/// The number in this variable, or `usual`. Prints it, so that the output of a failed test shows how to repeat it.
pub fn number(variable: &str, usual: u64) -> u64 {
    let given = std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok());
    let number = given.unwrap_or(usual);
    println!("{variable}={number}");
    number
}

/// The seed of all random choices: `SWITCHYARD_SEED`, or the time.
pub fn seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    number("SWITCHYARD_SEED", since.as_secs())
}

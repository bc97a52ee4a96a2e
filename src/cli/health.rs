//! `switchyard health`: asks a server whether it is ready.

use std::time::Duration;

use super::exit::{Code, Failure};
use super::{Outcome, print};
use crate::config::HealthCheck;

/// The server itself waits up to 2 s for its database.
const TIMEOUT: Duration = Duration::from_secs(4);

pub async fn run(options: &HealthCheck) -> Outcome {
    let client = options.connection.client().map_err(Failure::usage)?;
    let check = if options.live { "live" } else { "ready" };
    let response = client
        .get(["health", check])
        .timeout(TIMEOUT)
        .accept(503)
        .send()
        .await
        .map_err(Failure::from)?;
    if response.status().is_success() {
        print("ok\n");
        return Ok(());
    }
    let why = response.text().trim().to_owned();
    Err(Failure::new(Code::Unreachable, why).into())
}

//! Finds a short sequence of steps that still shows a difference.

use std::time::{Duration, Instant};

use super::replay;
use super::steps::Step;

/// Maximum duration of the search for a shorter sequence.
const TIME_MAX: Duration = Duration::from_secs(120);

/// Removes runs of steps, first long ones, then shorter ones, as long as a difference remains.
pub async fn shortest(mut steps: Vec<Step>) -> Vec<Step> {
    let began = Instant::now();
    let Some((end, _)) = replay(&steps).await else {
        println!("a replay of the steps does not show the difference");
        return steps;
    };
    steps.truncate(end);
    let mut length = steps.len() / 2;
    while length > 0 && began.elapsed() < TIME_MAX {
        let (mut place, before) = (0, steps.len());
        while place < steps.len() && began.elapsed() < TIME_MAX {
            let mut fewer = steps.clone();
            fewer.drain(place..(place + length).min(steps.len()));
            match replay(&fewer).await {
                Some((end, _)) => {
                    fewer.truncate(end);
                    steps = fewer;
                }
                None => place += length,
            }
        }
        let is_done = length == 1 && steps.len() == before;
        length = if is_done { 0 } else { (length / 2).max(1) };
    }
    steps
}

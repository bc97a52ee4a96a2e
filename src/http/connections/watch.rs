//! The task that checks all connections of a listener for time limits.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::Connections;
use crate::http::limits::Limits;

/// The interval between two checks of all connections.
const TICK: Duration = Duration::from_millis(500);

/// The time limits, in ticks.
#[derive(Clone, Copy)]
pub struct Ticks {
    pub header: u32,
    pub idle: u32,
    pub stalled: u32,
}

impl Ticks {
    pub fn of(limits: &Limits) -> Ticks {
        let ticks = |time: Duration| {
            let ticks = time.as_millis() / TICK.as_millis();
            u32::try_from(ticks).unwrap_or(u32::MAX).max(1)
        };
        Ticks {
            header: ticks(limits.header),
            idle: ticks(limits.idle),
            stalled: ticks(limits.stalled),
        }
    }
}

/// Closes connections that exceed a time limit.
pub async fn watch(connections: Weak<Connections>, ticks: Ticks) {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(connections) = connections.upgrade() else {
            return;
        };
        if connections.count() == 0 {
            let opened = Arc::clone(&connections.opened);
            drop(connections);
            opened.notified().await;
            tick.reset();
            continue;
        }
        connections.totals.clock.fetch_add(1, Ordering::Relaxed);
        connections.close_overdue(ticks);
    }
}

//! The task that sends the published events to the subscribers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::{mpsc, oneshot};

use super::{Hub, WAITING_MAX, events, pace};
use crate::engine::{Engine, EventsFollowed, PublishedEvent};

/// Events that are read at a time.
const BATCH: usize = 1_000;

/// Follows the events of the database.
pub struct Follower {
    engine: Engine,
    hub: Arc<Hub>,
    /// The epoch of the subscribers to whom the events are sent.
    epoch: u64,
    /// Set while there are subscribers.
    followed: Option<EventsFollowed>,
    /// Whether the events that were deferred before that have been stored.
    has_stored: bool,
    /// The number of the last event that was sent, or was the last when the epoch began; `None` until it has been read.
    last: Option<i64>,
}

impl Follower {
    pub fn new(engine: Engine, hub: Arc<Hub>) -> Follower {
        Follower {
            engine,
            hub,
            epoch: 0,
            followed: None,
            has_stored: false,
            last: None,
        }
    }

    pub async fn run(mut self, mut commands: mpsc::Receiver<oneshot::Sender<()>>) {
        let mut changes = self.engine.changes();
        let mut waiting = Vec::new();
        loop {
            changes.mark_unchanged();
            self.send_new().await;
            let follows = self.follows();
            // Dropping the senders wakes the commands, which began to wait before the events were read.
            waiting.clear();
            tokio::select! {
                changed = changes.changed(), if follows => if changed.is_err() { return },
                received = commands.recv_many(&mut waiting, WAITING_MAX) => if received == 0 { return },
            }
        }
    }

    /// Begins or stops following the events. Returns whether to read them from now on: while there are subscribers.
    fn follows(&mut self) -> bool {
        let subscribers = self.hub.lock();
        if subscribers.all.is_empty() {
            (self.last, self.followed) = (None, None);
        } else if self.followed.is_none() {
            (self.followed, self.has_stored) = (Some(self.engine.follow_events()), false);
        }
        let follows = self.last.is_some() && self.epoch == subscribers.epoch;
        self.hub.follows.store(follows, Ordering::Release);
        follows || !subscribers.all.is_empty()
    }

    /// Sends the events that are new. At first only notes the number of the last one.
    async fn send_new(&mut self) {
        let epoch = self.hub.lock().epoch;
        if self.epoch != epoch {
            (self.epoch, self.last) = (epoch, None);
        }
        let Some(mut last) = self.last else {
            self.last = self.engine.first_followed_event().await.ok();
            return;
        };
        // Later events are sent next time, so that commands do not wait for them, too.
        let newest = match self.has_stored {
            true => self.engine.last_followed_event().await,
            false => self.engine.first_followed_event().await,
        };
        // An error is an outage: the events are sent after it.
        let Ok(newest) = newest else { return };
        self.has_stored = self.followed.is_some();
        if newest < last {
            // A database server has taken over without the last events.
            self.last = Some(newest);
        }
        while last < newest {
            let Ok((events, next)) = self.engine.followed_events(last, BATCH).await else {
                return;
            };
            if next <= last {
                return;
            }
            (last, self.last) = (next, Some(next));
            self.send(&events).await;
        }
    }

    async fn send(&self, events: &[PublishedEvent]) {
        for event in events {
            if let Some((channel, message)) = events::message(event) {
                let mut steps = 0;
                if !self
                    .hub
                    .publish_in(self.epoch, &channel, &message, &mut steps)
                {
                    return;
                }
                // An event can have thousands of subscribers.
                pace(steps).await;
            }
        }
    }
}

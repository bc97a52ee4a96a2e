//! Channels: subscribers, and the task that sends them the published events in commit order, each once.
//!
//! A subscription begins when its command is read: it waits for nothing, so no event that a client causes afterwards is
//! missed. While there are subscribers, the events of a command are sent before its reply; [`Hub::catch_up`] waits
//! for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub use self::mailbox::Mailbox;

use self::follower::Follower;
use self::pattern::Pattern;
use super::resp::Reply;
use crate::engine::Engine;

mod events;
mod follower;
mod mailbox;
pub mod pattern;

/// Maximum number of channels and patterns of one connection.
pub const SUBSCRIPTIONS_MAX: usize = 1_000;

/// Maximum weight of the subscriptions of all connections to channels.
const CHANNELS_MAX: usize = 100_000;

/// A subscription to a channel has a weight of 1, and 1 more for each of these bytes of its name.
const BYTES_PER_WEIGHT: usize = 64;

/// Maximum number of subscriptions of all connections to patterns. Each message is compared with each pattern.
const PATTERNS_MAX: usize = 256;

/// Maximum number of channels in a list.
const LISTED_MAX: usize = 1_000;

/// How long the first subscription waits until its events are followed. If the database does not respond for longer, it
/// misses the events until then.
const READY_MAX: Duration = Duration::from_secs(10);

/// How long a command waits for its events.
const CATCH_UP_MAX: Duration = Duration::from_secs(1);

/// Commands that can wait for their events at a time.
const WAITING_MAX: usize = 1_024;

/// What a client is subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Channel,
    Pattern,
}

impl Kind {
    /// How much a subscription counts toward the maximum of all connections.
    fn weight(self, name: &str) -> usize {
        match self {
            Kind::Channel => 1 + name.len() / BYTES_PER_WEIGHT,
            Kind::Pattern => 1,
        }
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Kind::Channel => ("subscribe", "unsubscribe"),
            Kind::Pattern => ("psubscribe", "punsubscribe"),
        }
    }
}

#[derive(Debug)]
struct Subscriber {
    mailbox: Arc<Mailbox>,
    channels: BTreeSet<Arc<str>>,
    patterns: BTreeMap<String, Pattern>,
}

impl Subscriber {
    /// Adds a name. Returns whether it is new; `None` if it is a pattern that is too long.
    fn add(&mut self, kind: Kind, name: Arc<str>) -> Option<bool> {
        Some(match kind {
            Kind::Channel => self.channels.insert(name),
            Kind::Pattern => {
                let pattern = Pattern::new(&name)?;
                self.patterns.insert(name.to_string(), pattern).is_none()
            }
        })
    }

    /// Removes a name. Returns whether it was there.
    fn remove(&mut self, kind: Kind, name: &str) -> bool {
        match kind {
            Kind::Channel => self.channels.remove(name),
            Kind::Pattern => self.patterns.remove(name).is_some(),
        }
    }

    fn names(&self, kind: Kind) -> Vec<String> {
        match kind {
            Kind::Channel => self.channels.iter().map(ToString::to_string).collect(),
            Kind::Pattern => self.patterns.keys().cloned().collect(),
        }
    }

    fn count(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }
}

#[derive(Debug, Default)]
struct Subscribers {
    all: HashMap<u64, Subscriber>,
    /// The clients of each channel.
    of_channel: HashMap<Arc<str>, BTreeSet<u64>>,
    /// The clients with patterns.
    with_patterns: BTreeSet<u64>,
    /// The weight of the subscriptions to channels and the number of those to patterns, of all clients.
    channels: usize,
    patterns: usize,
    /// Increases with the first subscriber after a time without any. Events of that time are not sent.
    epoch: u64,
}

/// Compared and copied bytes, and bytes of a reply, after which other tasks run first: well under a millisecond.
const STEPS_AT_ONCE: usize = 32 << 10;

/// Steps for a subscription that is added or removed, and for a subscriber that gets a message.
pub const STEPS_PER_CHANGE: usize = 64;

/// Lets other tasks run first if there were more than [`STEPS_AT_ONCE`] steps; otherwise, only when this task has used
/// up Tokio's cooperative budget.
pub async fn pace(steps: usize) {
    if steps > STEPS_AT_ONCE {
        tokio::task::yield_now().await;
    } else {
        tokio::task::consume_budget().await;
    }
}

/// The subscribers of one server.
pub struct Hub {
    subscribers: Mutex<Subscribers>,
    /// Whether the task follows the events of the current epoch, which costs a read after each commit. The first
    /// subscriber of an epoch resets it.
    follows: AtomicBool,
    waiting: mpsc::Sender<oneshot::Sender<()>>,
}

impl Hub {
    /// Starts the task that follows the events while there are subscribers, until `stop` is canceled.
    pub fn start(engine: Engine, stop: CancellationToken) -> Arc<Hub> {
        let (waiting, commands) = mpsc::channel(WAITING_MAX);
        let hub = Arc::new(Hub {
            subscribers: Mutex::default(),
            follows: AtomicBool::new(false),
            waiting,
        });
        let follower = Follower::new(engine, Arc::clone(&hub));
        tokio::spawn(async move { stop.run_until_cancelled(follower.run(commands)).await });
        hub
    }

    /// Subscribes a client, which gets the confirmation through its mailbox: before the first message of the channel.
    /// Returns the number of the client's subscriptions; `None` if all clients together have too many.
    pub fn subscribe(
        &self,
        client: u64,
        mailbox: &Arc<Mailbox>,
        kind: Kind,
        name: String,
    ) -> Option<usize> {
        let mut subscribers = self.lock();
        let has_room = match kind {
            Kind::Channel => subscribers.channels + kind.weight(&name) <= CHANNELS_MAX,
            Kind::Pattern => subscribers.patterns < PATTERNS_MAX,
        };
        if !has_room || kind == Kind::Pattern && Pattern::new(&name).is_none() {
            return None;
        }
        if subscribers.all.is_empty() {
            subscribers.epoch += 1;
            self.follows.store(false, Ordering::Release);
        }
        let mut shared = Arc::<str>::from(name.as_str());
        match kind {
            Kind::Channel => {
                if let Some((known, _)) = subscribers.of_channel.get_key_value(name.as_str()) {
                    shared = Arc::clone(known);
                }
                let of_channel = subscribers.of_channel.entry(Arc::clone(&shared));
                of_channel.or_default().insert(client);
            }
            Kind::Pattern => {
                subscribers.with_patterns.insert(client);
            }
        }
        let subscriber = subscribers.all.entry(client);
        let subscriber = subscriber.or_insert_with(|| Subscriber {
            mailbox: Arc::clone(mailbox),
            channels: BTreeSet::new(),
            patterns: BTreeMap::new(),
        });
        let is_new = subscriber.add(kind, shared)?;
        let count = subscriber.count();
        if is_new {
            *subscribers.total(kind) += kind.weight(&name);
        }
        let word = Reply::text(kind.words().0);
        let confirmation = vec![word, Reply::Text(name), Reply::integer(count)];
        mailbox.push(&Reply::Push(confirmation).into());
        Some(count)
    }

    /// Ends subscriptions of a client: the named ones, or all of this kind. Returns the number of those that are left.
    pub fn unsubscribe(
        &self,
        client: u64,
        mailbox: &Mailbox,
        kind: Kind,
        names: Option<Vec<String>>,
    ) -> usize {
        let mut subscribers = self.lock();
        let names = names.unwrap_or_else(|| subscribers.names(client, kind));
        let confirm = |name: Reply, count: usize| {
            let words = vec![Reply::text(kind.words().1), name, Reply::integer(count)];
            mailbox.push(&Reply::Push(words).into());
        };
        if names.is_empty() {
            confirm(Reply::Null, subscribers.count(client));
        }
        for name in names {
            subscribers.remove(client, kind, &name);
            confirm(Reply::Text(name), subscribers.count(client));
        }
        subscribers.count(client)
    }

    /// Removes a client that has disconnected.
    pub fn remove(&self, client: u64) {
        let mut subscribers = self.lock();
        for kind in [Kind::Channel, Kind::Pattern] {
            for name in subscribers.names(client, kind) {
                subscribers.remove(client, kind, &name);
            }
        }
    }

    /// Sends a message to the subscribers of a channel. Returns their number. Adds the compared and copied bytes to
    /// `steps`.
    pub fn publish(&self, channel: &str, message: &str, steps: &mut usize) -> usize {
        self.lock().publish(channel, message, steps)
    }

    /// Sends an event to the subscribers of an epoch. Returns whether the epoch is still this one.
    fn publish_in(&self, epoch: u64, channel: &str, message: &str, steps: &mut usize) -> bool {
        let subscribers = self.lock();
        let is_current = subscribers.epoch == epoch;
        if is_current {
            subscribers.publish(channel, message, steps);
        }
        is_current
    }

    /// Channels that have subscribers and match a pattern, of the first [`LISTED_MAX`]. Adds the compared bytes to
    /// `steps`.
    pub fn channels(&self, pattern: Option<&Pattern>, steps: &mut usize) -> Vec<String> {
        // Copied, so that publishers do not wait for the comparisons.
        let mut names: Vec<String> = {
            let subscribers = self.lock();
            subscribers
                .of_channel
                .keys()
                .take(LISTED_MAX)
                .map(ToString::to_string)
                .collect()
        };
        if let Some(pattern) = pattern {
            names.retain(|name| pattern.matches(name, steps));
        }
        names
    }

    /// The number of subscribers of a channel, without those of patterns.
    pub fn count_of(&self, channel: &str) -> usize {
        self.lock().of_channel.get(channel).map_or(0, BTreeSet::len)
    }

    /// The number of patterns of all clients.
    pub fn count_patterns(&self) -> usize {
        self.lock().patterns
    }

    /// If there are subscribers, waits until the task reads events, for at most [`READY_MAX`]. Called before the first
    /// subscription is confirmed.
    pub async fn be_ready(&self) {
        self.be_ready_within(READY_MAX).await;
    }

    /// Like [`Hub::be_ready`], for at most [`CATCH_UP_MAX`]. Called before a command that other clients send meanwhile.
    pub async fn be_ready_soon(&self) {
        self.be_ready_within(CATCH_UP_MAX).await;
    }

    async fn be_ready_within(&self, time: Duration) {
        if !self.follows.load(Ordering::Acquire) {
            self.catch_up_within(time).await;
        }
    }

    /// Waits until all events committed before the call have been sent, for at most [`CATCH_UP_MAX`]. Does not wait if
    /// there is no subscriber.
    pub async fn catch_up(&self) {
        self.catch_up_within(CATCH_UP_MAX).await;
    }

    async fn catch_up_within(&self, time: Duration) {
        if self.lock().all.is_empty() {
            return;
        }
        let (done, caught_up) = oneshot::channel();
        let waiting = async {
            if self.waiting.send(done).await.is_ok() {
                // An error means that the server stops.
                drop(caught_up.await);
            }
        };
        drop(timeout(time, waiting).await);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Subscribers> {
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscribers {
    fn total(&mut self, kind: Kind) -> &mut usize {
        match kind {
            Kind::Channel => &mut self.channels,
            Kind::Pattern => &mut self.patterns,
        }
    }

    fn names(&self, client: u64, kind: Kind) -> Vec<String> {
        let subscriber = self.all.get(&client);
        subscriber.map_or_else(Vec::new, |it| it.names(kind))
    }

    fn count(&self, client: u64) -> usize {
        self.all.get(&client).map_or(0, Subscriber::count)
    }

    fn remove(&mut self, client: u64, kind: Kind, name: &str) {
        let Some(subscriber) = self.all.get_mut(&client) else {
            return;
        };
        let was_there = subscriber.remove(kind, name);
        if subscriber.patterns.is_empty() {
            self.with_patterns.remove(&client);
        }
        if subscriber.count() == 0 {
            self.all.remove(&client);
        }
        if was_there {
            *self.total(kind) -= kind.weight(name);
        }
        if kind == Kind::Channel
            && let Some(clients) = self.of_channel.get_mut(name)
        {
            clients.remove(&client);
            if clients.is_empty() {
                self.of_channel.remove(name);
            }
        }
    }

    fn publish(&self, channel: &str, message: &str, steps: &mut usize) -> usize {
        let mut count = 0;
        if let Some(direct) = self.of_channel.get(channel) {
            let words = ["message", channel, message].map(Reply::text);
            let push = Reply::Push(words.into()).into();
            for subscriber in direct.iter().filter_map(|client| self.all.get(client)) {
                subscriber.mailbox.push(&push);
                count += 1;
                *steps += STEPS_PER_CHANGE;
            }
        }
        let others = self.with_patterns.iter();
        for subscriber in others.filter_map(|client| self.all.get(client)) {
            for (text, pattern) in &subscriber.patterns {
                if pattern.matches(channel, steps) {
                    count += 1;
                    if subscriber.mailbox.overflow.is_cancelled() {
                        continue;
                    }
                    *steps += STEPS_PER_CHANGE + channel.len() + message.len();
                    let words = ["pmessage", text.as_str(), channel, message].map(Reply::text);
                    let push = Reply::Push(words.into());
                    subscriber.mailbox.push(&push.into());
                }
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_message_count_until_its_subscriber_has_no_room() {
        let mut subscriber = Subscriber {
            mailbox: Arc::default(),
            channels: BTreeSet::new(),
            patterns: BTreeMap::new(),
        };
        for pattern in ["*", "c*"] {
            subscriber.add(Kind::Pattern, pattern.into()).unwrap();
        }
        let mailbox = Arc::clone(&subscriber.mailbox);
        let mut subscribers = Subscribers::default();
        subscribers.all.insert(1, subscriber);
        subscribers.with_patterns.insert(1);
        let message = "m".repeat(1_000);
        let publish = || {
            let mut steps = 0;
            let count = subscribers.publish("c", &message, &mut steps);
            (count, steps / 1_000)
        };
        assert_eq!(publish(), (2, 2));
        mailbox.overflow.cancel();
        assert_eq!(publish(), (2, 0));
    }

    #[test]
    fn a_long_name_of_a_channel_counts_more() {
        for (bytes, weight) in [(1, 1), (63, 1), (64, 2), (2_048, 33)] {
            let name = "n".repeat(bytes);
            assert_eq!(Kind::Channel.weight(&name), weight, "{bytes} bytes");
            assert_eq!(Kind::Pattern.weight(&name), 1);
        }
    }
}

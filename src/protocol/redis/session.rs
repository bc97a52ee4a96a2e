//! The commands of one connection, in order.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::pubsub::{STEPS_PER_CHANGE, pace};
use super::qless::Puts;
use super::resp::{Command, Reply, Version, repeated};
use super::server::Outcome;
use super::transaction::{Replies, Transaction};
use super::{Mailbox, NO_MEMORY, RedisApi, channels, command_memory, server};
use crate::auth::{Api, PresentedCredentials};
use crate::memory::{self, Busy, Reserved};
use crate::redis_clients::Client;
use crate::secret::Hash;

/// Wrong tokens after which the connection is closed.
const WRONG_TOKENS_MAX: u32 = 3;

/// Commands that a client may send before it has presented the token.
const ANONYMOUS: [&str; 4] = ["AUTH", "HELLO", "QUIT", "RESET"];

/// Commands that a subscribed client may send in RESP2, where it could not tell other replies from messages.
const SUBSCRIBED: [&str; 7] = [
    "SUBSCRIBE",
    "UNSUBSCRIBE",
    "PSUBSCRIBE",
    "PUNSUBSCRIBE",
    "PING",
    "QUIT",
    "RESET",
];

/// What happens to the connection after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionAction {
    Continue,
    Close,
}

/// One connection.
pub struct Session {
    pub(super) api: Arc<RedisApi>,
    pub(super) client: Client,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) version: Version,
    /// The number of channels and patterns to which the client is subscribed.
    subscriptions: usize,
    /// The token that the client has presented.
    token: Option<PresentedCredentials>,
    /// The number of wrong tokens that the client has presented.
    wrong_tokens: u32,
    /// The commands since `MULTI`.
    transaction: Option<Transaction>,
    /// Maximum time from `MULTI` to `EXEC`, and maximum duration of an `EXEC`.
    transaction_time: Duration,
    /// Jobs of the last `put` commands that have not been passed to the engine yet.
    puts: Option<Puts>,
    /// Whether events of commands since the last flush must be sent before their replies.
    pub(super) has_published: bool,
    /// The memory of replies that are not yet written.
    pub(super) reserved: Vec<Reserved>,
}

impl Session {
    /// `transaction_time` is the maximum time from `MULTI` to `EXEC`, and the maximum duration of an `EXEC`.
    pub fn new(api: Arc<RedisApi>, address: SocketAddr, transaction_time: Duration) -> Session {
        Session {
            client: api.clients.add(address),
            api,
            mailbox: Arc::default(),
            version: Version::default(),
            subscriptions: 0,
            token: None,
            wrong_tokens: 0,
            transaction: None,
            transaction_time,
            puts: None,
            has_published: false,
            reserved: Vec::new(),
        }
    }

    /// The messages for this client.
    pub fn mailbox(&self) -> Arc<Mailbox> {
        Arc::clone(&self.mailbox)
    }

    pub fn is_subscribed(&self) -> bool {
        self.subscriptions > 0
    }

    /// Whether the client must still present the token, or the one it has presented was replaced.
    pub fn is_anonymous(&self) -> bool {
        if !self.api.needs_token() {
            return false;
        }
        let active = self.api.auth.keyring.active();
        let accepted = self
            .token
            .as_ref()
            .map(|token| active.accept(Api::Qless, token));
        accepted != Some(true)
    }

    /// Whether the token that the client has presented was replaced.
    pub fn is_revoked(&self) -> bool {
        self.token.is_some() && self.is_anonymous()
    }

    /// Runs a command and appends its replies, and before them the messages that they must follow. A `put` may wait for
    /// the next one; [`Session::finish`] ends that.
    pub async fn run(
        &mut self,
        mut command: Command,
        is_anonymous: bool,
        output: &mut Vec<u8>,
    ) -> ConnectionAction {
        let Some(name) = name_of(&command) else {
            self.finish(output).await;
            Reply::error("ERR unknown command").encode(self.version, output);
            return ConnectionAction::Continue;
        };
        command.remove(0);
        // A transaction counts the commands that it keeps, and those of strangers are refused.
        let is_counted = self.transaction.is_none() && !is_anonymous;
        let reserving = command_memory::reserve(if is_counted { &command } else { &[] });
        let Ok(reserved) = reserving.await else {
            self.finish(output).await;
            Reply::error(NO_MEMORY).encode(self.version, output);
            return ConnectionAction::Continue;
        };
        self.client.runs(&name);
        if !server::is_put(&name, &command) {
            self.finish(output).await;
        }
        let (outcome, after) = self.outcome_of(name, command, reserved, is_anonymous).await;
        let after = match self.wrong_tokens >= WRONG_TOKENS_MAX {
            true => ConnectionAction::Close,
            false => after,
        };
        let mut replies = Vec::new();
        match outcome {
            Some(outcome) => self.add(outcome, &mut replies).await,
            None => self.mailbox.take(output),
        }
        self.append(replies, output).await;
        after
    }

    /// Runs the puts that wait for others. Called when no other command has arrived.
    pub async fn finish(&mut self, output: &mut Vec<u8>) {
        let mut replies = Vec::new();
        self.run_puts(&mut replies).await;
        self.append(replies, output).await;
    }

    async fn append(&mut self, replies: Vec<Reply>, output: &mut Vec<u8>) {
        // A subscribed client gets the events of its own commands before their replies.
        if self.has_published && self.is_subscribed() {
            self.flush().await;
            self.mailbox.take(output);
        }
        for reply in replies {
            reply.encode_and_drop(self.version, output);
        }
    }

    /// Adds the reply to a command, or adds its jobs to the waiting ones.
    async fn add(&mut self, outcome: Outcome, replies: &mut Vec<Reply>) {
        match outcome {
            Outcome::Reply(reply) => {
                self.run_puts(replies).await;
                replies.push(reply);
            }
            Outcome::Puts(next) => {
                let next = match &mut self.puts {
                    Some(puts) => puts.add(next),
                    None => Some(next),
                };
                if next.is_some() {
                    self.run_puts(replies).await;
                    self.puts = next;
                }
            }
        }
    }

    async fn run_puts(&mut self, replies: &mut Vec<Reply>) {
        if let Some(puts) = self.puts.take() {
            let running = puts.run(&self.api.engine);
            let (done, reserved) = memory::of_request(running).await;
            self.has_published = true;
            self.reserved.push(reserved);
            replies.extend(done);
        }
    }

    /// Waits until other clients have been sent the events of the commands so far. Called before replies are written.
    pub async fn flush(&mut self) {
        if std::mem::take(&mut self.has_published) {
            self.api.hub.catch_up().await;
        }
    }

    /// The memory of replies that are not yet written.
    pub fn reserved_bytes(&self) -> usize {
        self.reserved.iter().map(Reserved::bytes).sum()
    }

    /// Called when the replies and messages so far are written.
    pub fn written(&mut self) {
        self.mailbox.written();
        self.reserved.clear();
    }

    /// The outcome of a command, and what happens to the connection. No outcome if the reply goes through the mailbox,
    /// or if there is none, because the client speaks HTTP.
    async fn outcome_of(
        &mut self,
        name: String,
        command: Command,
        reserved: Reserved,
        is_anonymous: bool,
    ) -> (Option<Outcome>, ConnectionAction) {
        // The page of a web site can make a browser send HTTP here.
        if name == "POST" || name == "HOST:" {
            tracing::debug!("a client speaks HTTP to the listener for the Redis protocol");
            return (None, ConnectionAction::Close);
        }
        if is_anonymous && !ANONYMOUS.contains(&name.as_str()) {
            return refused("NOAUTH Authentication required.");
        }
        if self.version == Version::Resp2
            && !SUBSCRIBED.contains(&name.as_str())
            && self.is_subscribed()
        {
            let name = repeated(&name).to_ascii_lowercase();
            return refused(&format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed \
                 in this context"
            ));
        }
        match name.as_str() {
            "QUIT" => (Some(Reply::OK.into()), ConnectionAction::Close),
            "RESET" => {
                let steps = self.subscriptions * STEPS_PER_CHANGE;
                let reply = self.reset();
                pace(steps).await;
                replied(reply)
            }
            "MULTI" => match self.transaction {
                Some(_) => refused("ERR MULTI calls can not be nested"),
                None => {
                    self.transaction = Some(Transaction::new(self.transaction_time));
                    replied(Reply::OK)
                }
            },
            "EXEC" => replied(self.exec().await),
            "DISCARD" => match self.transaction.take() {
                Some(_) => replied(Reply::OK),
                None => refused("ERR DISCARD without MULTI"),
            },
            _ if self.transaction.is_some() => replied(self.queue(name, command).await),
            _ if channels::is_command(&name) => {
                let reply = channels::run(self, &name, command).await;
                (reply.map(Outcome::Reply), ConnectionAction::Continue)
            }
            _ => (
                Some(self.run_one(&name, command, reserved).await),
                ConnectionAction::Continue,
            ),
        }
    }

    /// Runs a command that has reserved this memory.
    async fn run_one(&mut self, name: &str, command: Command, reserved: Reserved) -> Outcome {
        match texts(command) {
            Ok(arguments) => match server::run(self, name, arguments).await {
                Outcome::Puts(puts) => Outcome::Puts(puts.with(reserved)),
                reply @ Outcome::Reply(_) => reply,
            },
            Err(refused) => refused.into(),
        }
    }

    async fn queue(&mut self, name: String, command: Command) -> Reply {
        match &mut self.transaction {
            Some(transaction) => transaction.add(name, command).await,
            None => Reply::error("ERR EXEC without MULTI"),
        }
    }

    /// Runs the commands since `MULTI` one after the other. Other clients' commands may run between them.
    async fn exec(&mut self) -> Reply {
        let Some(transaction) = self.transaction.take() else {
            return Reply::error("ERR EXEC without MULTI");
        };
        let (commands, _reserved) = match transaction.into_commands() {
            Ok(commands) => commands,
            Err(refused) => return refused,
        };
        let mut replies = Replies::new(self.transaction_time);
        for (name, command) in commands {
            if !server::is_put(&name, &command) {
                self.run_puts(&mut replies.all).await;
            }
            if !replies.have_room().await {
                self.run_puts(&mut replies.all).await;
                replies.refuse();
                continue;
            }
            let outcome = match command_memory::reserve(&command).await {
                Ok(reserved) => self.run_one(&name, command, reserved).await,
                Err(Busy) => Reply::error(NO_MEMORY).into(),
            };
            self.add(outcome, &mut replies.all).await;
        }
        self.run_puts(&mut replies.all).await;
        self.reserved.push(replies.reserved);
        Reply::List(replies.all)
    }

    /// When an open transaction will be discarded.
    pub fn deadline(&self) -> Option<Instant> {
        self.transaction.as_ref().and_then(Transaction::deadline)
    }

    /// Discards the open transaction, because its deadline has passed.
    pub fn time_out(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.time_out();
        }
    }

    /// Checks the token that the client presents. A user name is ignored: the server has one token for qless.
    pub(super) fn authenticate(&mut self, token: &str) -> Result<(), Reply> {
        let presented = PresentedCredentials::Bearer(Hash::of(token));
        if !self.api.needs_token() {
            let words =
                "ERR AUTH <password> called without any password configured for the default user.";
            return Err(Reply::error(words));
        }
        let auth = &self.api.auth;
        // A transaction can present more tokens before the connection is closed.
        let is_over = self.wrong_tokens >= WRONG_TOKENS_MAX;
        if is_over || !auth.keyring.active().accept(Api::Qless, &presented) {
            self.wrong_tokens += 1;
            let from = self.client.info().address;
            if auth.throttle.may_log(Some(from.ip())) {
                let from = from.to_string();
                tracing::warn!(from, "rejected a request with wrong credentials");
            }
            return Err(Reply::error(
                "WRONGPASS invalid username-password pair or user is disabled.",
            ));
        }
        self.token = Some(presented);
        Ok(())
    }

    fn reset(&mut self) -> Reply {
        self.api.hub.remove(self.client.number);
        self.set_subscriptions(0);
        self.transaction = None;
        self.token = None;
        self.client.set_name("");
        self.set_version(Version::Resp2);
        Reply::Status("RESET")
    }

    pub(super) fn subscriptions(&self) -> usize {
        self.subscriptions
    }

    pub(super) fn set_subscriptions(&mut self, count: usize) {
        self.subscriptions = count;
        self.client.set_subscriptions(count);
    }

    pub(super) fn set_version(&mut self, version: Version) {
        self.version = version;
        self.mailbox.set_version(version);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.api.hub.remove(self.client.number);
    }
}

fn replied(reply: Reply) -> (Option<Outcome>, ConnectionAction) {
    (Some(reply.into()), ConnectionAction::Continue)
}

fn refused(error: &str) -> (Option<Outcome>, ConnectionAction) {
    replied(Reply::error(error))
}

fn name_of(command: &Command) -> Option<String> {
    let name = std::str::from_utf8(command.first()?).ok()?;
    Some(name.to_ascii_uppercase())
}

/// The arguments as texts; an error if one is not valid UTF-8, or has a NUL, which Postgres cannot store or search.
pub fn texts(command: Command) -> Result<Vec<String>, Reply> {
    let text = |bytes: Bytes| match memchr::memchr(0, &bytes) {
        Some(_) => Err(Reply::error("ERR the arguments contain a NUL")),
        None => String::from_utf8(bytes.into())
            .map_err(|_| Reply::error("ERR the arguments are not valid UTF-8")),
    };
    command.into_iter().map(text).collect()
}

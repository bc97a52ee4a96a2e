//! The commands of one connection, in order.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;

use super::clients::Client;
use super::resp::{COMMAND_BYTES_MAX, Command, Reply, Version};
use super::{Front, Mailbox, channels, server};
use crate::auth::{Api, PresentedCredentials};
use crate::memory::Reserved;
use crate::secret::Hash;

/// Maximum number of commands in a transaction.
const TRANSACTION_MAX: usize = 1_000;

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
pub enum After {
    Continue,
    Close,
}

/// One connection.
pub struct Session {
    pub(super) front: Arc<Front>,
    pub(super) client: Client,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) version: Version,
    /// The number of channels and patterns to which the client is subscribed.
    pub(super) subscriptions: usize,
    /// The token that the client has presented.
    token: Option<PresentedCredentials>,
    /// The commands since `MULTI`.
    transaction: Option<Transaction>,
    /// Whether events of commands since the last flush must be sent before their replies.
    pub(super) has_published: bool,
    /// The memory of replies that are not yet written.
    pub(super) reserved: Vec<Reserved>,
}

#[derive(Default)]
struct Transaction {
    commands: Vec<(String, Command)>,
    bytes: usize,
    /// Whether a command could not be queued; the transaction is then discarded.
    is_broken: bool,
}

impl Session {
    pub fn new(front: Arc<Front>, address: SocketAddr) -> Session {
        Session {
            client: front.clients.add(address),
            front,
            mailbox: Arc::default(),
            version: Version::default(),
            subscriptions: 0,
            token: None,
            transaction: None,
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
        if !self.front.needs_token() {
            return false;
        }
        let active = self.front.auth.keyring.active();
        let accepted = self
            .token
            .as_ref()
            .map(|token| active.accept(Api::Qless, token));
        accepted != Some(true)
    }

    /// Runs a command and appends its replies, and before them the messages that they must follow.
    pub async fn run(
        &mut self,
        command: Command,
        is_anonymous: bool,
        output: &mut Vec<u8>,
    ) -> After {
        let (reply, after) = self.reply_to(command, is_anonymous).await;
        // A subscribed client gets the events of its own commands before their replies.
        if self.has_published && self.is_subscribed() {
            self.flush().await;
            self.mailbox.take(output);
        }
        if let Some(reply) = reply {
            reply.encode(self.version, output);
        } else {
            self.mailbox.take(output);
        }
        after
    }

    /// Waits until other clients have been sent the events of the commands so far. Called before replies are written.
    pub async fn flush(&mut self) {
        if std::mem::take(&mut self.has_published) {
            self.front.hub.catch_up().await;
        }
    }

    /// Called when the replies so far are written.
    pub fn written(&mut self) {
        self.reserved.clear();
    }

    /// The reply to a command; `None` if it goes through the mailbox.
    async fn reply_to(
        &mut self,
        mut command: Command,
        is_anonymous: bool,
    ) -> (Option<Reply>, After) {
        let Some(name) = name_of(&command) else {
            return reply("ERR unknown command");
        };
        // The page of a web site can make a browser send HTTP here.
        if name == "POST" || name == "HOST:" {
            tracing::debug!("a client speaks HTTP to the listener for Redis' protocol");
            return (None, After::Close);
        }
        command.remove(0);
        if is_anonymous && !ANONYMOUS.contains(&name.as_str()) {
            return reply("NOAUTH Authentication required.");
        }
        if self.version == Version::Resp2
            && !SUBSCRIBED.contains(&name.as_str())
            && self.is_subscribed()
        {
            let name = name.to_ascii_lowercase();
            return reply(&format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed \
                 in this context"
            ));
        }
        match name.as_str() {
            "QUIT" => (Some(Reply::OK), After::Close),
            "RESET" => (Some(self.reset()), After::Continue),
            "MULTI" => match self.transaction {
                Some(_) => reply("ERR MULTI calls can not be nested"),
                None => {
                    self.transaction = Some(Transaction::default());
                    (Some(Reply::OK), After::Continue)
                }
            },
            "EXEC" => (Some(self.exec().await), After::Continue),
            "DISCARD" => match self.transaction.take() {
                Some(_) => (Some(Reply::OK), After::Continue),
                None => reply("ERR DISCARD without MULTI"),
            },
            _ if self.transaction.is_some() => (Some(self.queue(name, command)), After::Continue),
            _ if channels::is_command(&name) => {
                (channels::run(self, &name, command).await, After::Continue)
            }
            _ => (Some(self.run_one(&name, command).await), After::Continue),
        }
    }

    async fn run_one(&mut self, name: &str, command: Command) -> Reply {
        match texts(command) {
            Some(arguments) => server::run(self, name, arguments).await,
            None => Reply::error("ERR the arguments are not valid UTF-8"),
        }
    }

    fn queue(&mut self, name: String, command: Command) -> Reply {
        let Some(transaction) = &mut self.transaction else {
            return Reply::error("ERR EXEC without MULTI");
        };
        let bytes: usize = command.iter().map(Bytes::len).sum();
        let refused = if !server::exists(&name) {
            Some(format!("ERR {name} cannot be part of a transaction"))
        } else if transaction.commands.len() >= TRANSACTION_MAX {
            Some(format!(
                "ERR a transaction can have at most {TRANSACTION_MAX} commands"
            ))
        } else if transaction.bytes + bytes > COMMAND_BYTES_MAX {
            Some(format!(
                "ERR a transaction can have at most {COMMAND_BYTES_MAX} bytes"
            ))
        } else {
            None
        };
        if let Some(why) = refused {
            transaction.is_broken = true;
            return Reply::Error(why);
        }
        transaction.bytes += bytes;
        transaction.commands.push((name, command));
        Reply::Status("QUEUED")
    }

    /// Runs the commands since `MULTI` one after the other. Other clients' commands may run between them.
    async fn exec(&mut self) -> Reply {
        let Some(transaction) = self.transaction.take() else {
            return Reply::error("ERR EXEC without MULTI");
        };
        if transaction.is_broken {
            return Reply::error("EXECABORT Transaction discarded because of previous errors.");
        }
        let mut replies = Vec::with_capacity(transaction.commands.len());
        for (name, command) in transaction.commands {
            replies.push(self.run_one(&name, command).await);
        }
        Reply::List(replies)
    }

    /// Presents a token. The name of a user is ignored: the server has one token for qless.
    pub(super) fn authenticate(&mut self, token: &str) -> Result<(), Reply> {
        let presented = PresentedCredentials::Bearer(Hash::of(token));
        if !self.front.needs_token() {
            let words =
                "ERR AUTH <password> called without any password configured for the default user.";
            return Err(Reply::error(words));
        }
        if !self
            .front
            .auth
            .keyring
            .active()
            .accept(Api::Qless, &presented)
        {
            let from = self.client.info().map(|info| info.address.to_string());
            tracing::warn!(from, "rejected a request with wrong credentials");
            return Err(Reply::error(
                "WRONGPASS invalid username-password pair or user is disabled.",
            ));
        }
        self.token = Some(presented);
        Ok(())
    }

    fn reset(&mut self) -> Reply {
        self.front.hub.remove(self.client.number);
        self.subscriptions = 0;
        self.transaction = None;
        self.token = None;
        self.client.set_name("");
        self.set_version(Version::Resp2);
        Reply::Status("RESET")
    }

    pub(super) fn set_version(&mut self, version: Version) {
        self.version = version;
        self.mailbox.set_version(version);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.front.hub.remove(self.client.number);
    }
}

fn reply(error: &str) -> (Option<Reply>, After) {
    (Some(Reply::error(error)), After::Continue)
}

fn name_of(command: &Command) -> Option<String> {
    let name = std::str::from_utf8(command.first()?).ok()?;
    Some(name.to_ascii_uppercase())
}

/// The arguments as texts; `None` if one is not valid UTF-8.
pub fn texts(command: Command) -> Option<Vec<String>> {
    let text = |bytes: Bytes| String::from_utf8(bytes.into()).ok();
    command.into_iter().map(text).collect()
}

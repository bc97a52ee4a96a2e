//! Transactions: the commands between `MULTI` and `EXEC`, and the limits on their replies.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::NO_MEMORY;
use super::resp::{COMMAND_BYTES_MAX, Command, Reply, repeated};
use super::server;
use crate::memory::{Busy, Reserved, SMALL_MAX};

/// Maximum number of commands in a transaction.
const COMMANDS_MAX: usize = 1_000;

/// Maximum size of the replies of a transaction, in bytes; beyond it, no further commands are run.
const REPLIES_BYTES_MAX: usize = 64 << 20;

/// The commands since `MULTI`.
pub struct Transaction {
    commands: Vec<(String, Command)>,
    bytes: usize,
    /// The memory of the commands beyond [`SMALL_MAX`].
    reserved: Reserved,
    /// When a transaction without `EXEC` is discarded, and the time until then.
    deadline: Instant,
    within: Duration,
    discarded: Option<ExecError>,
}

/// Why `EXEC` is refused. The commands are no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExecError {
    /// A command could not be queued.
    Error,
    TimedOut,
}

impl Transaction {
    /// A transaction that `EXEC` must end within this time.
    pub fn new(within: Duration) -> Transaction {
        Transaction {
            commands: Vec::new(),
            bytes: 0,
            reserved: Reserved::default(),
            deadline: Instant::now() + within,
            within,
            discarded: None,
        }
    }

    /// When its commands will be discarded; `None` if they have been.
    pub fn deadline(&self) -> Option<Instant> {
        self.discarded.is_none().then_some(self.deadline)
    }

    /// Discards the commands, because the deadline has passed.
    pub fn time_out(&mut self) {
        self.discard(ExecError::TimedOut);
    }

    fn discard(&mut self, why: ExecError) {
        self.discarded = Some(why);
        (self.commands, self.bytes) = (Vec::new(), 0);
        self.reserved = Reserved::default();
    }

    fn timed_out(&self) -> String {
        let seconds = self.within.as_secs();
        format!("Transaction discarded because EXEC did not follow MULTI within {seconds} s.")
    }

    /// Adds a command. Returns the reply.
    pub async fn add(&mut self, name: String, command: Command) -> Reply {
        if self.discarded == Some(ExecError::TimedOut) {
            return Reply::Error(format!("ERR {}", self.timed_out()));
        }
        match self.try_add(name, command).await {
            Ok(()) => Reply::Status("QUEUED"),
            Err(why) => {
                self.discard(ExecError::Error);
                Reply::Error(why)
            }
        }
    }

    async fn try_add(&mut self, name: String, command: Command) -> Result<(), String> {
        if !server::exists(&name) {
            let name = repeated(&name);
            return Err(format!("ERR {name} cannot be part of a transaction"));
        }
        if self.discarded.is_some() {
            return Ok(());
        }
        if self.commands.len() >= COMMANDS_MAX {
            return Err(format!(
                "ERR a transaction can have at most {COMMANDS_MAX} commands"
            ));
        }
        // Empty arguments occupy memory too.
        let sizes = command
            .iter()
            .map(|argument| argument.len() + size_of::<Bytes>());
        let bytes = self.bytes + sizes.sum::<usize>();
        if bytes > COMMAND_BYTES_MAX {
            return Err(format!(
                "ERR a transaction can have at most {COMMAND_BYTES_MAX} bytes"
            ));
        }
        let large = bytes.saturating_sub(SMALL_MAX);
        let reserved = self.reserved.grow_to(large).await;
        reserved.map_err(|Busy| NO_MEMORY.to_owned())?;
        self.bytes = bytes;
        // Copies, because an argument otherwise keeps the whole buffer in which it arrived.
        let copies = command
            .iter()
            .map(|argument| Bytes::copy_from_slice(argument));
        self.commands.push((name, copies.collect()));
        Ok(())
    }

    /// The commands to run, with their memory.
    ///
    /// # Errors
    /// If the transaction was discarded.
    pub fn into_commands(self) -> Result<(Vec<(String, Command)>, Reserved), Reply> {
        match self.discarded {
            None => Ok((self.commands, self.reserved)),
            Some(ExecError::TimedOut) => {
                Err(Reply::Error(format!("EXECABORT {}", self.timed_out())))
            }
            Some(ExecError::Error) => Err(Reply::error(
                "EXECABORT Transaction discarded because of previous errors.",
            )),
        }
    }
}

/// The replies of a transaction that is being run.
pub struct Replies {
    pub all: Vec<Reply>,
    /// How many of them have been measured.
    measured: usize,
    /// The size of the measured ones.
    bytes: usize,
    /// The size of the measured ones of at most [`SMALL_MAX`] each, for which no memory is reserved yet.
    small_bytes: usize,
    /// The memory of the small ones beyond [`SMALL_MAX`].
    pub reserved: Reserved,
    deadline: Instant,
    within: Duration,
    /// Why no further command is run.
    stopped: Option<String>,
}

impl Replies {
    /// The replies of commands that may run for this time.
    pub fn new(within: Duration) -> Replies {
        Replies {
            all: Vec::new(),
            measured: 0,
            bytes: 0,
            small_bytes: 0,
            reserved: Reserved::default(),
            deadline: Instant::now() + within,
            within,
            stopped: None,
        }
    }

    /// Whether the next command may be run. If not, its error is to be added with [`Replies::refuse`].
    pub async fn have_room(&mut self) -> bool {
        let mut is_over = false;
        for reply in self.all.iter().skip(self.measured) {
            let bytes = reply.size();
            self.bytes += bytes;
            if bytes <= SMALL_MAX {
                self.small_bytes += bytes;
            }
            // The memory that is missing may be that of its own replies, so waiting again would be in vain.
            is_over |= self.bytes > REPLIES_BYTES_MAX || reply.is_try_again();
        }
        self.measured = self.all.len();
        let small = self.small_bytes.saturating_sub(SMALL_MAX);
        is_over |= self.reserved.grow_to(small).await.is_err();
        if is_over && self.stopped.is_none() {
            self.stopped = Some("the replies of the transaction are too large".to_owned());
        }
        if self.stopped.is_none() && Instant::now() >= self.deadline {
            let seconds = self.within.as_secs();
            self.stopped = Some(format!("the transaction has run for over {seconds} s"));
        }
        self.stopped.is_none()
    }

    /// Adds the error of a command that is not run.
    pub fn refuse(&mut self) {
        let why = self.stopped.as_deref().unwrap_or_default();
        let error = Reply::Error(format!("TRYAGAIN {why}; this command was not run"));
        self.all.push(error);
        self.measured = self.all.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_transaction_may_run_for_its_time() {
        let mut replies = Replies::new(WITHIN);
        assert!(replies.have_room().await);
        replies.all.push(Reply::OK);
        tokio::time::advance(WITHIN - Duration::from_secs(1)).await;
        assert!(replies.have_room().await);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!replies.have_room().await);
        replies.refuse();
        assert!(!replies.have_room().await);
        let why = "TRYAGAIN the transaction has run for over 60 s; this command was not run";
        assert_eq!(replies.all, [Reply::OK, Reply::error(why)]);
    }

    #[tokio::test]
    async fn a_queued_argument_does_not_keep_the_buffer_in_which_it_arrived() {
        let buffer = Bytes::from(vec![b'x'; 16 << 10]);
        let mut transaction = Transaction::new(WITHIN);
        let command = vec![buffer.slice(..1)];
        transaction.add("ECHO".to_owned(), command).await;
        assert!(buffer.is_unique() && transaction.commands.len() == 1);
    }

    #[tokio::test]
    async fn a_discarded_transaction_keeps_no_commands() {
        let command = || vec![Bytes::from(vec![b'x'; 1 << 20])];
        let mut transaction = Transaction::new(WITHIN);
        transaction.add("ECHO".to_owned(), command()).await;
        let unknown = transaction.add("SET".to_owned(), Vec::new()).await;
        assert!(matches!(unknown, Reply::Error(_)));
        let queued = transaction.add("ECHO".to_owned(), command()).await;
        assert_eq!(queued, Reply::Status("QUEUED"));
        assert!(transaction.commands.is_empty() && transaction.deadline().is_none());
        assert!(transaction.into_commands().is_err());
    }
}

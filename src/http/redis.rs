//! The listener for clients of qless that speak the Redis protocol. Its connections have the limits of the others,
//! except that a client may be idle: workers wait for messages, and pools keep connections.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::consume_budget;
use tokio::time::{Instant, sleep_until};
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

use super::accept::{Clients, Transport, log_end};
use super::connections::{Connection, ConnectionGuard};
use super::io::TrackedSocket;
use super::limits::Limits;
use super::tls::Tls;
use crate::memory::{Reserved, SMALL_MAX};
use crate::protocol::redis::{ConnectionAction, Malformed, Reader, RedisApi, Reply, Session};

/// The reply to a connection beyond the limit.
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

/// Bytes of replies after which they are written, although more commands have arrived.
const OUTPUT_BYTES: usize = 64 << 10;

/// The same before a client has presented its token: it gets only errors and short replies.
const ANONYMOUS_OUTPUT_BYTES: usize = 4 << 10;

/// Bytes to read at a time from a client that sends more than a small buffer holds.
const READ_BYTES: usize = 16 << 10;

/// The same before a client has presented its token.
const ANONYMOUS_READ_BYTES: usize = 4 << 10;

/// Serves until `stopping` is canceled, and then until the commands that are running have ended.
pub async fn serve(
    listener: TcpListener,
    api: Arc<RedisApi>,
    limits: Limits,
    transport: Transport,
    stopping: CancellationToken,
) {
    let limits = Limits {
        idle: Duration::MAX,
        // The memory of commands is counted when they arrive.
        header_bytes: usize::MAX,
        ..limits
    };
    let clients = Clients::new(limits, &transport, FULL);
    let tls = transport.tls;
    clients
        .accept(listener, &stopping, |tasks, stream, peer, guard| {
            let (api, tls, stopping) = (Arc::clone(&api), tls.clone(), stopping.clone());
            tasks.spawn(async move {
                let serving = serve_client(stream, tls, peer, &guard, api, limits, stopping);
                // On the heap: each connection has its own.
                if let Err(error) = Box::pin(serving).await {
                    log_end(&error);
                }
            })
        })
        .await;
}

async fn serve_client(
    stream: TrackedSocket,
    tls: Option<Arc<Tls>>,
    peer: SocketAddr,
    guard: &ConnectionGuard,
    api: Arc<RedisApi>,
    limits: Limits,
    stopping: CancellationToken,
) -> io::Result<()> {
    let handshake = async {
        match tls {
            None => Ok(Either::Left(stream)),
            Some(tls) => tls.accept(stream).await.map(Either::Right),
        }
    };
    let Some(stream) = stopping.run_until_cancelled(handshake).await else {
        return Ok(());
    };
    let client = Client {
        stream: stream?,
        session: Session::new(Arc::clone(&api), peer, limits.transaction),
        connection: &guard.connection,
        input: BytesMut::new(),
        output: Vec::new(),
        reader: Reader::default(),
        is_inside: false,
        large: Reserved::default(),
    };
    client.serve(&api, limits.header, &stopping).await
}

/// A connection.
struct Client<'a, S> {
    stream: S,
    session: Session,
    connection: &'a Connection,
    /// Bytes that were read and not processed.
    input: BytesMut,
    /// Replies that were not written.
    output: Vec<u8>,
    reader: Reader,
    /// Whether a part of a command has arrived.
    is_inside: bool,
    /// The memory of the bytes of an incomplete command beyond [`SMALL_MAX`], and of their copy.
    large: Reserved,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<'_, S> {
    /// Serves until the client disconnects, or the server ends the connection: when it stops, after `QUIT`, or if the
    /// client has not presented a required token within `login`.
    async fn serve(
        mut self,
        api: &RedisApi,
        login: Duration,
        stopping: &CancellationToken,
    ) -> io::Result<()> {
        let mut credentials = api.credentials();
        let mailbox = self.session.mailbox();
        let mut login_until = self.login_until(None, login);
        loop {
            let exec_until = self.session.deadline();
            tokio::select! {
                read = self.stream.read_buf(&mut self.input) => {
                    if read? == 0 {
                        break;
                    }
                    let has_more = self.input.len() == self.input.capacity();
                    if self.run_commands().await? == ConnectionAction::Close {
                        break;
                    }
                    // An idle client keeps no buffer, however much it has sent.
                    if self.input.is_empty() {
                        self.input = BytesMut::new();
                    } else if has_more {
                        self.input.reserve(match self.session.is_anonymous() {
                            true => ANONYMOUS_READ_BYTES,
                            false => READ_BYTES,
                        });
                    }
                    if self.session.is_revoked() {
                        break;
                    }
                    login_until = self.login_until(login_until, login);
                }
                () = mailbox.arrived.notified() => {}
                () = mailbox.overflow.cancelled() => return Err(overflow()),
                _ = credentials.changed() => {
                    if self.session.is_revoked() {
                        break;
                    }
                }
                () = until(exec_until) => self.session.time_out(),
                () = until(login_until) => break,
                () = stopping.cancelled() => break,
            }
            mailbox.take(&mut self.output);
            self.write().await?;
        }
        self.stream.shutdown().await
    }

    /// When a client without the token that it needs is disconnected. `before` is the result of the last call.
    fn login_until(&self, before: Option<Instant>, login: Duration) -> Option<Instant> {
        let is_anonymous = self.session.is_anonymous();
        is_anonymous.then(|| before.unwrap_or_else(|| Instant::now() + login))
    }

    /// Runs the commands that have arrived, in order, and writes their replies.
    async fn run_commands(&mut self) -> io::Result<ConnectionAction> {
        // The time for the rest of a command runs since its first byte.
        let mut is_new = !self.is_inside;
        loop {
            let is_anonymous = self.session.is_anonymous();
            match self.reader.next(&mut self.input, is_anonymous) {
                Ok(Some(command)) => {
                    is_new = true;
                    self.connection.begin_request();
                    // Refused commands wait for nothing, and must not keep the thread either.
                    consume_budget().await;
                    if command.is_empty() {
                        continue;
                    }
                    let after = self
                        .session
                        .run(command, is_anonymous, &mut self.output)
                        .await;
                    let output_max = match is_anonymous {
                        true => ANONYMOUS_OUTPUT_BYTES,
                        false => OUTPUT_BYTES,
                    };
                    if after == ConnectionAction::Close || self.output.len() >= output_max {
                        self.write_replies().await?;
                    }
                    if after == ConnectionAction::Close {
                        return Ok(after);
                    }
                }
                Ok(None) => break,
                Err(Malformed(why)) => return self.refuse(&format!("ERR {why}")).await,
            }
        }
        self.write_replies().await?;
        self.is_inside = self.reader.is_inside() || !self.input.is_empty();
        if !self.is_inside {
            self.large = Reserved::default();
            if self.session.is_subscribed() {
                // A subscriber is not idle: it waits for messages.
                self.connection.begin_request();
            } else {
                self.connection.end_request();
            }
        } else if is_new {
            self.connection.end_request();
            self.connection.begin_header();
            // The rest of a command that has just begun must not keep the memory of those before it.
            self.large = Reserved::default();
            self.input = BytesMut::from(&*self.input);
        }
        let arrived = self.reader.arrived() + self.input.len();
        // Twice, because the arguments are copied as text.
        let large = 2 * arrived.saturating_sub(SMALL_MAX);
        if self.large.grow_to(large).await.is_err() {
            let why = "ERR other requests occupy the memory for large requests";
            return self.refuse(why).await;
        }
        Ok(ConnectionAction::Continue)
    }

    async fn refuse(&mut self, why: &str) -> io::Result<ConnectionAction> {
        self.session.finish(&mut self.output).await;
        Reply::Error(why.to_owned()).encode_error(&mut self.output);
        self.write_replies().await?;
        Ok(ConnectionAction::Close)
    }

    /// Writes the replies, after other clients were sent the events of their commands.
    async fn write_replies(&mut self) -> io::Result<()> {
        self.session.finish(&mut self.output).await;
        self.session.flush().await;
        self.write().await
    }

    async fn write(&mut self) -> io::Result<()> {
        if !self.output.is_empty() {
            let mailbox = self.session.mailbox();
            self.connection.hold(self.session.reserved_bytes());
            let writing = async {
                self.stream.write_all(&self.output).await?;
                self.stream.flush().await
            };
            // Not while a command runs: a transaction ends although its client does not read.
            tokio::select! {
                biased;
                written = writing => written?,
                () = mailbox.overflow.cancelled() => return Err(overflow()),
            }
            // An idle client keeps no buffer.
            self.output = Vec::new();
        }
        self.session.written();
        Ok(())
    }
}

fn overflow() -> io::Error {
    io::Error::other("a subscriber reads too slowly")
}

/// Waits until this time; forever if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

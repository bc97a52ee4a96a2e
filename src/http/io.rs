//! Wrappers of the socket and the bodies of a connection. They record the phases of the [`Connection`].

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use super::connections::Connection;
use crate::memory::Reserved;
use crate::request::BodyTimeout;

/// The socket of a connection. With TLS, it carries the encrypted bytes.
pub struct TrackedSocket {
    stream: TcpStream,
    connection: Arc<Connection>,
    /// Whether the bytes that arrive are encrypted, and count until they are decrypted.
    is_encrypted: bool,
}

impl TrackedSocket {
    pub fn new(stream: TcpStream, connection: Arc<Connection>) -> TrackedSocket {
        TrackedSocket {
            stream,
            connection,
            is_encrypted: false,
        }
    }

    /// The same socket, before a TLS handshake.
    pub fn encrypted(self) -> TrackedSocket {
        TrackedSocket {
            is_encrypted: true,
            ..self
        }
    }

    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// The wrapped socket.
    pub fn tcp(&self) -> &TcpStream {
        &self.stream
    }

    fn track_write(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Pending => self.connection.stall(),
            Poll::Ready(Ok(bytes)) => self.connection.sent(*bytes),
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

impl AsyncRead for TrackedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let received = buffer.filled().len().saturating_sub(before);
        if received > 0 && !self.connection.received(received) {
            let why = "other connections occupy the memory for headers";
            return Poll::Ready(Err(io::Error::other(why)));
        }
        if self.is_encrypted && received > 0 && !self.connection.received_encrypted(received) {
            let why = "too many bytes without a complete TLS message";
            return Poll::Ready(Err(io::Error::other(why)));
        }
        read
    }
}

impl AsyncWrite for TrackedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.track_write(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.track_write(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Called when everything has been written.
        if self.connection.flushed() {
            // In this task.
            cx.waker().wake_by_ref();
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The size of reads while there are too many large buffers, in bytes. Reads that do not fill the buffer let it shrink.
const SMALL_READ: usize = 4 << 10;

/// What an HTTP connection reads from, decrypted. It records the size of the buffer into which the bytes are read.
pub struct BufferedStream<'a, S> {
    stream: S,
    connection: &'a Connection,
}

impl<S> BufferedStream<'_, S> {
    pub fn new(stream: S, connection: &Connection) -> BufferedStream<'_, S> {
        BufferedStream { stream, connection }
    }

    fn received(&self, bytes: usize) -> Poll<io::Result<()>> {
        Poll::Ready(match self.connection.received_part(bytes) {
            true => Ok(()),
            false => Err(io::Error::other("too many bytes of chunks without data")),
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BufferedStream<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if self.connection.reads_into(buffer.remaining()) {
            ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
            return self.received(buffer.filled().len() - before);
        }
        // hyper grows the buffer only if a read fills it.
        let room = buffer.initialize_unfilled_to(buffer.remaining().min(SMALL_READ));
        let mut small = ReadBuf::new(room);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut small))?;
        let read = small.filled().len();
        buffer.advance(read);
        self.received(read)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BufferedStream<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The body of a request, with a time limit that starts when the server first waits for it.
pub struct TimedRequestBody {
    body: Incoming,
    within: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
    connection: Arc<Connection>,
}

impl TimedRequestBody {
    /// The body of a request on this connection.
    pub fn body(body: Incoming, within: Duration, connection: &Arc<Connection>) -> Body {
        if body.is_end_stream() {
            return Body::empty();
        }
        Body::new(TimedRequestBody {
            body,
            within,
            deadline: None,
            connection: Arc::clone(connection),
        })
    }
}

impl HttpBody for TimedRequestBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            this.connection.read_frame();
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let deadline = this.deadline.get_or_insert_with(|| {
            this.connection.await_body();
            Box::pin(sleep(this.within))
        });
        match deadline.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Some(Err(BodyTimeout.into()))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for TimedRequestBody {
    fn drop(&mut self) {
        self.connection.end_body();
    }
}

/// The body of a response. At its end, the connection waits for the next request.
pub struct TrackedResponseBody {
    body: Body,
    /// The memory of the parts that have not been passed on.
    reserved: Reserved,
    connection: Arc<Connection>,
}

impl TrackedResponseBody {
    pub fn new(body: Body, reserved: Reserved, connection: Arc<Connection>) -> TrackedResponseBody {
        connection.begin_response(reserved.bytes());
        TrackedResponseBody {
            body,
            reserved,
            connection,
        }
    }
}

impl HttpBody for TrackedResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let frame = Pin::new(&mut this.body).poll_frame(cx);
        // Memory is released when the bytes have been sent, not when they are passed on to be sent.
        let with_memory = |frame: Frame<Bytes>| frame.map_data(|data| this.reserved.attach(data));
        frame.map(|frame| frame.map(|frame| frame.map(with_memory)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for TrackedResponseBody {
    fn drop(&mut self) {
        self.connection.end_request();
    }
}

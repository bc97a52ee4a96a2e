//! The decrypted stream of a TLS connection. The TLS library keeps the bytes of a message until the message is complete.
//! These bytes count as memory of the connection, because a client may never complete the message.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;

use crate::http::connections::Connection;
use crate::http::io::TrackedSocket;

/// The decrypted stream.
pub struct TlsConnection {
    stream: TlsStream<TrackedSocket>,
    connection: Arc<Connection>,
    /// The error of a read that has also decrypted bytes. The next read returns it.
    error: Option<io::Error>,
}

impl TlsConnection {
    /// After the handshake.
    pub fn new(stream: TlsStream<TrackedSocket>, connection: Arc<Connection>) -> TlsConnection {
        connection.decrypted();
        TlsConnection {
            stream,
            connection,
            error: None,
        }
    }
}

impl AsyncRead for TlsConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(error) = self.error.take() {
            return Poll::Ready(Err(error));
        }
        let before = buffer.filled().len();
        // By message, because the buffer can hold many.
        while buffer.remaining() > 0 {
            let this = &mut *self;
            let read = Pin::new(&mut this.stream).poll_fill_buf(cx);
            let has_read = buffer.filled().len() > before;
            match read {
                Poll::Ready(Ok([])) => break,
                Poll::Ready(Ok(data)) => {
                    let (part, _) = data.split_at(data.len().min(buffer.remaining()));
                    buffer.put_slice(part);
                    let read = part.len();
                    Pin::new(&mut this.stream).consume(read);
                    this.connection.decrypted();
                }
                Poll::Ready(Err(error)) if has_read => {
                    this.error = Some(error);
                    break;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending if has_read => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TlsConnection {
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

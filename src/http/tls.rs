//! TLS: the certificate that the server presents, its reload, and the handshake at the beginning of a connection.

mod stream;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Poll;

use futures::{pending, poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, sink};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::yield_now;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::rustls::{Error as TlsError, ServerConfig, ServerConnection};
use tokio_rustls::server::TlsStream;

use super::io::TrackedSocket;
use crate::secret::{read_file, read_file_again};
use stream::TlsConnection;

/// The ALPN names of the supported protocols (RFC 7301).
const ALPN: [&[u8]; 1] = [b"http/1.1"];

/// Encrypted bytes of a connection that wait until the client reads: one record.
const OUTPUT_BYTES_MAX: usize = 16 << 10;

/// Maximum number of certificates in a chain.
const CHAIN_MAX: usize = 16;

/// How much of a plain request is read after the response, so that closing does not reset the connection before the
/// client has read the response.
const PLAIN_BYTES_MAX: u64 = 64 << 10;

/// The response to a plain HTTP request.
const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 43\r\nconnection: close\r\n\r\nthis port accepts only HTTPS: use https://\n";

/// The files of a certificate chain and its private key, both in PEM format, and the pair that was last loaded without
/// an error.
pub struct Tls {
    certificate: String,
    key: String,
    current: RwLock<Arc<ServerConfig>>,
    /// Limits the concurrent steps of handshakes, which compute signatures, to one per thread that serves connections.
    /// With more, a flood of handshakes would delay all requests.
    steps: Semaphore,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Tls");
        shown.field("certificate", &self.certificate);
        shown.field("key", &self.key).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads both files. It must be called within a Tokio runtime.
    ///
    /// # Errors
    /// If one cannot be read or is not PEM, or the key does not belong to the certificate. The error names the file and
    /// contains nothing of its contents.
    pub fn load(certificate: &str, key: &str) -> Result<Arc<Tls>, String> {
        let threads = Handle::current().metrics().num_workers();
        Ok(Arc::new(Tls {
            current: RwLock::new(read_pair(certificate, key, read_file)?),
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            steps: Semaphore::new(threads),
        }))
    }

    /// Reloads both files, for new connections. Blocks.
    ///
    /// # Errors
    /// As in [`Tls::load`]; the current pair is kept.
    pub fn reload(&self) -> Result<(), String> {
        let config = read_pair(&self.certificate, &self.key, read_file_again)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    fn current(&self) -> Arc<ServerConfig> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&current)
    }

    /// Performs the handshake. The caller limits its time.
    ///
    /// # Errors
    /// If the client disconnects, or if no protocol version or cipher is shared; the client then receives an alert.
    pub async fn accept(&self, stream: TrackedSocket) -> io::Result<TlsConnection> {
        let connection = Arc::clone(stream.connection());
        let stream = self.handshake(stream.encrypted()).await?;
        Ok(TlsConnection::new(stream, connection))
    }

    async fn handshake<S>(&self, stream: S) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let mut permit = self.step().await?;
        let limit =
            |connection: &mut ServerConnection| connection.set_buffer_limit(Some(OUTPUT_BYTES_MAX));
        let mut handshake = pin!(start.into_stream_with(self.current(), limit));
        // The client chooses the message to which the server responds with a signature: after a HelloRetryRequest it
        // is the second ClientHello. So each step of the handshake needs a permit.
        loop {
            let polled = poll!(handshake.as_mut());
            drop(permit);
            if let Poll::Ready(outcome) = polled {
                return outcome;
            }
            // Until the handshake wakes the task.
            pending!();
            permit = self.step().await?;
        }
    }

    /// Waits for a permit for one step of a handshake.
    async fn step(&self) -> io::Result<SemaphorePermit<'_>> {
        let permit = self.steps.acquire().await.map_err(io::Error::other)?;
        // Lets pending requests run before the next signature.
        yield_now().await;
        Ok(permit)
    }
}

/// Whether the client sends a plain HTTP request. Waits for the first byte, without consuming it.
pub async fn is_plain(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let count = stream.peek(&mut first).await?;
    // A method starts with a letter, and a handshake with the byte 22.
    Ok(count == 1 && first.iter().all(u8::is_ascii_alphabetic))
}

/// Responds to a plain HTTP request that the port accepts only HTTPS.
pub async fn refuse_plain(mut stream: TrackedSocket) -> io::Result<()> {
    stream.write_all(PLAIN).await?;
    stream.shutdown().await?;
    copy(&mut stream.take(PLAIN_BYTES_MAX), &mut sink()).await?;
    Ok(())
}

fn read_pair(
    certificate: &str,
    key: &str,
    read_file: fn(&str) -> Result<String, String>,
) -> Result<Arc<ServerConfig>, String> {
    let read = |path: &str| {
        read_file(path).map_err(|why| format!("cannot read the TLS file {path}: {why}"))
    };
    let chain = CertificateDer::pem_slice_iter(read(certificate)?.as_bytes())
        .take(CHAIN_MAX + 1)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| malformed(certificate, "certificate", &error))?;
    if chain.is_empty() {
        return Err(malformed(
            certificate,
            "certificate",
            &PemError::NoItemsFound,
        ));
    }
    if chain.len() > CHAIN_MAX {
        return Err(format!(
            "the TLS file {certificate} holds more than {CHAIN_MAX} certificates"
        ));
    }
    let private = PrivateKeyDer::from_pem_slice(read(key)?.as_bytes())
        .map_err(|error| malformed(key, "unencrypted private key", &error))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let mut config = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS is not available: {error}"))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| match error {
            TlsError::InconsistentKeys(_) => {
                format!("the TLS key in {key} does not belong to the certificate in {certificate}")
            }
            TlsError::InvalidCertificate(_) => {
                format!("the certificate in {certificate} is malformed: {error}")
            }
            _ => format!("the TLS key in {key} is malformed or of an unsupported kind"),
        })?;
    config.alpn_protocols = ALPN.map(<[u8]>::to_vec).into();
    Ok(Arc::new(config))
}

/// The error of a PEM file. The parser's error is not used, because it can quote the file.
fn malformed(path: &str, what: &str, error: &PemError) -> String {
    match error {
        PemError::NoItemsFound => format!("the TLS file {path} holds no {what} in PEM format"),
        _ => format!("the TLS file {path} is not valid PEM"),
    }
}

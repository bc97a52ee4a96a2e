//! Certificates for one test, and clients that trust exactly one of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion, version};

use super::Server;
use super::raw::Connection;

/// A certificate for this host and its key, in two files.
#[derive(Debug)]
pub struct CertificatePair {
    folder: TempDir,
    der: CertificateDer<'static>,
}

impl CertificatePair {
    pub fn new() -> CertificatePair {
        let folder = TempDir::new().expect("a folder for the certificate");
        let der = CertificatePair::write(folder.path());
        CertificatePair { folder, der }
    }

    fn write(folder: &Path) -> CertificateDer<'static> {
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let made = generate_simple_self_signed(names).expect("a certificate");
        let CertifiedKey { cert, signing_key } = made;
        fs::write(folder.join("cert.pem"), cert.pem()).expect("a file");
        fs::write(folder.join("key.pem"), signing_key.serialize_pem()).expect("a file");
        cert.der().clone()
    }

    /// Replaces both files with a new pair.
    pub fn renew(&mut self) {
        self.der = CertificatePair::write(self.folder.path());
    }

    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("cert.pem")
    }

    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }

    /// The options for a server with this pair, followed by `more`.
    pub fn options(&self, more: &[&str]) -> Vec<String> {
        let path = |path: PathBuf| path.to_str().expect("a path").to_owned();
        let files = [
            "--tls-cert".to_owned(),
            path(self.certificate()),
            "--tls-key".to_owned(),
            path(self.key()),
        ];
        let more = more.iter().map(|&option| option.to_owned());
        files.into_iter().chain(more).collect()
    }

    /// Starts a server with this pair and these options.
    pub fn serve(&self, more: &[&str]) -> Server {
        let options = self.options(more);
        Server::with(&options.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// A client that trusts the certificate currently in the file.
    pub fn client(&self) -> Client {
        self.client_of(&[&version::TLS13, &version::TLS12])
    }

    /// A client that supports only these versions of TLS.
    pub fn client_of(&self, versions: &[&'static SupportedProtocolVersion]) -> Client {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).expect("a certificate");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = builder.with_protocol_versions(versions).expect("versions");
        Client(
            config
                .with_root_certificates(roots)
                .with_no_client_auth()
                .into(),
        )
    }
}

/// A client that trusts one certificate.
#[derive(Clone, Debug)]
pub struct Client(pub Arc<ClientConfig>);

/// A connection with TLS.
pub type Secured = Connection<TlsStream<TcpStream>>;

impl Client {
    /// A client that offers these protocols (ALPN).
    pub fn offering(&self, protocols: &[&str]) -> Client {
        let mut config = ClientConfig::clone(&self.0);
        let protocols = protocols.iter().map(|name| name.as_bytes().to_vec());
        config.alpn_protocols = protocols.collect();
        Client(config.into())
    }

    /// Performs the handshake over this connection.
    pub async fn secure(
        &self,
        plain: Connection,
    ) -> std::io::Result<Connection<TlsStream<TcpStream>>> {
        let name = ServerName::try_from("127.0.0.1").expect("an address");
        let connector = TlsConnector::from(Arc::clone(&self.0));
        connector.connect(name, plain.0).await.map(Connection)
    }

    pub async fn try_connect(&self, server: &Server) -> std::io::Result<Secured> {
        self.secure(Connection::to(server).await).await
    }

    pub async fn connect(&self, server: &Server) -> Secured {
        self.try_connect(server).await.expect("a handshake")
    }

    /// Sends a request on a new connection, with `lines` in its header. Returns the whole response.
    pub async fn ask(&self, server: &Server, line: &str, lines: &str, body: &str) -> String {
        let mut connection = self.connect(server).await;
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{lines}content-length: {length}\r\n\r\n"
        );
        connection.write(head + body).await;
        connection.read_to_end().await
    }
}

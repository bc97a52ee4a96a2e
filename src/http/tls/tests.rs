//! The limit on the steps of handshakes, and the limit on certificates.

use std::fs;

use futures::poll;
use tempfile::TempDir;
use tokio::io::duplex;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::{ActiveKeyExchange, SharedSecret, SupportedKxGroup};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, HandshakeKind, NamedGroup, RootCertStore};

use super::*;

/// A key exchange that the server does not support.
#[derive(Debug)]
struct Unsupported;

impl SupportedKxGroup for Unsupported {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, TlsError> {
        Ok(Box::new(Unsupported))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X448
    }
}

impl ActiveKeyExchange for Unsupported {
    fn complete(self: Box<Self>, _: &[u8]) -> Result<SharedSecret, TlsError> {
        Err(TlsError::General("not supported".to_owned()))
    }

    fn pub_key(&self) -> &[u8] {
        &[1; 56]
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X448
    }
}

/// Writes a chain with `count` copies of a new certificate. Returns the folder, both paths, and the certificate.
fn pair(count: usize) -> (TempDir, String, String, CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (chain, key) = (path("cert.pem"), path("key.pem"));
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    fs::write(&chain, made.cert.pem().repeat(count)).unwrap();
    (folder, chain, key, made.cert.der().clone())
}

/// A client that first offers a key exchange that the server refuses. The server then signs its response to the second
/// ClientHello.
fn client_with_retry(certificate: CertificateDer<'static>) -> TlsConnector {
    let mut provider = ring::default_provider();
    provider.kx_groups = vec![&Unsupported, ring::kx_group::X25519];
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn a_handshake_signs_only_with_a_permit_also_after_a_retry() {
    let (_folder, chain, key, certificate) = pair(1);
    let tls = Tls::load(&chain, &key).unwrap();
    let permits = u32::try_from(tls.steps.available_permits()).unwrap();
    let (near, far) = duplex(64 << 10);
    let connector = client_with_retry(certificate);
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = pin!(connector.connect(name, near));
    let mut server = pin!(tls.handshake(far));
    assert!(poll!(client.as_mut()).is_pending());
    // The server reads the first ClientHello and asks for another one.
    let mut polls = 0;
    let all = loop {
        assert!(poll!(server.as_mut()).is_pending());
        yield_now().await;
        polls += 1;
        if polls > 10
            && let Ok(all) = tls.steps.try_acquire_many(permits)
        {
            break all;
        }
    };
    for _ in 0..10 {
        assert!(poll!(client.as_mut()).is_pending());
        assert!(poll!(server.as_mut()).is_pending(), "it has no permit");
        yield_now().await;
    }
    drop(all);
    let (client, server) = tokio::join!(client, server);
    let kind = client.unwrap().get_ref().1.handshake_kind();
    assert_eq!(kind, Some(HandshakeKind::FullWithHelloRetryRequest));
    server.unwrap();
}

#[test]
fn a_chain_has_up_to_16_certificates() {
    for (count, is_read) in [(1, true), (15, true), (16, true), (17, false)] {
        let (_folder, chain, key, _) = pair(count);
        let read = read_pair(&chain, &key, read_file);
        assert_eq!(read.is_ok(), is_read, "{count}");
    }
}

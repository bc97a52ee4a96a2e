//! Connections to the server, with TLS for https.

use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Connects to http and https.
pub type Connector = HttpsConnector<HttpConnector>;

/// How long a connection may take to be established.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// How often the system checks that the server of an unused connection, or of a long poll, still exists.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A connector that trusts these authorities, in PEM format, or by default those of the system. The system's are read
/// only if they are needed.
///
/// # Errors
/// If certificates cannot be read or are invalid, or if there are none.
pub fn connector(is_https: bool, ca: Option<&str>) -> Result<Connector, String> {
    let builder = HttpsConnectorBuilder::new();
    let builder = match ca {
        None if is_https => builder
            .with_provider_and_native_roots(ring::default_provider())
            .map_err(|error| format!("cannot read the system's CA certificates: {error}"))?,
        ca => builder.with_tls_config(trusting(ca.unwrap_or_default())?),
    };
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_connect_timeout(Some(CONNECT_MAX));
    Ok(builder.https_or_http().enable_http1().wrap_connector(tcp))
}

/// A configuration that trusts the certificates in this text.
fn trusting(pem: &str) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|_| "--ca: not PEM".to_owned())?;
        roots
            .add(certificate)
            .map_err(|error| format!("--ca: {error}"))?;
    }
    if roots.is_empty() && !pem.is_empty() {
        return Err("--ca: the file has no certificate in PEM format".to_owned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

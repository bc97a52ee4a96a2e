//! What a server says when it begins to listen: where it is, and a line to try it with.

use std::net::SocketAddr;

use switchyard::doors::{Api, is_loopback};
use switchyard::engine::{Engine, Result};
use switchyard::server::Settings;
use switchyard::store::FIRST_TOKEN;

/// The namespace that a first start makes a token for.
const NAMESPACE: &str = "default";

/// A token for the first namespace, where nobody has made one and nothing is in the database yet. Only on
/// loopback: where others can read along, a secret is not printed unasked.
pub async fn first_token(
    engine: &Engine,
    settings: &Settings,
    address: SocketAddr,
) -> Result<Option<String>> {
    let is_new = engine.known_queues().all().is_empty() && engine.tokens().await?.is_empty();
    if settings.no_auth || !is_loopback(address) || !is_new {
        return Ok(None);
    }
    let token = engine.create_token(NAMESPACE, FIRST_TOKEN, None).await?;
    Ok(Some(token))
}

/// The greeting. Its first line tells the address, for programs too.
pub fn greeting(
    address: SocketAddr,
    database: &str,
    settings: &Settings,
    token: Option<&str>,
) -> String {
    let scheme = match settings.tls {
        Some(_) => "https",
        None => "http",
    };
    let key = if settings.doors.has_own(Api::Qless) {
        r#" -H "Authorization: Bearer $SWITCHYARD_QLESS_TOKEN""#
    } else {
        ""
    };
    let of_lmstfy = match token {
        Some(token) => format!(
            "With lmstfy, using a token for the namespace {NAMESPACE} (not shown again):
  curl -X PUT '{scheme}://{address}/api/{NAMESPACE}/work?token={token}' -d 'hello'"
        ),
        None if settings.no_auth => format!(
            "With lmstfy, without a token (--no-auth):
  curl -X PUT '{scheme}://{address}/api/{NAMESPACE}/work' -d 'hello'"
        ),
        None => format!(
            "To use lmstfy, create a token for a namespace:
  switchyard token create --database {database} {NAMESPACE}"
        ),
    };
    format!(
        r#"listening on {scheme}://{address}
  dashboard  {scheme}://{address}/ui
  API        {scheme}://{address} (qless, lmstfy, Relay, Jobq)
  database   {database}
Add a first job:
  curl {scheme}://{address}/add/work{key} -d '{{"data": {{"meta": {{"hello": "world"}}}}}}'
{of_lmstfy}
"#
    )
}

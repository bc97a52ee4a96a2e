//! The startup banner: addresses, and commands that add a first job.

use std::net::SocketAddr;

use crate::auth::{Api, is_loopback};
use crate::engine::{Engine, Result};
use crate::http::Settings;
use crate::request::BasePath;
use crate::store::FIRST_TOKEN;

/// The namespace for which a first start creates a token.
const NAMESPACE: &str = "default";

/// Creates a token for the first namespace if the database is empty and has no tokens. Only on loopback: a server that
/// others can reach does not print secrets unasked.
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

/// The startup banner. Its first line has the address, which programs may parse, and the lines `metrics` and `redis`
/// have those of further listeners, if there are any.
pub fn banner(
    (address, metrics, redis): (SocketAddr, Option<SocketAddr>, Option<SocketAddr>),
    database: &str,
    settings: &Settings,
    token: Option<&str>,
) -> String {
    let scheme = match settings.tls {
        Some(_) => "https",
        None => "http",
    };
    let base_path = settings.base_path.as_ref().map_or("", BasePath::as_str);
    let metrics = match metrics {
        Some(metrics) => format!("  metrics    {scheme}://{metrics}/metrics\n"),
        None => String::new(),
    };
    let redis = match (redis, &settings.tls) {
        (Some(redis), Some(_)) => format!("  redis      rediss://{redis} (qless)\n"),
        (Some(redis), None) => format!("  redis      redis://{redis} (qless)\n"),
        (None, _) => String::new(),
    };
    let key = if settings.auth.has_token(Api::Qless) {
        r#" -H "Authorization: Bearer $SWITCHYARD_QLESS_TOKEN""#
    } else {
        ""
    };
    let of_lmstfy = match token {
        Some(token) => format!(
            "Add a job with lmstfy. The token is for the namespace {NAMESPACE}, and is shown only once:
  curl -X PUT '{scheme}://{address}/api/{NAMESPACE}/work?token={token}' -d 'hello'"
        ),
        None if settings.no_auth => format!(
            "Add a job with lmstfy (no token needed, because of --no-auth):
  curl -X PUT '{scheme}://{address}/api/{NAMESPACE}/work' -d 'hello'"
        ),
        None => format!(
            "Create a token for an lmstfy namespace:
  switchyard token create --database {database} {NAMESPACE}"
        ),
    };
    format!(
        r#"listening on {scheme}://{address}
  dashboard  {scheme}://{address}{base_path}/ui
  API        {scheme}://{address} (qless, lmstfy, Relay, Jobq)
  database   {database}
{metrics}{redis}Add a job:
  curl {scheme}://{address}/add/work{key} -d '{{"data": {{"meta": {{"hello": "world"}}}}}}'
{of_lmstfy}
"#
    )
}

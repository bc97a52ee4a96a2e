//! Ends event streams when their credentials are removed. Other requests in progress finish.

use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use futures::StreamExt;

use super::credentials::{Api, Keyring};
use super::keys::PresentedCredentials;

/// The type of a stream of server-sent events.
const EVENTS: &[u8] = b"text/event-stream";

/// Makes the response end when the credentials of its request become invalid, if it is an event stream.
pub fn end_with_credentials(
    response: Response,
    keyring: &Keyring,
    api: Api,
    presented: PresentedCredentials,
) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(EVENTS)) {
        return response;
    }
    let keyring = keyring.clone();
    response.map(|body| {
        let events = body.into_data_stream();
        Body::from_stream(events.take_until(invalidated(keyring, api, presented)))
    })
}

/// Ends when the credentials are no longer valid for the API.
async fn invalidated(keyring: Keyring, api: Api, presented: PresentedCredentials) {
    // Subscribes before the first check, so that it cannot miss a replacement.
    let mut replacements = keyring.replacements();
    while keyring.active().accept(api, &presented) {
        if replacements.changed().await.is_err() {
            return;
        }
    }
}

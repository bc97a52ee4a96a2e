//! Event streams end when the key that opened them is removed. Other requests that have begun are finished.

use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use futures::StreamExt;

use super::credentials::{Api, Keyring};
use super::keys::Shown;

/// The type of a stream of server-sent events.
const EVENTS: &[u8] = b"text/event-stream";

/// The response, which ends with the key that the request has shown if it is an event stream.
pub fn ends_with_key(response: Response, keyring: &Keyring, api: Api, shown: Shown) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(EVENTS)) {
        return response;
    }
    let keyring = keyring.clone();
    response.map(|body| {
        let events = body.into_data_stream();
        Body::from_stream(events.take_until(removed(keyring, api, shown)))
    })
}

/// Ends when the key opens the API no longer.
async fn removed(keyring: Keyring, api: Api, shown: Shown) {
    // Before the first check, so that no replacement is missed.
    let mut replacements = keyring.replacements();
    while keyring.in_force().opens_for(api, &shown) {
        if replacements.changed().await.is_err() {
            return;
        }
    }
}

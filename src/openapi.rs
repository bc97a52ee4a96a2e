//! The descriptions of the APIs in OpenAPI 3.1, which the server serves and the dashboard shows.

use std::sync::LazyLock;

/// The API of each description, and its text with the version of this program.
static FILES: LazyLock<[(&str, String); 5]> = LazyLock::new(|| {
    [
        ("qless", include_str!("http/openapi/qless.json")),
        ("lmstfy", include_str!("http/openapi/lmstfy.json")),
        ("relay", include_str!("http/openapi/relay.json")),
        ("jobq", include_str!("http/openapi/jobq.json")),
        ("admin", include_str!("http/openapi/admin.json")),
    ]
    .map(|(api, text)| {
        (
            api,
            text.replacen("{version}", env!("CARGO_PKG_VERSION"), 1),
        )
    })
});

/// All descriptions: the API, and the text in JSON.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().map(|(api, text)| (*api, text.as_str()))
}

/// The description of an API.
pub fn of(api: &str) -> Option<&'static str> {
    all().find_map(|(name, text)| (name == api).then_some(text))
}

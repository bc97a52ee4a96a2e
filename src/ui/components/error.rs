//! Error pages.

use leptos::prelude::*;
use leptos_meta::Title;

use crate::ui::error::PageError;

/// The text for an unknown address.
pub const NO_PAGE: &str = "No page at this address.";

/// The page for an unknown address, or for a form that failed.
#[component]
pub fn MissingPage() -> impl IntoView {
    match use_context::<PageError>() {
        Some(why) => error_view(&why),
        None => missing(NO_PAGE),
    }
}

/// The error in place of a page.
pub fn error_view(error: &PageError) -> AnyView {
    match error {
        PageError::Missing(what) => missing(what),
        PageError::Forbidden(why) => view! {
            <Title text="Not allowed" />
            <h1>"Not allowed"</h1>
            <p class="text-muted wrap-anywhere">"Nothing was changed."</p>
            <p class="wrap-anywhere">{why.clone()}</p>
            <p>
                "Ask an administrator of this server for a key with that role. " <a href="/ui">"Go to overview"</a>
            </p>
        }
        .into_any(),
        PageError::Request(why) => view! {
            <Title text="Invalid request" />
            <h1>"Invalid request"</h1>
            <p class="text-muted wrap-anywhere">"The form is incomplete or one of its fields is malformed. Nothing was changed."</p>
            <p class="wrap-anywhere">{why.clone()}</p>
            <p>
                "Go back and reload the page; it may be older than the server. " <a href="/ui">"Go to overview"</a>
            </p>
        }
        .into_any(),
        PageError::Unavailable(why) => view! {
            <Title text="Page unavailable" />
            <h1>"Page unavailable"</h1>
            <p class="text-muted wrap-anywhere">"The server could not load this page. Nothing was changed."</p>
            <p class="wrap-anywhere">{why.clone()}</p>
            <p>
                <a href="">"Reload the page"</a>
                " to try again. If the error persists, check the server log and the database’s disk."
            </p>
        }
        .into_any(),
    }
}

fn missing(what: &str) -> AnyView {
    view! {
        <Title text="Not found" />
        <h1>"Not found"</h1>
        <p class="text-muted wrap-anywhere">{what.to_owned()}</p>
        <p>
            <a href="/ui">"Go to overview"</a>
        </p>
    }
    .into_any()
}

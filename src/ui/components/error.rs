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
        PageError::Forbidden(why) => explanation(
            "Not allowed",
            "The server refused the request.",
            why,
            view! {
                "Ask an administrator of this server for a key with that role. " <a href="/ui">"Go to overview"</a>
            },
        ),
        PageError::Request(why) => explanation(
            "Invalid request",
            "The form is incomplete or one of its fields is malformed. Nothing was changed.",
            why,
            view! {
                "Go back and reload the page; it may be older than the server. " <a href="/ui">"Go to overview"</a>
            },
        ),
        PageError::TooMany(why) => explanation(
            "Too many actions",
            "Nothing was changed.",
            why,
            view! {
                "A bulk action on many jobs counts as one action. " <a href="/ui">"Go to overview"</a>
            },
        ),
        PageError::Unavailable(why) => explanation(
            "Page unavailable",
            "The server could not load this page.",
            why,
            view! {
                <a href="">"Reload the page"</a>
                " to try again. If the error persists, check the server log and the database’s disk."
            },
        ),
    }
}

/// An error: its effect, its reason, and what the user can do.
fn explanation(
    title: &'static str,
    effect: &'static str,
    why: &str,
    advice: impl IntoView,
) -> AnyView {
    view! {
        <Title text=title />
        <h1>{title}</h1>
        <p class="text-muted wrap-anywhere">{effect}</p>
        <p class="wrap-anywhere">{why.to_owned()}</p>
        <p>{advice.into_view()}</p>
    }
    .into_any()
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

//! Pages that tell what is not there, or what went wrong.

use leptos::prelude::*;
use leptos_meta::Title;

use crate::api::Trouble;

/// What an address that leads nowhere says.
pub const NO_PAGE: &str = "No page has this address.";

/// An address that leads nowhere; or what became of a form that could not be answered otherwise.
#[component]
pub fn MissingPage() -> impl IntoView {
    match use_context::<Trouble>() {
        Some(why) => trouble(&why),
        None => missing(NO_PAGE),
    }
}

/// Instead of a page whose server function had nothing to show.
pub fn trouble(trouble: &Trouble) -> AnyView {
    match trouble {
        Trouble::Missing(what) => missing(what),
        Trouble::Forbidden(why) => view! {
            <Title text="Not allowed" />
            <h1>"Not allowed"</h1>
            <p class="lead">"Nothing has been changed."</p>
            <p class="reason">{why.clone()}</p>
            <p>
                "Who runs this server gives roles, with the key that you sign in with. " <a href="/ui">"To the overview"</a>
            </p>
        }
        .into_any(),
        Trouble::Request(why) => view! {
            <Title text="Not understood" />
            <h1>"Not understood"</h1>
            <p class="lead">"The form that came here is not complete, or one of its fields is malformed. Nothing has been changed."</p>
            <p class="reason">{why.clone()}</p>
            <p>
                "Go back and load its page again: it may be older than the server. " <a href="/ui">"To the overview"</a>
            </p>
        }
        .into_any(),
        Trouble::Unavailable(why) => view! {
            <Title text="Not available" />
            <h1>"Not available"</h1>
            <p class="lead">"The server could not put this page together. Nothing has been changed."</p>
            <p class="reason">{why.clone()}</p>
            <p>
                "It tries again when you " <a href="">"load the page again"</a>
                ". If this goes on, the server’s log and the disk under its database are the places to look."
            </p>
        }
        .into_any(),
    }
}

fn missing(what: &str) -> AnyView {
    view! {
        <Title text="Not found" />
        <h1>"Not found"</h1>
        <p class="lead">{what.to_owned()}</p>
        <p>
            "It may have been cancelled, or have been complete for so long that it was dropped. "
            <a href="/ui">"To the overview"</a>
        </p>
    }
    .into_any()
}

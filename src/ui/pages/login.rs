//! `/ui/login`: the sign-in form.

pub mod model;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::ui::components::basics::plural;
use crate::ui::components::forms::hidden;
use crate::ui::components::icons::icon;
use crate::ui::components::styles::{CARD_PADDED, FLASH};
use crate::ui::page_request::page_request;
use crate::ui::pages::login::model::SignInError;
use crate::ui::urls::LOGIN;

#[component]
pub fn LoginPage() -> impl IntoView {
    let refused = use_context::<SignInError>();
    let next = page_request().param("next").unwrap_or_default();
    let (name, why) = match refused {
        None => (String::new(), None),
        Some(SignInError::Wrong(name)) => (name, Some("Wrong name or key.".to_owned())),
        Some(SignInError::TooOften(seconds)) => {
            let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
            let wait = plural(seconds, "second", "seconds");
            (
                String::new(),
                Some(format!("Too many attempts. Try again in {wait}.")),
            )
        }
    };
    view! {
        <Title text="Sign in" />
        <section class=format!("{CARD_PADDED} mx-auto mt-[8vh] w-full max-w-100 [&_input]:w-full [&_label]:mt-3 [&_label]:mb-1 [&_label]:block [&_label]:font-semibold") aria-labelledby="sign-in">
            <h1 id="sign-in">"Sign in"</h1>
            {why
                .map(|why| {
                    view! { <p class=format!("{FLASH} text-failed") role="alert">{icon("failed")} <span>{why}</span></p> }
                })}
            <form method="post" action=LOGIN>
                {hidden(vec![("next", next)])}
                <label for="name">"Name"</label>
                <input
                    id="name"
                    name="name"
                    type="text"
                    value=name
                    maxlength="255"
                    autocomplete="username"
                    autocapitalize="none"
                    spellcheck="false"
                />
                <label for="key">"Key or password"</label>
                <input id="key" name="secret" type="password" required maxlength="1024" autocomplete="current-password" />
                <button type="submit" class="btn btn-strong">"Sign in"</button>
            </form>
        </section>
    }
}

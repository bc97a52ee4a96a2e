//! The shell of every page and the routes of `/ui`.

use leptos::prelude::*;
use leptos_meta::{MetaTags, Title, provide_meta_context};
use leptos_router::{
    SsrMode, StaticSegment,
    components::{Route, Router, Routes},
};

mod overview;

use overview::OverviewPage;

/// The document around every page.
pub fn shell(options: LeptosOptions) -> impl IntoView {
    let pkg = format!("/{}/{}", options.site_pkg_dir, options.output_name);
    view! {
        <!DOCTYPE html>
        <html lang="en">
            <head>
                <meta charset="utf-8" />
                <meta name="viewport" content="width=device-width, initial-scale=1" />
                <meta name="color-scheme" content="light dark" />
                <link rel="icon" href="/ui/favicon.svg" type="image/svg+xml" />
                <link rel="stylesheet" href=format!("{pkg}.css") />
                <HydrationScripts options islands=true />
                <MetaTags />
            </head>
            <body>
                <App />
            </body>
        </html>
    }
}

/// All pages. Each is complete as HTML (`SsrMode::Async`); only islands run in the browser.
/// Routes carry their full path: `<Router base>` would not prefix links.
#[component]
pub fn App() -> impl IntoView {
    provide_meta_context();
    view! {
        <Title formatter=|title: String| {
            if title.is_empty() { "Switchyard".to_owned() } else { format!("{title} · Switchyard") }
        } />
        <Router>
            <main>
                <Routes fallback=NotFoundPage>
                    <Route path=StaticSegment("ui") view=OverviewPage ssr=SsrMode::Async />
                </Routes>
            </main>
        </Router>
    }
}

#[component]
fn NotFoundPage() -> impl IntoView {
    view! {
        <Title text="Not found" />
        <h1>"Not found"</h1>
        <p><a href="/ui">"To the overview"</a></p>
    }
}

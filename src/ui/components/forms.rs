//! Forms: buttons, confirmations, hidden fields, keyboard shortcuts.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::ui::access::role_to_post;
use crate::ui::actions::jobs::DeleteJob;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::page_request::{PageRequest, page_request};

/// Whether whoever looks at the page may do what is posted to this path.
pub fn may(action: &str) -> bool {
    page_request().may(role_to_post(action))
}

/// What is there only for those who may do what is posted to this path.
pub fn allowed(action: &str, show: impl FnOnce() -> AnyView) -> AnyView {
    may(action).then(show).into_any()
}

/// A question before something is done. It opens above the page without any script.
pub struct Ask {
    /// Of this question on its page.
    pub id: String,
    /// On the button that opens it.
    pub button: String,
    pub danger: bool,
    pub title: String,
    pub text: String,
    pub action: &'static str,
    /// Sent with the form.
    pub fields: Vec<(&'static str, String)>,
    /// On the button that does it.
    pub yes: String,
    /// On the button that leaves everything as it is.
    pub no: &'static str,
}

/// The button, and the question behind it.
pub fn ask(ask: Ask) -> AnyView {
    ask_with(ask, ().into_any())
}

/// [`ask`] with fields to fill in.
pub fn ask_with(ask: Ask, inputs: AnyView) -> AnyView {
    allowed(ask.action, || asking(ask, inputs))
}

fn asking(ask: Ask, inputs: AnyView) -> AnyView {
    let Ask {
        id,
        button,
        danger,
        title,
        text,
        action,
        fields,
        yes,
        no,
    } = ask;
    let look = if danger { "button danger" } else { "button" };
    let title_id = format!("{id}-title");
    view! {
        <button type="button" class=look popovertarget=id.clone()>{button}</button>
        <div id=id class="ask" popover="auto" role="dialog" aria-labelledby=title_id>
            <h2 id=title_id.clone()>{title}</h2>
            <p>{text}</p>
            <form method="post" action=action>
                {hidden(fields)}
                {inputs}
                <div class="row">
                    <button type="submit" class=format!("{look} strong")>{yes}</button>
                    <button type="button" class="button" popovertarget=id.clone() popovertargetaction="hide">{no}</button>
                </div>
            </form>
        </div>
    }
    .into_any()
}

/// The question before a job of a queue is deleted, as its clients delete one; `text` says what that means, and
/// `after` is where one is then.
pub fn deleting(
    queue_ref: &QueueRef,
    id: &str,
    after: String,
    text: String,
    request: &PageRequest,
) -> AnyView {
    ask(Ask {
        id: "delete".to_owned(),
        button: "Delete…".to_owned(),
        danger: true,
        title: "Delete this job?".to_owned(),
        text,
        action: DeleteJob::PATH,
        fields: [
            queue_ref.fields(),
            vec![
                ("id", id.to_owned()),
                ("back", request.here()),
                ("after", after),
            ],
        ]
        .concat(),
        yes: "Delete job".to_owned(),
        no: "Keep job",
    })
}

/// Hidden fields of a form.
pub fn hidden(fields: Vec<(&'static str, String)>) -> AnyView {
    fields
        .into_iter()
        .map(|(name, value)| view! { <input type="hidden" name=name value=value /> })
        .collect_view()
        .into_any()
}

/// A button that does one thing at once.
pub fn deed(
    action: &'static str,
    fields: Vec<(&'static str, String)>,
    label: &'static str,
    about: String,
) -> AnyView {
    allowed(action, || {
        view! {
            <form method="post" action=action>
                {hidden(fields)}
                <button type="submit" class="button" aria-label=about>{label}</button>
            </form>
        }
        .into_any()
    })
}

/// What a key presses (`app/keys.rs`), and the palette offers: the first button or link in `what`. An empty key is for
/// the palette only.
pub fn hot(key: &'static str, what: AnyView) -> AnyView {
    view! { <span class="hot" data-hot=key>{what}</span> }.into_any()
}

/// Names of queues for a field whose `list` is `id`.
pub fn queue_names(id: &'static str, names: &[String]) -> AnyView {
    let names = names
        .iter()
        .map(|name| view! { <option value=name.clone()></option> });
    view! { <datalist id=id>{names.collect_view()}</datalist> }.into_any()
}

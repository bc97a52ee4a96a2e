//! Forms: buttons, confirmations, hidden fields, keyboard shortcuts.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::ui::access::role_to_post;
use crate::ui::actions::jobs::DeleteJob;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::page_request::{PageRequest, page_request};

/// Whether the user may post to this path.
pub fn may_post(action: &str) -> bool {
    page_request().may(role_to_post(action))
}

/// Shows a part of the page only to users who may post to this path.
pub fn allowed(action: &str, show: impl FnOnce() -> AnyView) -> AnyView {
    may_post(action).then(show).into_any()
}

/// A button with a confirmation dialog, which opens without JavaScript.
pub struct ConfirmDialog {
    /// The ID of the element.
    pub id: String,
    /// The label of the button that opens the dialog.
    pub button: String,
    pub danger: bool,
    pub title: String,
    pub text: String,
    pub action: &'static str,
    /// The hidden fields of the form.
    pub fields: Vec<(&'static str, String)>,
    /// The label of the button that confirms.
    pub confirm_label: String,
    /// The label of the button that cancels.
    pub cancel_label: &'static str,
}

/// The button and its dialog.
pub fn confirm_dialog(dialog: ConfirmDialog) -> AnyView {
    confirm_dialog_with(dialog, ().into_any())
}

/// Like [`confirm_dialog`], with input fields.
pub fn confirm_dialog_with(dialog: ConfirmDialog, inputs: AnyView) -> AnyView {
    allowed(dialog.action, || dialog_view(dialog, inputs))
}

fn dialog_view(dialog: ConfirmDialog, inputs: AnyView) -> AnyView {
    let ConfirmDialog {
        id,
        button,
        danger,
        title,
        text,
        action,
        fields,
        confirm_label,
        cancel_label,
    } = dialog;
    let class = if danger { "btn btn-danger" } else { "btn" };
    let title_id = format!("{id}-title");
    view! {
        <button type="button" class=class popovertarget=id.clone()>{button}</button>
        <div id=id class="dialog" popover="auto" role="dialog" aria-labelledby=title_id>
            <h2 id=title_id.clone()>{title}</h2>
            <p>{text}</p>
            <form method="post" action=action>
                {hidden(fields)}
                {inputs}
                <div>
                    <button type="submit" class=format!("{class} btn-strong")>{confirm_label}</button>
                    <button type="button" class="btn" popovertarget=id.clone() popovertargetaction="hide">{cancel_label}</button>
                </div>
            </form>
        </div>
    }
    .into_any()
}

/// The button that deletes a job, with a confirmation. `text` explains the effect, and `after` is the page to show
/// afterwards.
pub fn delete_dialog(
    queue_ref: &QueueRef,
    id: &str,
    after: String,
    text: String,
    request: &PageRequest,
) -> AnyView {
    confirm_dialog(ConfirmDialog {
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
        confirm_label: "Delete job".to_owned(),
        cancel_label: "Keep job",
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

/// A button that runs an action without confirmation.
pub fn action_button(
    action: &'static str,
    fields: Vec<(&'static str, String)>,
    label: &'static str,
    about: String,
) -> AnyView {
    allowed(action, || {
        view! {
            <form method="post" action=action>
                {hidden(fields)}
                <button type="submit" class="btn" aria-label=about>{label}</button>
            </form>
        }
        .into_any()
    })
}

/// The form of the buttons of all rows of a list ([`row_button`]): a form in each row would make the page much longer.
pub fn row_form(
    id: &'static str,
    action: &'static str,
    fields: Vec<(&'static str, String)>,
) -> AnyView {
    view! { <form id=id class="hidden" method="post" action=action>{hidden(fields)}</form> }
        .into_any()
}

/// A button of a row, which submits the form with the ID `form` and this field.
pub fn row_button(
    form: &'static str,
    (name, value): (&'static str, String),
    label: &'static str,
    about: String,
    key: Option<&'static str>,
) -> AnyView {
    view! { <button form=form name=name value=value class="btn" aria-label=about data-shortcut=key>{label}</button> }.into_any()
}

/// Adds a keyboard shortcut (`islands/keys.rs`) and a palette entry for the first button or link in `what`. If `key` is
/// empty, adds only the palette entry.
pub fn shortcut(key: &'static str, what: AnyView) -> AnyView {
    view! { <span class="contents" data-shortcut=key>{what}</span> }.into_any()
}

/// Suggested queue names (`<datalist>`) for a field whose `list` attribute is `id`.
pub fn queue_names(id: &'static str, names: &[String]) -> AnyView {
    let names = names
        .iter()
        .map(|name| view! { <option value=name.clone()></option> });
    view! { <datalist id=id>{names.collect_view()}</datalist> }.into_any()
}

/// A required field for the name of a queue, with suggestions.
pub fn queue_field(id: &'static str, name: &'static str, value: &str, names: &[String]) -> AnyView {
    view! {
        <div>
            <label for=id>"Queue"</label>
            <input
                id=id
                name=name
                type="text"
                value=value.to_owned()
                list="queue-names"
                required
                maxlength="255"
                autocomplete="off"
            />
            {queue_names("queue-names", names)}
        </div>
    }
    .into_any()
}

/// A required field for a number.
pub struct NumberField {
    pub id: String,
    pub name: &'static str,
    pub label: &'static str,
    pub value: String,
    /// Whether only whole numbers are accepted.
    pub whole: bool,
    pub min: Option<&'static str>,
}

pub fn number_field(field: NumberField) -> AnyView {
    view! {
        <div>
            <label for=field.id.clone()>{field.label}</label>
            <input
                id=field.id
                name=field.name
                type="number"
                step=(!field.whole).then_some("any")
                min=field.min
                value=field.value
                required
                autocomplete="off"
            />
        </div>
    }
    .into_any()
}

/// The units of a duration: length in seconds, and name.
const UNITS: [(&str, &str); 3] = [("60", "minutes"), ("3600", "hours"), ("86400", "days")];

/// The field for the unit of a duration.
pub fn unit_select() -> AnyView {
    let units = UNITS.map(|(seconds, word)| view! { <option value=seconds>{word}</option> });
    view! { <select name="unit" class="shrink-0" aria-label="Unit">{units.collect_view()}</select> }
        .into_any()
}

//! `/ui/config`: the options in force, what they mean, and how to change them.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::time;
use crate::ui::access::role_to_read;
use crate::ui::actions::options::{SetOption, SetQueueOption, UnsetOption};
use crate::ui::components::basics::{element_id, empty_note, loaded, number_of, plural};
use crate::ui::components::commands::{api, curl_commands, shell_quote};
use crate::ui::components::forms::{action_button, allowed, hidden, may_post, queue_field};
use crate::ui::components::links::queue_link;
use crate::ui::components::styles::{CARD, CARD_TITLE, FACTS, FIELDS, OPTIONS};
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::options::{OptionDescription, Unit, of_queue, of_server, split_queue_option};
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::config::model::{ConfigView, Setting};
use crate::ui::urls;

/// Maximum number of options of queues, and of other options, on the page. Clients can set 10,000.
const OPTIONS_SHOWN: usize = 200;

/// Maximum number of characters of a value on the page.
const VALUE_CHARS_SHOWN: usize = 200;

#[component]
pub fn ConfigPage() -> impl IntoView {
    let request = page_request();
    loaded(load::config(), move |view| page(&view, &request))
}

fn page(view: &ConfigView, request: &PageRequest) -> AnyView {
    let changed = view.of_server.iter().filter(|row| row.is_changed()).count();
    let lead = match changed {
        0 => "All server options have their default values.".to_owned(),
        1 => "1 server option differs from its default.".to_owned(),
        n => format!("{n} server options differ from their defaults."),
    };
    let rows = view
        .of_server
        .iter()
        .map(|setting| row(setting, of_server(&setting.option), None, request));
    view! {
        <Title text="Configuration" />
        <h1>"Configuration"</h1>
        <p class="text-muted wrap-anywhere">
            {lead}
            {request.may(role_to_read(urls::ALERTS)).then(|| view! { " " <a href=urls::ALERTS>"Alerts"</a> " call webhooks when problems begin and end." })}
        </p>
        <section class=CARD aria-labelledby="of-server">
            <div class=CARD_TITLE>
                <h2 id="of-server">"Server options"</h2>
            </div>
            <ul class=OPTIONS>{rows.collect_view()}</ul>
        </section>
        {of_queues(view, request)}
        {others(view, request)}
        {curl(request)}
    }
    .into_any()
}

/// The options of queues; only those of one queue if the address names it.
fn of_queues(view: &ConfigView, request: &PageRequest) -> AnyView {
    let only = request.param("queue").filter(|queue| !queue.is_empty());
    let settings: Vec<_> = view
        .of_queues
        .iter()
        .filter_map(|setting| Some((setting, split_queue_option(&setting.option)?)))
        .filter(|(_, (queue, _))| only.as_ref().is_none_or(|only| only == queue))
        .collect();
    let list = if settings.is_empty() {
        let what = match &only {
            Some(queue) => {
                format!("No options are set for queue “{queue}”. It uses the server options.")
            }
            None => "No queue options are set. All queues use the server options.".to_owned(),
        };
        empty_note(what)
    } else {
        let all = settings.len();
        let rows =
            settings
                .into_iter()
                .take(OPTIONS_SHOWN)
                .map(|(setting, (queue, description))| {
                    row(setting, Some(description), Some(queue), request)
                });
        view! { <ul class=OPTIONS>{rows.collect_view()}</ul> {left_out(all)} }.into_any()
    };
    view! {
        <section class=CARD aria-labelledby="of-queues">
            <div class=CARD_TITLE>
                <h2 id="of-queues">{match &only {
                    Some(queue) => format!("Queue “{queue}”"),
                    None => "Queue options".to_owned(),
                }}</h2>
                {only.is_some().then(|| view! { <a class="text-sm" href="/ui/config#of-queues">"All queues"</a> })}
            </div>
            {list}
            {queue_form(view, only.as_deref().unwrap_or_default(), request)}
        </section>
    }
    .into_any()
}

/// The note that a list does not show all its options.
fn left_out(all: usize) -> Option<AnyView> {
    (all > OPTIONS_SHOWN).then(|| {
        let all = time::number(number_of(all));
        let note = format!("Showing {OPTIONS_SHOWN} of {all} options. The API lists all of them.");
        view! { <p class="border-t border-line px-4 py-3 text-muted">{note}</p> }.into_any()
    })
}

fn queue_form(view: &ConfigView, queue: &str, request: &PageRequest) -> AnyView {
    if !may_post(SetQueueOption::PATH) {
        return ().into_any();
    }
    let kinds: Vec<OptionDescription> = view
        .kinds
        .iter()
        .filter_map(|kind| of_queue(kind))
        .collect();
    let choices = kinds.iter().map(|kind| {
        view! { <option value=kind.name>{format!("{} ({})", kind.name, kind.unit.word())}</option> }
    });
    let meanings = kinds
        .iter()
        .map(|kind| view! { <div><dt><code>{kind.name}</code></dt> <dd>{kind.about}</dd></div> });
    view! {
        <div class="border-t border-line px-4 pt-3 pb-4">
            <h3 class="font-medium">"Set an option for one queue"</h3>
            <form method="post" action=SetQueueOption::PATH class=FIELDS>
                {hidden(vec![("back", request.here())])}
                {queue_field("new-queue", "queue", queue, &view.queues)}
                <div>
                    <label for="new-option">"Option"</label>
                    <select id="new-option" name="option">{choices.collect_view()}</select>
                </div>
                <div>
                    <label for="new-value">"Value"</label>
                    <input id="new-value" name="value" type="number" step="any" required autocomplete="off" />
                </div>
                <button type="submit" class="btn btn-strong">"Set queue option"</button>
            </form>
            <dl class=format!("{FACTS} mt-3 max-w-200")>{meanings.collect_view()}</dl>
        </div>
    }
    .into_any()
}

/// Options that the server does not use.
fn others(view: &ConfigView, request: &PageRequest) -> AnyView {
    let rows = (view.others.iter())
        .map(|setting| row(setting, None, None, request))
        .collect_view();
    view! {
        <section class=CARD aria-labelledby="others">
            <div class=CARD_TITLE>
                <h2 id="others">"Other options"</h2>
            </div>
            {if view.others.is_empty() {
                empty_note("No other options are set. Clients can store their own options here; the server returns them unchanged.")
            } else {
                view! { <ul class=OPTIONS>{rows}</ul> {left_out(view.others_total)} }.into_any()
            }}
            {allowed(SetOption::PATH, || other_form(request))}
        </section>
    }
    .into_any()
}

fn other_form(request: &PageRequest) -> AnyView {
    view! {
        <details class="border-t border-line px-4 pt-3 pb-4">
            <summary>"Set another option"</summary>
            <form method="post" action=SetOption::PATH class=FIELDS>
                {hidden(vec![("back", request.here())])}
                <div>
                    <label for="other-option">"Name"</label>
                    <input id="other-option" name="option" type="text" required maxlength="255" autocomplete="off" />
                </div>
                <div>
                    <label for="other-value">"Value (JSON or text)"</label>
                    <input id="other-value" name="value" type="text" required maxlength="4000" autocomplete="off" />
                </div>
                <button type="submit" class="btn btn-strong">"Set option"</button>
            </form>
        </details>
    }
    .into_any()
}

/// An option: its description, value and actions.
fn row(
    setting: &Setting,
    description: Option<OptionDescription>,
    queue: Option<&str>,
    request: &PageRequest,
) -> AnyView {
    let unit = description.map(|description| description.unit);
    let about = description.map(|description| description.about);
    let (value, readable) = value_text(&setting.value, unit);
    let changed = setting.is_changed();
    let origin = match &setting.default {
        Some(default) if changed => format!("default: {}", value_text(default, unit).0),
        Some(_) => "default".to_owned(),
        None => String::new(),
    };
    let unset = changed.then(|| {
        let (label, about) = match setting.default {
            Some(_) => ("Reset", format!("Reset {} to its default", setting.option)),
            None => ("Remove", format!("Remove {}", setting.option)),
        };
        let fields = vec![("option", setting.option.clone()), ("back", request.here())];
        action_button(UnsetOption::PATH, fields, label, about)
    });
    view! {
        <li data-key=setting.option.clone()>
            <div>
                <h3>
                    <code>{setting.option.clone()}</code>
                    {(changed && setting.default.is_some()).then(|| view! { <span class="tag ml-2 border-current text-accent">"set"</span> })}
                </h3>
                <p class="text-muted wrap-anywhere">{queue.map(|queue| view! { {queue_link(&QueueRef::qless(queue))} ": " })} {about}</p>
            </div>
            <div class="wrap-anywhere">
                <p>
                    <strong class="font-semibold">{value}</strong> {readable.map(|readable| view! { <span class="text-muted wrap-anywhere">{format!(" = {readable}")}</span> })}
                </p>
                <p class="text-muted wrap-anywhere">{origin}</p>
            </div>
            <div class="flex flex-wrap items-center gap-2">{change(setting, description, request)} {unset}</div>
        </li>
    }
    .into_any()
}

/// The button that opens the form for a new value.
fn change(
    setting: &Setting,
    description: Option<OptionDescription>,
    request: &PageRequest,
) -> AnyView {
    if !may_post(SetOption::PATH) {
        return ().into_any();
    }
    let option = &setting.option;
    let id = element_id("set-", option);
    let (title_id, input_id) = (format!("{id}-title"), format!("{id}-value"));
    let unit = description.map(|description| description.unit);
    let number = description.is_some_and(|description| description.unit != Unit::Text);
    let label = match description {
        Some(description) if number => format!("Value ({})", description.unit.word()),
        _ => "Value (JSON or text)".to_owned(),
    };
    let default = setting
        .default
        .as_ref()
        .map(|default| format!(" The default is {}.", value_text(default, unit).0));
    view! {
        <button type="button" class="btn" popovertarget=id.clone() aria-label=format!("Change {option}")>"Change…"</button>
        <div id=id.clone() class="dialog" popover="auto" role="dialog" aria-labelledby=title_id>
            <h2 id=title_id.clone()>"Change " <code>{option.clone()}</code></h2>
            {description.map(|description| view! { <p>{description.about} {default}</p> <p>{description.effect}</p> })}
            <form method="post" action=SetOption::PATH>
                {hidden(vec![("option", option.clone()), ("back", request.here())])}
                <label for=input_id.clone()>{label}</label>
                <input
                    id=input_id
                    name="value"
                    type=if number { "number" } else { "text" }
                    step=number.then_some("any")
                    value=beginning(&setting.value).is_none().then(|| setting.value.clone())
                    required
                    autocomplete="off"
                />
                <div>
                    <button type="submit" class="btn btn-strong">"Set"</button>
                    <button type="button" class="btn" popovertarget=id.clone() popovertargetaction="hide">"Close"</button>
                </div>
            </form>
        </div>
    }
    .into_any()
}

/// A value with its unit, and in larger units.
fn value_text(value: &str, unit: Option<Unit>) -> (String, Option<String>) {
    let number = value.parse::<f64>().ok();
    let whole = value.parse::<i64>().ok();
    match (unit, number, whole) {
        (Some(Unit::Seconds), Some(seconds), _) => {
            let plain = whole.map_or(value.to_owned(), time::number);
            (
                format!("{plain} s"),
                (seconds >= 60.0).then(|| time::seconds(seconds)),
            )
        }
        (Some(Unit::Days), _, Some(n)) => (plural(n, "day", "days"), None),
        (Some(Unit::Jobs), _, Some(n)) => (plural(n, "job", "jobs"), None),
        (Some(Unit::Entries), _, Some(n)) => (plural(n, "entry", "entries"), None),
        _ => (beginning(value).unwrap_or_else(|| value.to_owned()), None),
    }
}

/// The beginning of a value; `None` if the page shows all of it.
fn beginning(value: &str) -> Option<String> {
    let (end, _) = value.char_indices().nth(VALUE_CHARS_SHOWN)?;
    Some(format!("{}…", value.get(..end).unwrap_or_default()))
}

fn curl(request: &PageRequest) -> AnyView {
    let line = |rest: &str, path: &str| format!("curl {rest}{}", shell_quote(&api(request, path)));
    curl_commands(vec![
        ("All options", line("", "/config")),
        (
            "Set an option",
            format!(
                "{} -d {}",
                line("-X PUT ", "/config/heartbeat"),
                shell_quote(r#"{"data": 300}"#)
            ),
        ),
        (
            "Reset an option to its default",
            line("-X DELETE ", "/config/heartbeat"),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::options::Unit;

    #[test]
    fn values_have_their_units() {
        let plain = |value, unit| value_text(value, Some(unit)).0;
        assert_eq!(
            value_text("604800", Some(Unit::Seconds)),
            ("604,800 s".to_owned(), Some("7 d".to_owned()))
        );
        assert_eq!(
            value_text("1.5", Some(Unit::Seconds)),
            ("1.5 s".to_owned(), None)
        );
        assert_eq!(plain("1", Unit::Days), "1 day");
        assert_eq!(plain("50000", Unit::Jobs), "50,000 jobs");
        assert_eq!(plain("\"qless\"", Unit::Text), "\"qless\"");
        assert_eq!(value_text("[1]", None).0, "[1]");
        for (chars, is_whole) in [(199, true), (200, true), (201, false)] {
            let value = "é".repeat(chars);
            let shown = value_text(&value, None).0;
            assert_eq!(shown == value, is_whole, "{chars} characters");
            assert_eq!(shown.chars().count(), chars.min(201));
        }
    }
}

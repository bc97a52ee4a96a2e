//! `/ui/alerts`: the rules that call webhooks, and what was sent.

pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use crate::time;
use crate::ui::actions::alerts::{CreateAlert, DeleteAlert, TestAlert};
use crate::ui::components::basics::{element_id, empty_note, loaded, number_of};
use crate::ui::components::forms::{ConfirmDialog, action_button, confirm_dialog, hidden};
use crate::ui::components::icons::icon;
use crate::ui::components::styles::{
    CARD, CARD_PADDED, CARD_TITLE, CRUMB, FIELDS, NOTICE, PAYLOAD,
};
use crate::ui::components::tables;
use crate::ui::components::time::{ago, exact};
use crate::ui::model::problem::ProblemKind;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::alerts::model::{AlertsView, DeliveryRow, ReportedRow, RuleRow};

#[component]
pub fn AlertsPage() -> impl IntoView {
    let request = page_request();
    loaded(load::alerts(), move |view| page(&view, &request))
}

fn page(view: &AlertsView, request: &PageRequest) -> AnyView {
    view! {
        <Title text="Alerts" />
        <p class=CRUMB><a href="/ui/config">"Configuration"</a></p>
        <h1>"Alerts"</h1>
        <p class="text-muted wrap-anywhere">
            "An alert rule posts to a webhook when a problem on the overview begins and when it ends. Of the servers that share a database, only the leader sends alerts."
        </p>
        {(!view.is_on).then(off_notice)}
        {rules(&view.rules, request)}
        {form(request)}
        {reported(view, request.now)}
        {deliveries(&view.deliveries, request.now)}
        {verification()}
    }
    .into_any()
}

fn off_notice() -> AnyView {
    view! {
        <p class=format!("{NOTICE} text-stalled")>
            {icon("stalled")}
            <span>"This server sends no alerts. To send them, start it with " <code>"--alert-secret-file"</code> " and a file that contains the signing secret."</span>
        </p>
    }
    .into_any()
}

fn rules(rules: &[RuleRow], request: &PageRequest) -> AnyView {
    let columns = [
        ("Name", ""),
        ("Webhook", ""),
        ("Problems", "mid"),
        ("Delay", "num mid"),
        ("Open", "num"),
        ("Action", "w-[1%] text-right"),
    ];
    let rows = rules.iter().map(|rule| rule_row(rule, request));
    view! {
        <section class=CARD aria-labelledby="rules">
            <div class=CARD_TITLE><h2 id="rules">"Rules"</h2></div>
            {if rules.is_empty() {
                empty_note("No alert rules yet. Create one below.")
            } else {
                tables::table("Alert rules", tables::head(&columns), rows.collect_view().into_any())
            }}
        </section>
    }
    .into_any()
}

fn rule_row(rule: &RuleRow, request: &PageRequest) -> AnyView {
    let kinds = if rule.has_all_kinds {
        "All".to_owned()
    } else {
        rule.kinds.join(", ")
    };
    let fields = vec![("name", rule.name.clone()), ("back", request.here())];
    let reported = number_of(rule.reported);
    view! {
        <tr data-key=rule.name.clone()>
            <th scope="row" class="text-cell">
                <span class="name">{rule.name.clone()}</span>
                <span class="block text-xs leading-4 font-normal text-muted wrap-anywhere">"by " {rule.who.clone()} " " {ago(rule.created, request.now)}</span>
            </th>
            <td class="text-cell max-sm:min-w-24"><code class="wrap-anywhere">{rule.webhook.clone()}</code></td>
            <td class="text-cell mid">{kinds}</td>
            <td class="num mid">{after(rule.after_s)}</td>
            <td class="num">{time::number(reported)}</td>
            <td class="w-[1%] text-right whitespace-nowrap max-sm:whitespace-normal [&_form]:inline-block">
                {action_button(TestAlert::PATH, fields.clone(), "Send a test", format!("Send a test to {}", rule.name))} " "
                {delete(rule, fields)}
            </td>
        </tr>
    }
    .into_any()
}

/// How long a problem must last before it is reported.
fn after(seconds: i64) -> String {
    match seconds {
        ..=0 => "none".to_owned(),
        seconds => time::span(seconds.saturating_mul(1_000_000)),
    }
}

fn delete(rule: &RuleRow, fields: Vec<(&'static str, String)>) -> AnyView {
    confirm_dialog(ConfirmDialog {
        id: element_id("delete-", &rule.name),
        button: "Delete…".to_owned(),
        danger: true,
        title: "Delete this rule?".to_owned(),
        text: format!(
            "“{}” stops at once. Undelivered alerts are dropped, and no alert reports the end of problems that are open.",
            rule.name
        ),
        action: DeleteAlert::PATH,
        fields,
        confirm_label: "Delete rule".to_owned(),
        cancel_label: "Keep rule",
    })
}

fn form(request: &PageRequest) -> AnyView {
    let kinds = ProblemKind::ALL.map(|kind| {
        view! {
            <label class="inline-flex min-h-6 items-center gap-1.5">
                <input type="checkbox" name="kinds[]" value=kind.as_str() />
                {kind.label()}
            </label>
        }
    });
    view! {
        <section class=CARD_PADDED aria-labelledby="new-alert">
            <h2 id="new-alert">"Create rule"</h2>
            <form method="post" action=CreateAlert::PATH>
                {hidden(vec![("back", request.here())])}
                <div class=FIELDS>
                    <div>
                        <label for="alert-name">"Name"</label>
                        <input id="alert-name" name="name" type="text" required maxlength="80" autocomplete="off" />
                    </div>
                    <div class="flex-[1_1_320px] [&_input]:w-full">
                        <label for="alert-url">"Address of the webhook (http or https)"</label>
                        <input id="alert-url" name="url" type="url" required maxlength="1000" autocomplete="off" />
                    </div>
                    <div>
                        <label for="alert-delay">"Delay: seconds that a problem must last"</label>
                        <input id="alert-delay" name="delay" type="number" min="0" max="86400" value="60" required />
                    </div>
                </div>
                <fieldset class="mt-3 flex flex-wrap gap-x-4 gap-y-1">
                    <legend class="mb-1 text-sm text-muted">"Problems (all, if none is selected)"</legend>
                    {kinds.collect_view()}
                </fieldset>
                <p class="mt-3"><button type="submit" class="btn btn-strong">"Create rule"</button></p>
            </form>
        </section>
    }
    .into_any()
}

fn reported(view: &AlertsView, now: i64) -> AnyView {
    let columns = [("Problem", ""), ("Rule", "mid"), ("Reported", "num")];
    let rows = view.reported.iter().map(|row: &ReportedRow| {
        view! {
            <tr data-key=row.id.clone()>
                <th scope="row" class="text-cell"><a class="name" href=row.address.clone()>{row.text.clone()}</a></th>
                <td class="text-cell mid">{row.rule.clone()}</td>
                <td class="num">{ago(row.since, now)}</td>
            </tr>
        }
    });
    let total = number_of(view.reported_total);
    view! {
        <section class=CARD aria-labelledby="reported">
            <div class=CARD_TITLE>
                <h2 id="reported">"Reported problems"</h2>
                <span class="text-muted">{format!("{} open", time::number(total))}</span>
            </div>
            {if view.reported.is_empty() {
                empty_note("No open problems. A reported problem is listed here until it ends.")
            } else {
                tables::table("Reported problems", tables::head(&columns), rows.collect_view().into_any())
            }}
        </section>
    }
    .into_any()
}

fn deliveries(deliveries: &[DeliveryRow], now: i64) -> AnyView {
    let columns = [
        ("Time", ""),
        ("Rule", "mid"),
        ("Event", ""),
        ("Attempts", "num mid"),
        ("Result", ""),
    ];
    let rows = deliveries.iter().map(|row| delivery(row, now));
    view! {
        <section class=CARD aria-labelledby="deliveries">
            <div class=CARD_TITLE>
                <h2 id="deliveries">"Last deliveries"</h2>
                <span class="text-muted">"the newest 50"</span>
            </div>
            {if deliveries.is_empty() {
                empty_note("Nothing has been sent yet.")
            } else {
                tables::table("Last deliveries", tables::head(&columns), rows.collect_view().into_any())
            }}
        </section>
    }
    .into_any()
}

fn delivery(row: &DeliveryRow, now: i64) -> AnyView {
    let (class, shape, word) = match (row.is_delivered, row.next) {
        (true, _) => ("chip text-complete", "complete", "delivered"),
        (false, Some(_)) if row.attempts == 0 => ("chip text-waiting", "waiting", "queued"),
        (false, Some(_)) => ("chip text-waiting", "waiting", "retrying"),
        (false, None) => ("chip text-failed", "failed", "given up"),
    };
    let next = row.next.filter(|_| row.attempts > 0);
    view! {
        <tr data-key=row.id.clone()>
            <th scope="row">{exact(row.created)}</th>
            <td class="text-cell mid">{row.rule.clone()}</td>
            <td class="text-cell max-sm:min-w-24">
                {row.event.clone()} <span class="block text-xs leading-4 text-muted wrap-anywhere">{row.text.clone()}</span>
            </td>
            <td class="num mid">{time::number(row.attempts)}</td>
            <td class="text-cell max-sm:min-w-24">
                <span class=class>{icon(shape)} {word}</span>
                <span class="block text-xs leading-4 text-muted wrap-anywhere">
                    {row.outcome.clone()} {next.map(|next| view! { " · next attempt " {ago(next, now)} })}
                </span>
            </td>
        </tr>
    }
    .into_any()
}

/// How a receiver checks a body.
const VERIFY: &str = "import hashlib, hmac

def is_genuine(secret: bytes, body: bytes, header: str) -> bool:
    # header: the value of Switchyard-Signature
    expected = 'sha256=' + hmac.new(secret, body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, header)";

fn verification() -> AnyView {
    view! {
        <section class=CARD_PADDED aria-labelledby="verify">
            <h2 id="verify">"Verify an alert"</h2>
            <p class="mb-2">
                "The header " <code>"Switchyard-Signature"</code> " is " <code>"sha256="</code> " followed by the HMAC-SHA256 of the body with the secret, in hexadecimal. The field " <code>"sent_at"</code> " of the body is the time of the attempt: reject bodies whose time is more than five minutes from your clock. If you have already processed the " <code>"id"</code> ", ignore the body, but respond with 2xx."
            </p>
            <pre class=PAYLOAD tabindex="0">{VERIFY}</pre>
        </section>
    }
    .into_any()
}

//! `/ui/audit`: the audit log.

pub mod export;
pub mod load;
pub mod model;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::time;
use crate::ui::components::basics::{empty_note, loaded, number_of};
use crate::ui::components::icons::icon;
use crate::ui::components::styles::{CARD, EMPTY, FIELDS};
use crate::ui::components::tables;
use crate::ui::components::time::exact;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::audit::model::{AuditQuery, AuditRow, AuditView, ChangeKind, ChangedItem};
use crate::ui::urls::encoding::encode;

/// Maximum number of changed items that an entry shows without expanding.
const ITEMS_SHOWN: usize = 3;

#[component]
pub fn AuditPage() -> impl IntoView {
    let request = page_request();
    let query = AuditQuery::of(|name| request.param(name).unwrap_or_default());
    loaded(load::audit(query.clone()), move |view| {
        page(&view, &query, &request)
    })
}

fn page(view: &AuditView, query: &AuditQuery, request: &PageRequest) -> AnyView {
    let (least, days) = view.days;
    let is_filtered = query.filters().iter().any(|(_, value)| !value.is_empty());
    let list = if let Some(why) = &view.filter_error {
        view! { <p class="px-4 py-5 text-failed">{icon("failed")} " " {why.clone()} "."</p> }
            .into_any()
    } else if !view.rows.is_empty() {
        table(&view.rows)
    } else if is_filtered || !query.after.is_empty() {
        view! { <p class=EMPTY>"No matching entries. " <a href="/ui/audit">"Show all"</a></p> }
            .into_any()
    } else {
        empty_note(
            "No entries yet. Actions taken in the dashboard, or with commands that use it, appear here. Requests to the APIs do not.",
        )
    };
    view! {
        <Title text="Audit" />
        <h1>"Audit"</h1>
        <p class="text-muted wrap-anywhere">
            {format!(
                "Actions taken in the dashboard, or with commands that use it, newest first. Entries are kept for up to {days} days: about {} with changes, and as many without. All changes made by users are kept for at least {least} days.",
                time::number(view.entries_max),
            )}
        </p>
        {filter(view, query)}
        <section class=format!("{CARD} [&_th_time]:whitespace-nowrap")>{list}</section>
        {pager(view, query)}
        {(!view.rows.is_empty()).then(|| export(query, request))}
    }
    .into_any()
}

fn choice(name: &'static str, label: &'static str, all: &[String], chosen: &str) -> AnyView {
    // Keeps the selected value even if it is unknown.
    let is_unknown = !chosen.is_empty() && !all.iter().any(|it| it == chosen);
    let unknown = is_unknown.then(|| chosen.to_owned());
    let options = unknown.iter().chain(all).map(|value| {
        view! { <option value=value.clone() selected=value == chosen>{value.clone()}</option> }
    });
    view! {
        <div>
            <label for=name>{label}</label>
            <select id=name name=name>
                <option value="">"all"</option>
                {options.collect_view()}
            </select>
        </div>
    }
    .into_any()
}

fn filter(view: &AuditView, query: &AuditQuery) -> AnyView {
    let moment = |name: &'static str, label: &'static str, value: &str| {
        view! {
            <div>
                <label for=name>{label}</label>
                <input id=name name=name type="datetime-local" value=value.to_owned() />
            </div>
        }
    };
    view! {
        <form method="get" action="/ui/audit" role="search" class=FIELDS>
            {choice("who", "User", &view.users, &query.user)}
            {choice("action", "Action", &view.actions, &query.action)}
            <div class="flex-[1_1_240px] [&_input]:w-full">
                <label for="target">"Target contains"</label>
                <input id="target" name="target" type="search" value=query.target.clone() maxlength="255" autocomplete="off" />
            </div>
            {moment("from", "From (UTC)", &query.from)}
            {moment("until", "Until (UTC)", &query.until)}
            <button type="submit" class="btn">"Filter"</button>
        </form>
    }
    .into_any()
}

/// The address with these filters.
fn address(path: &str, query: &AuditQuery, after: Option<&str>) -> String {
    let mut address = path.to_owned();
    let after = after.map(|after| ("after", after));
    let mut mark = '?';
    for (name, value) in query.filters().into_iter().chain(after) {
        if !value.is_empty() {
            address.push(mark);
            address.push_str(name);
            address.push('=');
            encode(value, &mut address);
            mark = '&';
        }
    }
    address
}

fn pager(view: &AuditView, query: &AuditQuery) -> AnyView {
    let is_first = query.after.is_empty();
    if is_first && view.next.is_none() {
        return ().into_any();
    }
    let next = view.next.as_deref();
    let next = next.map(|after| address("/ui/audit", query, Some(after)));
    view! {
        <nav class="flex items-center gap-3 text-muted" aria-label="Pagination">
            {(!is_first).then(|| view! { <a class="btn" href=address("/ui/audit", query, None)>"Newest"</a> })}
            {next.map(|next| view! { <a class="btn" rel="next" href=next>"Older"</a> })}
        </nav>
    }
    .into_any()
}

fn export(query: &AuditQuery, request: &PageRequest) -> AnyView {
    let link = |kind: &str| address(&format!("{}.{kind}", request.path), query, None);
    view! {
        <p class="flex flex-wrap items-center gap-2">
            <a class="btn" href=link("csv") download="">"Download as CSV"</a>
            <a class="btn" href=link("json") download="">"Download as JSON"</a>
            <span class="text-muted wrap-anywhere">"filtered entries, newest 10,000 at most"</span>
        </p>
    }
    .into_any()
}

fn table(rows: &[AuditRow]) -> AnyView {
    let columns = [
        ("Time", ""),
        ("User", ""),
        ("Action", ""),
        ("Target", ""),
        ("Before → after", ""),
        ("Outcome", ""),
        ("Request", "wide"),
    ];
    let rows = rows.iter().map(row);
    tables::table(
        "Audit entries",
        tables::head(&columns),
        rows.collect_view().into_any(),
    )
}

fn row(row: &AuditRow) -> AnyView {
    let target = if row.link.is_empty() {
        row.target.clone().into_any()
    } else {
        view! { <a class="name" href=row.link.clone()>{row.target.clone()}</a> }.into_any()
    };
    let (class, shape, word) = if row.done {
        ("chip text-complete", "complete", "done")
    } else {
        ("chip text-failed", "failed", "refused")
    };
    view! {
        <tr data-key=row.id.clone()>
            <th scope="row">{exact(row.at)}</th>
            <td class="text-cell"><span class="name">{row.user.clone()}</span> <span class="block text-xs leading-4 text-muted wrap-anywhere">{row.role.clone()}</span></td>
            <td class="text-cell"><code>{row.action.clone()}</code></td>
            <td class="text-cell">{target}</td>
            <td class="text-cell">{changes(row)}</td>
            <td class="text-cell"><span class=class>{icon(shape)} {word}</span> <span class="block text-xs leading-4 text-muted wrap-anywhere">{row.message.clone()}</span></td>
            <td class="text-cell wide"><code class="id">{row.request_id.clone()}</code> <span class="block text-xs leading-4 text-muted wrap-anywhere">{row.source.clone()}</span></td>
        </tr>
    }
    .into_any()
}

fn changes(row: &AuditRow) -> AnyView {
    if row.changes.is_empty() {
        return view! { <span class="text-muted wrap-anywhere">"no change"</span> }.into_any();
    }
    let shown = row.changes.iter().take(ITEMS_SHOWN).map(changed_item);
    let hidden = row.changes.get(ITEMS_SHOWN..).unwrap_or_default();
    let known = number_of(row.changes.len());
    // Bulk deletions are stored as one item with a count.
    let is_counted = row
        .changes
        .iter()
        .any(|changed_item| changed_item.kind == ChangeKind::Gone && changed_item.facts.is_empty());
    let unknown = row.items - known;
    view! {
        <ul class="flex flex-col gap-1.5">{shown.collect_view()}</ul>
        {(!hidden.is_empty())
            .then(|| {
                let n = number_of(hidden.len());
                view! {
                    <details>
                        <summary>{format!("{n} more")}</summary>
                        <ul class="flex flex-col gap-1.5">{hidden.iter().map(changed_item).collect_view()}</ul>
                    </details>
                }
            })}
        {(unknown > 0 && !is_counted)
            .then(|| view! { <span class="text-muted wrap-anywhere">{format!("and {} more, not listed", time::number(unknown))}</span> })}
    }
    .into_any()
}

fn changed_item(changed_item: &ChangedItem) -> AnyView {
    let kind = match changed_item.kind {
        ChangeKind::New => " · new",
        ChangeKind::Gone => " · deleted",
        ChangeKind::Stays if changed_item.facts.is_empty() => " · no recorded field changed",
        ChangeKind::Stays => "",
    };
    let facts = changed_item.facts.iter().map(|fact| {
        let change = match changed_item.kind {
            ChangeKind::New => fact.after.clone(),
            ChangeKind::Gone => fact.before.clone(),
            ChangeKind::Stays => format!("{} → {}", fact.before, fact.after),
        };
        view! { <span class="block text-xs leading-4 text-muted wrap-anywhere">{fact.name.clone()} ": " {change}</span> }
    });
    view! { <li><span class="name">{changed_item.name.clone()}</span> {kind} {facts.collect_view()}</li> }
        .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::pages::audit::model::AuditQuery;

    #[test]
    fn an_address_keeps_the_filter() {
        let query = AuditQuery {
            user: "ada".to_owned(),
            target: "a b&c".to_owned(),
            ..AuditQuery::default()
        };
        let next = address("/ui/audit", &query, Some("7-x"));
        assert_eq!(next, "/ui/audit?who=ada&target=a%20b%26c&after=7-x");
        assert_eq!(
            address("/ui/audit.csv", &AuditQuery::default(), None),
            "/ui/audit.csv"
        );
    }
}

//! Loads a Jobq queue and its records.

use leptos::prelude::*;
use serde_json::value::RawValue;

use crate::auth::Role;
use crate::engine::{Engine, Error, LabelCounts, LabelFilter, PageStart, Queue, Record, Result};
use crate::query::{self, Malformed, NO_STATE, Query};
use crate::ui::context::{read_or_missing, sentence};
use crate::ui::error::PageError;
use crate::ui::model::PAGE_ROWS;
use crate::ui::model::paging::PagePlace;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::pages::records::model::{
    QueryPosition, RecordFilter, RecordList, RecordRow, RecordView, RecordsView, RefusedQuery,
    StateRow,
};
use crate::ui::present::paging::{neighbors, place};
use crate::ui::present::queue_refs::queue_ref;
use crate::ui::present::{entry, preview};

/// Maximum number of results of a query.
pub const FOUND_MAX: usize = 100;

/// A Jobq queue, and a page of its records.
#[server]
pub async fn records(
    queue_ref: QueueRef,
    filter: RecordFilter,
    #[server(default)] page: PagePlace,
) -> Result<RecordsView, PageError> {
    read_or_missing(
        Role::Viewer,
        async |context| load_records(&context.engine, &queue_ref, &filter, place(&page)).await,
        || {
            let queue = queue_ref.label();
            format!("Jobq queue “{queue}” not found. It was deleted or never created.")
        },
    )
    .await
}

/// A Jobq record.
#[server(name = LoadRecord)]
pub async fn record(queue_ref: QueueRef, id: String) -> Result<RecordView, PageError> {
    read_or_missing(
        Role::Viewer,
        async |context| load_record(&context.engine, &queue_ref, &id).await,
        || {
            let queue = queue_ref.label();
            format!("Job “{id}” not found in {queue}. It was deleted or never existed.")
        },
    )
    .await
}

/// Maximum number of log entries on a page.
const LOG_SHOWN: usize = 200;

/// The queue and a page of its records; `None` if the queue does not exist.
pub async fn load_records(
    engine: &Engine,
    queue: &QueueRef,
    filter: &RecordFilter,
    page: PageStart,
) -> Result<Option<RecordsView>> {
    found(of_queue(engine, queue, filter, page).await)
}

/// The record and its log; `None` if it does not exist.
pub async fn load_record(
    engine: &Engine,
    queue: &QueueRef,
    id: &str,
) -> Result<Option<RecordView>> {
    found(whole(engine, queue, id).await)
}

/// Turns "not found" errors into `None`.
fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::NoSuchQueue { .. } | Error::NoSuchJob { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn of_queue(
    engine: &Engine,
    queue: &QueueRef,
    filter: &RecordFilter,
    page: PageStart,
) -> Result<RecordsView> {
    let queue = engine.record_queue(&queue.name).await?;
    let list = match filter {
        RecordFilter::All => listed(engine, &queue, &LabelFilter::All, page).await?,
        RecordFilter::Labeled(label) => {
            listed(engine, &queue, &LabelFilter::Labeled(label.clone()), page).await?
        }
        RecordFilter::Others => listed(engine, &queue, &LabelFilter::Others, page).await?,
        RecordFilter::Found(query) => asked(engine, &queue, query).await?,
        RecordFilter::Nothing => RecordList::Nothing,
    };
    let counts = engine.queue(&queue.key, None).await?;
    let states = engine.labels(&queue).await?;
    Ok(RecordsView {
        queue_ref: queue_ref(&queue.key),
        total: counts.map_or(0, |queue| queue.counts.records),
        states: states.iter().cloned().map(state_row).collect(),
        list,
    })
}

async fn listed(
    engine: &Engine,
    queue: &Queue,
    which: &LabelFilter,
    page: PageStart,
) -> Result<RecordList> {
    let (found, count) = engine.records_of(queue, which, page, PAGE_ROWS).await?;
    let rows = found.rows.iter().map(row).collect();
    Ok(RecordList::Page(rows, count, neighbors(&found)))
}

/// The records that match the query, or the query's error.
async fn asked(engine: &Engine, queue: &Queue, text: &str) -> Result<RecordList> {
    let query = match read(text) {
        Ok(query) => query,
        Err(refused) => return Ok(RecordList::Refused(refused)),
    };
    match engine.query_records(queue, &query, FOUND_MAX).await {
        Ok(records) => Ok(RecordList::Found(records.iter().map(row).collect())),
        Err(error @ (Error::TooMuchWork { .. } | Error::ResponseTooLarge)) => {
            Ok(RecordList::Refused(RefusedQuery {
                why: sentence(&error),
                mark: None,
            }))
        }
        Err(error) => Err(error),
    }
}

fn read(text: &str) -> Result<Query, RefusedQuery> {
    if let Err(Malformed { at }) = query::minified(text) {
        return Err(no_json(text, at));
    }
    Query::parse(text).map_err(|refused| RefusedQuery {
        mark: refused
            .term
            .and_then(|term| mark(text, term, refused.part, refused.column)),
        why: sentence(&refused.why),
    })
}

/// The error of a text that is not valid JSON from this byte on, with its line.
fn no_json(text: &str, at: usize) -> RefusedQuery {
    let (number, line, column) = line_at(text, at);
    RefusedQuery {
        why: "Not valid JSON.".to_owned(),
        mark: Some(QueryPosition {
            place: format!("Line {number}, column {}", column + 1),
            text: line.to_owned(),
            at: Some(column),
        }),
    }
}

/// The line that contains this byte: its number from 1, its text, and the index of the character in it.
pub fn line_at(text: &str, at: usize) -> (usize, &str, usize) {
    let at = text.floor_char_boundary(at.min(text.len()));
    let (before, after) = text.split_at(at);
    let number = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let end = after.find(['\r', '\n']).map_or(text.len(), |end| at + end);
    let line = text.get(start..end).unwrap_or_default();
    let column = text.get(start..at).unwrap_or_default().chars().count();
    (number, line, column)
}

/// The position of an error, as the page shows it. `term` and `part` (the element of the term) are indices, `column`
/// counts from 1. `None` if there is no such term.
fn mark(
    text: &str,
    term: usize,
    part: Option<usize>,
    column: Option<usize>,
) -> Option<QueryPosition> {
    let terms: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let triple = terms.get(term)?.get();
    let number = term + 1;
    let elements: Vec<&RawValue> = serde_json::from_str(triple).unwrap_or_default();
    let element = part.and_then(|part| Some((part, elements.get(part)?.get())));
    let Some((part, element)) = element else {
        return Some(QueryPosition {
            place: format!("Triple {number}"),
            text: triple.to_owned(),
            at: None,
        });
    };
    let name = match part {
        0 => "the operator",
        1 => "the first expression",
        _ => "the second expression",
    };
    let expression = serde_json::from_str::<String>(element).ok();
    let at = column.filter(|_| expression.is_some());
    let column = at.map_or(String::new(), |column| format!(", column {column}"));
    Some(QueryPosition {
        place: format!("Triple {number}, {name}{column}"),
        text: expression.unwrap_or_else(|| element.to_owned()),
        at: at.map(|column| column.saturating_sub(1)),
    })
}

fn row(record: &Record) -> RecordRow {
    RecordRow {
        seq: record.seq,
        id: record.id,
        state: record.state.as_deref().map(preview),
        preview: preview(&record.payload),
        events: record.event_count(),
        modified: record.modified.0,
    }
}

fn state_row(labeled: LabelCounts) -> StateRow {
    StateRow {
        word: word(labeled.label.as_deref()),
        label: labeled.label,
        count: labeled.count,
    }
}

/// The text of a state's label: the first element if the state is a list, otherwise the state itself.
fn word(label: Option<&str>) -> String {
    let Some(label) = label else {
        return "states without a label".to_owned();
    };
    if label == NO_STATE {
        return "no state".to_owned();
    }
    let tag = label.strip_prefix('[');
    let tag = tag.and_then(|tag| serde_json::from_str(tag).ok());
    tag.unwrap_or_else(|| label.to_owned())
}

async fn whole(engine: &Engine, queue: &QueueRef, id: &str) -> Result<RecordView> {
    let missing = || Error::NoSuchJob { id: id.to_owned() };
    let queue = engine.record_queue(&queue.name).await?;
    let number = number(id).ok_or_else(missing)?;
    let record = engine.record_by_id(&queue, number).await?;
    let record = record.ok_or_else(missing)?;
    let mut log = record.log();
    let events = log.len();
    if events > LOG_SHOWN {
        log.drain(1..=events - LOG_SHOWN);
    }
    let label = query::label(record.state.as_deref());
    Ok(RecordView {
        queue_ref: queue_ref(&queue.key),
        id: record.id,
        state: record.state_text().to_owned(),
        word: match label {
            Some(label) => word(Some(&label)),
            None => preview(record.state_text()),
        },
        created: record.created_at.0,
        modified: record.modified.0,
        payload: record.payload,
        events,
        log: log.into_iter().map(entry).collect(),
    })
}

/// Parses the ID of a record; only the canonical form is accepted.
pub fn number(id: &str) -> Option<i64> {
    let number: i64 = id.parse().ok()?;
    (number.to_string() == id).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_shown_as_its_tag() {
        for (label, expected) in [
            (Some(r#"["CREATED""#), "CREATED"),
            (Some(r#"["say \"hi\"""#), r#"say "hi""#),
            (Some("null"), "no state"),
            (Some(r#""done""#), r#""done""#),
            (Some("5"), "5"),
            (None, "states without a label"),
        ] {
            assert_eq!(word(label), expected);
        }
    }

    #[test]
    fn a_record_id_has_one_form() {
        assert_eq!(number("12"), Some(12));
        for id in ["", "012", "+12", "1.0", "x", "99999999999999999999"] {
            assert_eq!(number(id), None, "{id}");
        }
    }

    #[test]
    fn errors_of_a_query_are_shown_with_their_position() {
        let text = r#"[["IS", "j.state", null], ["=", "length('ä') +", 1]]"#;
        assert_eq!(
            mark(text, 1, Some(1), Some(14)),
            Some(QueryPosition {
                place: "Triple 2, the first expression, column 14".to_owned(),
                text: "length('ä') +".to_owned(),
                at: Some(13),
            })
        );
        assert_eq!(
            mark(text, 1, Some(2), None).map(|mark| (mark.place, mark.text)),
            Some(("Triple 2, the second expression".to_owned(), "1".to_owned()))
        );
        assert_eq!(
            mark(text, 0, None, None).map(|mark| mark.text),
            Some(r#"["IS", "j.state", null]"#.to_owned())
        );
        assert_eq!(mark(text, 7, None, None), None);
    }

    #[test]
    fn invalid_json_is_shown_with_its_line() {
        let mark = read("[\r\n  [\"ä\" x]]\r\n").err().unwrap().mark.unwrap();
        assert_eq!(mark.place, "Line 2, column 8");
        assert_eq!(mark.text, "  [\"ä\" x]]");
        assert_eq!(mark.text.chars().nth(mark.at.unwrap()), Some('x'));
        let mark = read("[").err().unwrap().mark.unwrap();
        assert_eq!((mark.text.as_str(), mark.at), ("[", Some(1)));
    }
}

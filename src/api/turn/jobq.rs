//! Records of Jobq, and what an operator does with them.

use serde_json::value::RawValue;

use super::super::desk::sentence;
use super::super::read::{FOUND_MAX, PAGE_JOBS};
use super::super::views::{
    Api, Change, Conflict, Mark, NewRecord, Place, RecordList, RecordRow, RecordView, RecordsView,
    RefusedQuery, StateRow, Undone, Wanted, WrongRecord,
};
use super::dead::only_of;
use super::places::place;
use super::{entry, glimpse};
use crate::engine::{
    CompareAndSet, Engine, Error, LabelCounts, LabelFilter, Page, Queue, Record, Result,
    flaw_of_queue_name,
};
use crate::query::{self, Malformed, NO_STATE, Query};

/// Entries of a log that a page shows.
const LOG_SHOWN: usize = 200;

/// Characters of a state that a sentence holds.
const STATE_CHARS: usize = 60;

/// The queue and some of its records; `None` if there is no such queue.
pub async fn records(
    engine: &Engine,
    queue: &Place,
    wanted: &Wanted,
    offset: usize,
) -> Result<Option<RecordsView>> {
    found(of_queue(engine, queue, wanted, offset).await)
}

/// The record of that number, and its log; `None` if it is not there.
pub async fn record(engine: &Engine, queue: &Place, id: &str) -> Result<Option<RecordView>> {
    found(whole(engine, queue, id).await)
}

/// What is not there is none.
fn found<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::NoSuchQueue { .. } | Error::NoSuchJob { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn of_queue(
    engine: &Engine,
    queue: &Place,
    wanted: &Wanted,
    offset: usize,
) -> Result<RecordsView> {
    let queue = engine.record_queue(&queue.name).await?;
    let page = Page {
        offset,
        limit: PAGE_JOBS,
    };
    let list = match wanted {
        Wanted::All => listed(engine, &queue, &LabelFilter::All, page).await?,
        Wanted::Labelled(label) => {
            listed(engine, &queue, &LabelFilter::Labelled(label.clone()), page).await?
        }
        Wanted::Others => listed(engine, &queue, &LabelFilter::Others, page).await?,
        Wanted::Found(query) => asked(engine, &queue, query).await?,
        Wanted::Nothing => RecordList::Nothing,
    };
    let counts = engine.queue(&queue.key, None).await?;
    let states = engine.labels(&queue).await?;
    Ok(RecordsView {
        place: place(&queue.key),
        total: counts.map_or(0, |queue| queue.counts.records),
        states: states.into_iter().map(state_row).collect(),
        list,
    })
}

async fn listed(
    engine: &Engine,
    queue: &Queue,
    which: &LabelFilter,
    page: Page,
) -> Result<RecordList> {
    let (records, count) = engine.records_of(queue, which, page).await?;
    Ok(RecordList::Page(records.iter().map(row).collect(), count))
}

/// What the query finds, or why it cannot be run.
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

/// What ceases to be JSON at this byte, with the line in which it does.
fn no_json(text: &str, at: usize) -> RefusedQuery {
    let (number, line, column) = line_at(text, at);
    RefusedQuery {
        why: "Not valid JSON.".to_owned(),
        mark: Some(Mark {
            place: format!("Line {number}, column {}", column + 1),
            text: line.to_owned(),
            at: Some(column),
        }),
    }
}

/// The line in which this byte stands: its number from 1, its text, and the number of the character from 0.
fn line_at(text: &str, at: usize) -> (usize, &str, usize) {
    let at = text.floor_char_boundary(at.min(text.len()));
    let (before, after) = text.split_at(at);
    let number = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let end = after.find(['\r', '\n']).map_or(text.len(), |end| at + end);
    let line = text.get(start..end).unwrap_or_default();
    let column = text.get(start..at).unwrap_or_default().chars().count();
    (number, line, column)
}

/// A place in a query: the number of the triple from 0, of its element, and of the character from 1.
fn mark(text: &str, term: usize, part: Option<usize>, column: Option<usize>) -> Option<Mark> {
    let terms: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let triple = terms.get(term)?.get();
    let number = term + 1;
    let elements: Vec<&RawValue> = serde_json::from_str(triple).unwrap_or_default();
    let element = part.and_then(|part| Some((part, elements.get(part)?.get())));
    let Some((part, element)) = element else {
        return Some(Mark {
            place: format!("Term {number}"),
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
    Some(Mark {
        place: format!("Term {number}, {name}{column}"),
        text: expression.unwrap_or_else(|| element.to_owned()),
        at: at.map(|column| column.saturating_sub(1)),
    })
}

fn row(record: &Record) -> RecordRow {
    RecordRow {
        id: record.id,
        state: record.state.as_deref().map(glimpse),
        glimpse: glimpse(&record.payload),
        events: record.history.count(),
        modified: record.modified.0,
    }
}

fn state_row(labelled: LabelCounts) -> StateRow {
    StateRow {
        word: word(labelled.label.as_deref()),
        label: labelled.label,
        count: labelled.count,
    }
}

/// A label in a word: the tag of a list, and whatever else the state itself is.
fn word(label: Option<&str>) -> String {
    let Some(label) = label else {
        return "other states".to_owned();
    };
    if label == NO_STATE {
        return "no state".to_owned();
    }
    let tag = label.strip_prefix('[');
    let tag = tag.and_then(|tag| serde_json::from_str(tag).ok());
    tag.unwrap_or_else(|| label.to_owned())
}

async fn whole(engine: &Engine, queue: &Place, id: &str) -> Result<RecordView> {
    let missing = || Error::NoSuchJob { id: id.to_owned() };
    let queue = engine.record_queue(&queue.name).await?;
    let number = number(id).ok_or_else(missing)?;
    let record = engine.record_by_id(&queue, number).await?;
    let record = record.ok_or_else(missing)?;
    let mut log = record.history.events();
    let events = log.len();
    if events > LOG_SHOWN {
        log.drain(1..=events - LOG_SHOWN);
    }
    let label = query::label(record.state.as_deref());
    Ok(RecordView {
        place: place(&queue.key),
        id: record.id,
        state: record.state_text().to_owned(),
        word: match label {
            Some(label) => word(Some(&label)),
            None => glimpse(record.state_text()),
        },
        created: record.created_at.0,
        modified: record.modified.0,
        payload: record.payload,
        events,
        log: log.into_iter().map(entry).collect(),
    })
}

/// The number of a record. Only its own digits name it.
fn number(id: &str) -> Option<i64> {
    let number: i64 = id.parse().ok()?;
    (number.to_string() == id).then_some(number)
}

/// Makes a queue of the name that somebody has typed.
pub async fn make_queue(engine: &Engine, name: &str) -> Result<(), String> {
    if let Some(flaw) = flaw_of_queue_name(name) {
        return Err(flaw.to_owned());
    }
    let made = engine.create_queue(name).await;
    made.map(drop).map_err(|error| error.to_string())
}

/// Deletes the queue with all that is in it.
pub async fn expunge(engine: &Engine, queue: &Place) -> Result<(), String> {
    only_of(Api::Jobq, queue)?;
    let gone = async {
        engine
            .delete_queue(&engine.record_queue(&queue.name).await?)
            .await
    };
    gone.await.map_err(|error| error.to_string())
}

/// Deletes a record. Whether it was there.
pub async fn delete_record(engine: &Engine, queue: &Place, id: &str) -> Result<bool> {
    let queue = engine.record_queue(&queue.name).await?;
    match number(id) {
        Some(id) => engine.delete_record(&queue, id).await,
        None => Ok(false),
    }
}

/// Records what somebody has typed. The number of the record.
pub async fn create_record(
    engine: &Engine,
    queue: &Place,
    typed: &NewRecord,
) -> Result<i64, Undone> {
    let refuse = |wrong: WrongRecord| Undone::Create(typed.clone(), wrong);
    let state = match typed.state.trim() {
        "" => NO_STATE,
        state => state,
    };
    let (payload, state) = match (minified(&typed.payload), minified(state)) {
        (Ok(payload), Ok(state)) => (payload, state),
        (payload, state) => {
            return Err(refuse(WrongRecord {
                payload: payload.err(),
                state: state.err(),
            }));
        }
    };
    let made = async {
        let queue = engine.record_queue(&queue.name).await?;
        engine.create_record(&queue, payload, state).await
    };
    let made = made.await.map_err(|error| {
        refuse(WrongRecord {
            payload: Some(sentence(&error)),
            state: None,
        })
    })?;
    Ok(made.id)
}

/// Does with a record what somebody wants. Says what came of it.
pub async fn change_record(
    engine: &Engine,
    queue: &Place,
    id: &str,
    change: Change,
) -> Result<String, Undone> {
    match change {
        Change::State { old, new } => advance(engine, queue, id, old, new).await,
        Change::Event { event } => append(engine, queue, id, event).await,
    }
}

async fn advance(
    engine: &Engine,
    queue: &Place,
    id: &str,
    old: String,
    new: String,
) -> Result<String, Undone> {
    let texts = minified(&old).and_then(|old| Ok((old, minified(&new)?)));
    let done = match texts {
        Ok((old, wanted)) => {
            let swap = async {
                let queue = engine.record_queue(&queue.name).await?;
                engine.advance_record(&queue, known(id)?, old, wanted).await
            };
            swap.await.map_err(|error| sentence(&error))
        }
        Err(why) => Err(why),
    };
    match done {
        Ok(CompareAndSet::Done(record)) => Ok(format!(
            "State of job {id} set to {}.",
            short(record.state_text())
        )),
        Ok(CompareAndSet::Differs(record)) => Err(Undone::Conflict(Conflict {
            shown: old,
            now: record.state_text().to_owned(),
            wanted: new,
        })),
        Err(why) => Err(Undone::Advance { old, new, why }),
    }
}

async fn append(engine: &Engine, queue: &Place, id: &str, event: String) -> Result<String, Undone> {
    let done = match minified(&event) {
        Ok(text) => {
            let append = async {
                let queue = engine.record_queue(&queue.name).await?;
                engine.append_event(&queue, known(id)?, text).await
            };
            append.await.map_err(|error| sentence(&error))
        }
        Err(why) => Err(why),
    };
    match done {
        Ok(_) => Ok("Event added to the log.".to_owned()),
        Err(why) => Err(Undone::Append { event, why }),
    }
}

fn known(id: &str) -> Result<i64> {
    number(id).ok_or_else(|| Error::NoSuchJob { id: id.to_owned() })
}

/// What somebody has typed as JSON without white space, or what is wrong with it.
fn minified(typed: &str) -> Result<String, String> {
    if typed.trim().is_empty() {
        return Err("Enter JSON. For no value, enter null.".to_owned());
    }
    query::minified(typed).map_err(|Malformed { at }| {
        if typed.get(at..).is_none_or(|rest| rest.trim().is_empty()) {
            return "Not valid JSON: it ends too early.".to_owned();
        }
        let (line, _, column) = line_at(typed, at);
        format!("Not valid JSON: see line {line}, column {}.", column + 1)
    })
}

/// The beginning of a state.
fn short(state: &str) -> String {
    match state.char_indices().nth(STATE_CHARS) {
        Some((cut, _)) => format!("{}…", state.get(..cut).unwrap_or_default()),
        None => state.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_shown_as_what_it_begins_with() {
        for (label, expected) in [
            (Some(r#"["CREATED""#), "CREATED"),
            (Some(r#"["say \"hi\"""#), r#"say "hi""#),
            (Some("null"), "no state"),
            (Some(r#""done""#), r#""done""#),
            (Some("5"), "5"),
            (None, "other states"),
        ] {
            assert_eq!(word(label), expected);
        }
    }

    #[test]
    fn a_record_has_one_number() {
        assert_eq!(number("12"), Some(12));
        for id in ["", "012", "+12", "1.0", "x", "99999999999999999999"] {
            assert_eq!(number(id), None, "{id}");
        }
    }

    #[test]
    fn what_is_refused_is_shown_with_its_place() {
        let text = r#"[["IS", "j.state", null], ["=", "length('ä') +", 1]]"#;
        assert_eq!(
            mark(text, 1, Some(1), Some(14)),
            Some(Mark {
                place: "Term 2, the first expression, column 14".to_owned(),
                text: "length('ä') +".to_owned(),
                at: Some(13),
            })
        );
        assert_eq!(
            mark(text, 1, Some(2), None).map(|mark| (mark.place, mark.text)),
            Some(("Term 2, the second expression".to_owned(), "1".to_owned()))
        );
        assert_eq!(
            mark(text, 0, None, None).map(|mark| mark.text),
            Some(r#"["IS", "j.state", null]"#.to_owned())
        );
        assert_eq!(mark(text, 7, None, None), None);
    }

    #[test]
    fn what_is_no_json_is_shown_with_its_line() {
        let mark = read("[\r\n  [\"ä\" x]]\r\n").err().unwrap().mark.unwrap();
        assert_eq!(mark.place, "Line 2, column 8");
        assert_eq!(mark.text, "  [\"ä\" x]]");
        assert_eq!(mark.text.chars().nth(mark.at.unwrap()), Some('x'));
        let mark = read("[").err().unwrap().mark.unwrap();
        assert_eq!((mark.text.as_str(), mark.at), ("[", Some(1)));
        assert_eq!(
            minified("{\"a\": }"),
            Err("Not valid JSON: see line 1, column 7.".to_owned())
        );
        assert_eq!(
            minified("{\"a\""),
            Err("Not valid JSON: it ends too early.".to_owned())
        );
        assert_eq!(minified("[ 1.0 ]"), Ok("[1.0]".to_owned()));
    }
}

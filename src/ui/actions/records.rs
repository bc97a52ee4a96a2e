//! Actions on Jobq records. The forms' own pages show errors, so that long JSON texts are not lost
//! (`http/page_forms.rs`).

use super::input::shortened;
use super::{Action, Target};
use crate::auth::Role;
use crate::engine::{CompareAndSet, Engine, Error, Result};
use crate::query::{self, Malformed, NO_STATE};
use crate::ui::context::sentence;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::pages::records::load::{line_at, number};
use crate::ui::pages::records::model::{
    Change, Conflict, NewRecord, RecordFieldErrors, RecordFormError,
};

/// Characters of a state in a message.
const STATE_CHARS: usize = 60;

/// `POST /ui/jobq/{name}`
pub static CREATE_RECORD: Action =
    Action::new("create_record", "/ui/jobq/{name}", Role::Operator, |form| {
        Target::queue(&form.request.queue_and_job().0)
    });

/// `POST /ui/jobq/{name}/job/{id}`
pub static SET_STATE: Action = change("set_state");

/// `POST /ui/jobq/{name}/job/{id}` with `do=event`
pub static APPEND_EVENT: Action = change("append_event").only_if("do", "event");

const fn change(name: &'static str) -> Action {
    Action::new(name, "/ui/jobq/{name}/job/{id}", Role::Operator, |form| {
        let (queue, id) = form.request.queue_and_job();
        Target::job(&queue, &id)
    })
}

/// Creates a record and returns its ID. Payload and state have at most `bytes_max` bytes each.
pub async fn create_record(
    engine: &Engine,
    queue: &QueueRef,
    form: &NewRecord,
    bytes_max: usize,
) -> Result<i64, RecordFormError> {
    let refuse = |wrong: RecordFieldErrors| RecordFormError::Create(form.clone(), wrong);
    let payload = minified("The payload", &form.payload, bytes_max);
    let state = match form.state.trim() {
        "" => Ok(NO_STATE.to_owned()),
        state => minified("The state", state, bytes_max),
    };
    let (payload, state) = match (payload, state) {
        (Ok(payload), Ok(state)) => (payload, state),
        (payload, state) => {
            return Err(refuse(RecordFieldErrors {
                payload: payload.err(),
                state: state.err(),
            }));
        }
    };
    let created = async {
        let queue = engine.record_queue(&queue.name).await?;
        engine.create_record(&queue, payload, state).await
    };
    let created = created.await.map_err(|error| {
        refuse(RecordFieldErrors {
            payload: Some(sentence(&error)),
            state: None,
        })
    })?;
    Ok(created.id)
}

/// Changes a record and returns the message. States and events have at most `bytes_max` bytes each.
pub async fn change_record(
    engine: &Engine,
    queue: &QueueRef,
    id: &str,
    change: Change,
    bytes_max: usize,
) -> Result<String, RecordFormError> {
    match change {
        Change::State { old, new } => set_state(engine, queue, id, old, new, bytes_max).await,
        Change::Event { event } => append_event(engine, queue, id, event, bytes_max).await,
    }
}

async fn set_state(
    engine: &Engine,
    queue: &QueueRef,
    id: &str,
    old: String,
    new: String,
    bytes_max: usize,
) -> Result<String, RecordFormError> {
    let texts = minified("The expected state", &old, bytes_max)
        .and_then(|old| Ok((old, minified("The new state", &new, bytes_max)?)));
    let done = match texts {
        Ok((old, new)) => {
            let swap = async {
                let queue = engine.record_queue(&queue.name).await?;
                engine
                    .advance_record(&queue, record_id(id)?, old, new)
                    .await
            };
            swap.await.map_err(|error| sentence(&error))
        }
        Err(why) => Err(why),
    };
    match done {
        Ok(CompareAndSet::Done(record)) => Ok(format!(
            "State of job {id} set to {}.",
            shortened(record.state_text(), STATE_CHARS)
        )),
        Ok(CompareAndSet::Differs(record)) => Err(RecordFormError::Conflict(Conflict {
            shown: old,
            now: record.state_text().to_owned(),
            wanted: new,
        })),
        Err(why) => Err(RecordFormError::Advance { old, new, why }),
    }
}

async fn append_event(
    engine: &Engine,
    queue: &QueueRef,
    id: &str,
    event: String,
    bytes_max: usize,
) -> Result<String, RecordFormError> {
    let done = match minified("The event", &event, bytes_max) {
        Ok(text) => {
            let append = async {
                let queue = engine.record_queue(&queue.name).await?;
                engine.append_event(&queue, record_id(id)?, text).await
            };
            append.await.map_err(|error| sentence(&error))
        }
        Err(why) => Err(why),
    };
    match done {
        Ok(_) => Ok("Event added to the log.".to_owned()),
        Err(why) => Err(RecordFormError::Append { event, why }),
    }
}

/// Deletes a record. Returns whether it existed.
pub async fn delete_record(engine: &Engine, queue: &QueueRef, id: &str) -> Result<bool> {
    let queue = engine.record_queue(&queue.name).await?;
    match number(id) {
        Some(id) => engine.delete_record(&queue, id).await,
        None => Ok(false),
    }
}

/// The ID as a number; a text that is no number is the ID of no record.
fn record_id(id: &str) -> Result<i64> {
    number(id).ok_or_else(|| Error::NoSuchJob { id: id.to_owned() })
}

/// The text of a field as JSON without whitespace.
///
/// # Errors
/// That the text is longer than `bytes_max`, or where it stops being JSON, as a sentence.
fn minified(field: &str, text: &str, bytes_max: usize) -> Result<String, String> {
    if text.len() > bytes_max {
        return Err(format!("{field} must not exceed {bytes_max} bytes."));
    }
    if text.trim().is_empty() {
        return Err("Enter JSON. For no value, enter null.".to_owned());
    }
    query::minified(text).map_err(|Malformed { at }| {
        if text.get(at..).is_none_or(|rest| rest.trim().is_empty()) {
            return "Not valid JSON: it ends too early.".to_owned();
        }
        let (line, _, column) = line_at(text, at);
        format!("Not valid JSON: see line {line}, column {}.", column + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_place_where_the_text_stops_being_json() {
        let of = |text: &str| minified("The state", text, 100);
        assert_eq!(
            of("{\"a\": }"),
            Err("Not valid JSON: see line 1, column 7.".to_owned())
        );
        assert_eq!(
            of("{\"a\""),
            Err("Not valid JSON: it ends too early.".to_owned())
        );
        assert_eq!(of("[ 1.0 ]"), Ok("[1.0]".to_owned()));
    }

    #[test]
    fn a_text_has_a_maximum_size() {
        let of = |bytes_max: usize| minified("The state", "[ 1 ]", bytes_max);
        assert_eq!(of(5), Ok("[1]".to_owned()));
        assert_eq!(of(4), Err("The state must not exceed 4 bytes.".to_owned()));
    }
}

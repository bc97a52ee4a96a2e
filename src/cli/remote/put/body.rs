//! The bodies of the requests that put a job.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::config::JobPut;
use crate::ui::model::queue_ref::Protocol;

/// How long a Relay job may go without a heartbeat, in seconds.
const TIMEOUT_S: f64 = 60.0;

/// The fields of a job other than its payload; those that are not set are left out.
#[derive(Default, Serialize)]
struct Fields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    klass: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_retries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<i64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    tags: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    depends: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a RawValue>,
}

/// The body of the request for a payload, and the ID of a Relay job.
pub fn payload_body(options: &JobPut, payload: &[u8]) -> Result<(Vec<u8>, Option<String>), String> {
    if options.queue.protocol == Protocol::Lmstfy {
        return Ok((payload.to_vec(), None));
    }
    let wrong = |error| format!("the payload is not valid JSON: {error}");
    let payload: &RawValue = serde_json::from_slice(payload).map_err(wrong)?;
    let wrong = |error| format!("--state is not valid JSON: {error}");
    let state = options
        .state
        .as_deref()
        .map(serde_json::from_str::<&RawValue>);
    let state = state.transpose().map_err(wrong)?;
    let mut id = options.id.clone();
    let queue = options.queue.name.as_str();
    let fields = match options.queue.protocol {
        Protocol::Qless | Protocol::Lmstfy => Fields {
            id: id.as_deref(),
            klass: options.class.as_deref(),
            priority: options.priority,
            retries: options.retries,
            delay: options.delay,
            tags: &options.tags,
            depends: &options.depends,
            meta: Some(payload),
            ..Fields::default()
        },
        Protocol::Relay => Fields {
            id: Some(id.get_or_insert_with(|| Uuid::now_v7().to_string())),
            queue: Some(queue),
            max_retries: options.retries,
            timeout: Some(whole(options.timeout.unwrap_or(TIMEOUT_S))),
            state,
            payload: Some(payload),
            ..Fields::default()
        },
        Protocol::Jobq => Fields {
            state,
            payload: Some(payload),
            ..Fields::default()
        },
    };
    let body = serde_json::to_vec(&fields).map_err(|error| error.to_string())?;
    Ok((body, id))
}

/// The nearest whole number of seconds.
#[expect(clippy::cast_possible_truncation, reason = "it saturates")]
pub fn whole(seconds: f64) -> i64 {
    seconds.round() as i64
}

/// The body of the request for a line with the fields of the API.
pub fn item_body(options: &JobPut, line: &[u8]) -> Result<(Vec<u8>, Option<String>), String> {
    let wrong = |error| format!("not a JSON object: {error}");
    let fields: std::collections::BTreeMap<String, &RawValue> =
        serde_json::from_slice(line).map_err(wrong)?;
    if options.queue.protocol != Protocol::Relay {
        return Ok((line.to_vec(), None));
    }
    // Relay's items name their queue and their ID.
    let id = match fields.get("id") {
        Some(id) => {
            serde_json::from_str(id.get()).map_err(|_| "`id` must be a string".to_owned())?
        }
        None => Uuid::now_v7().to_string(),
    };
    let text = |text: &str| RawValue::from_string(Value::from(text).to_string());
    let (queue_text, id_text) = (text(&options.queue.name), text(&id));
    let (queue_text, id_text) = (queue_text.map_err(wrong)?, id_text.map_err(wrong)?);
    let timeout = RawValue::from_string(TIMEOUT_S.to_string()).map_err(wrong)?;
    let mut fields = fields;
    fields.insert("queue".to_owned(), &queue_text);
    fields.insert("id".to_owned(), &id_text);
    fields.entry("timeout".to_owned()).or_insert(&timeout);
    let body = serde_json::to_vec(&fields).map_err(|error| error.to_string())?;
    Ok((body, Some(id)))
}

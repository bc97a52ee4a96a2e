//! Events as qless-core publishes them: the channels `ql:…`, and messages with the keys and their order of its scripts.

use serde_json::{Map, Value};

use crate::engine::PublishedEvent;

/// The channel and the message of an event; `None` if qless-core has no such event.
pub fn message(event: &PublishedEvent) -> Option<(String, String)> {
    let channel = format!("ql:{}", event.channel);
    let data: Value = serde_json::from_str(&event.data).ok()?;
    match data {
        // The ID of a tracked job.
        Value::String(jid) => Some((channel, jid)),
        Value::Object(fields) => Some((channel, object(&fields)?)),
        _ => None,
    }
}

/// The message of an event on `ql:log` or a worker's channel.
fn object(fields: &Map<String, Value>) -> Option<String> {
    let keys: &[&str] = match fields.get("event")?.as_str()? {
        "put" | "completed" => &["jid", "event", "queue"],
        "advanced" => &["jid", "to", "event", "queue"],
        "failed" => &["message", "jid", "group", "event", "worker"],
        "lock_lost" => &["jid", "event", "worker"],
        "canceled" => &["jid", "queue", "event", "worker"],
        "config_set" => &["option", "event", "value"],
        "config_unset" => &["event", "option"],
        _ => return None,
    };
    let mut text = String::from("{");
    for key in keys {
        let field = if *key == "jid" { "id" } else { key };
        let value = match fields.get(field) {
            None | Some(Value::Null) if *key == "worker" => Value::from(""),
            None | Some(Value::Null) => continue,
            // Options are texts in qless-core.
            Some(value) if *key == "value" && !value.is_string() => Value::from(value.to_string()),
            Some(value) => value.clone(),
        };
        let separator = if text.len() > 1 { "," } else { "" };
        text.push_str(&format!("{separator}\"{key}\":{value}"));
    }
    text.push('}');
    Some(text)
}

//! Actions on options of the server and of queues.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use serde::de::IgnoredAny;

use super::input::check_name;
use super::{Action, Target, act};
use crate::auth::Role;
use crate::engine::{Config, Engine};
use crate::ui::error::PageError;
use crate::ui::options::{name_of, of_queue};
use crate::ui::urls;

fn option_target(form: &super::Form) -> Target {
    let option = form.field("option");
    Target::new(format!("option {option}"), "/ui/config".to_owned())
}

pub static SET_OPTION: Action =
    Action::new("set_option", SetOption::PATH, Role::Admin, option_target);

/// Sets an option of the server.
#[server]
pub async fn set_option(option: String, value: String, back: String) -> Result<(), PageError> {
    act(&SET_OPTION, &back, async |context| {
        Ok(set(&context.engine, option.trim(), &value).await?.into())
    })
    .await
}

pub static SET_QUEUE_OPTION: Action = Action::new(
    "set_queue_option",
    SetQueueOption::PATH,
    Role::Admin,
    |form| {
        let (option, queue) = (form.field("option"), form.field("queue"));
        Target::new(
            format!("option {option} of queue {queue}"),
            urls::config(queue),
        )
    },
);

/// Sets an option of a queue.
#[server]
pub async fn set_queue_option(
    queue: String,
    option: String,
    value: String,
    back: String,
) -> Result<(), PageError> {
    act(&SET_QUEUE_OPTION, &back, async |context| {
        if of_queue(&option).is_none() {
            return Err(format!("there is no queue option “{option}”").into());
        }
        check_name("the queue name", &queue)?;
        let option = name_of(&queue, &option);
        Ok(set(&context.engine, option.trim(), &value).await?.into())
    })
    .await
}

pub static UNSET_OPTION: Action = Action::new(
    "unset_option",
    UnsetOption::PATH,
    Role::Admin,
    option_target,
);

/// Resets an option to its default.
#[server]
pub async fn unset_option(option: String, back: String) -> Result<(), PageError> {
    act(&UNSET_OPTION, &back, async |context| {
        let engine = &context.engine;
        let before = engine.config().get(&option);
        engine.configure(&option, None, None).await?;
        let before = before.map_or(String::new(), |before| format!(" (was {before})"));
        let message = match engine.config().get(&option) {
            Some(default) => format!("Option “{option}” reset to its default, {default}{before}."),
            None => format!("Option “{option}” removed{before}."),
        };
        Ok(message.into())
    })
    .await
}

async fn set(engine: &Engine, option: &str, text: &str) -> Result<String, String> {
    let value = json_value(option, text)?;
    let before = engine.config().get(option);
    let set = engine.configure(option, Some(value.clone()), None).await;
    set.map_err(|error| error.to_string())?;
    Ok(match before {
        Some(before) => format!("Option “{option}” set to {value} (was {before})."),
        None => format!("Option “{option}” set to {value}."),
    })
}

/// The JSON value of a field: the text itself if it is JSON, otherwise the text as a JSON string.
fn json_value(option: &str, text: &str) -> Result<String, String> {
    let text = text.trim();
    let value = match serde_json::from_str::<IgnoredAny>(text) {
        Ok(IgnoredAny) if text != "null" => text.to_owned(),
        _ => serde_json::Value::from(text).to_string(),
    };
    Config::check(option, &value).map_err(|error| error.to_string())?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::options::of_server;

    #[test]
    fn numeric_options_take_numbers_and_others_any_json_or_text() {
        assert_eq!(json_value("heartbeat", " 90 ").as_deref(), Ok("90"));
        assert_eq!(json_value("mail-cutoff", "1.5").as_deref(), Ok("1.5"));
        for text in ["", "a minute", "NaN", "inf", "+5", "\"5\"", "null"] {
            assert_eq!(
                json_value("heartbeat", text).unwrap_err(),
                "the option heartbeat must be a number"
            );
        }
        assert_eq!(
            json_value("color", "deep red").as_deref(),
            Ok("\"deep red\"")
        );
        assert_eq!(json_value("color", "[1, 2]").as_deref(), Ok("[1, 2]"));
        assert_eq!(json_value("color", "null").as_deref(), Ok("\"null\""));
        assert!(json_value("", "1").is_err());
        assert!(json_value("color", &"x".repeat(5_000)).is_err());
    }

    #[test]
    fn every_default_is_explained() {
        for option in Config::default().all().keys() {
            assert!(of_server(option).is_some(), "{option}");
        }
    }
}

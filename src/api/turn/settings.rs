//! Options, as the dashboard lists and sets them.

use serde::de::IgnoredAny;

use super::super::options::{OF_QUEUE, OF_SERVER, name_of, of_queue, of_server, queue_of};
use super::super::views::{ConfigView, Setting};
use crate::engine::{Config, Engine};

pub fn config(engine: &Engine) -> ConfigView {
    let defaults = Config::default();
    let setting = |option: &str, value: String| Setting {
        option: option.to_owned(),
        value,
        default: defaults.get(option),
    };
    let in_force = |option: &str| Some(setting(option, engine.config().get(option)?));
    let (mut of_queues, mut others) = (Vec::new(), Vec::new());
    for (option, value) in engine.config().all() {
        let row = setting(&option, value);
        if row.default.is_some() && of_server(&option).is_some() {
            continue;
        }
        match queue_of(&option) {
            Some(_) => of_queues.push(row),
            None => others.push(row),
        }
    }
    ConfigView {
        of_server: OF_SERVER
            .iter()
            .filter(|option| defaults.get(option.name).is_some())
            .filter_map(|option| in_force(option.name))
            .collect(),
        of_queues,
        others,
        kinds: OF_QUEUE
            .iter()
            .filter(|option| Config::is_number(&name_of("q", option.name)))
            .map(|option| option.name.to_owned())
            .collect(),
        queues: super::queue_names(engine),
    }
}

/// Sets an option to what somebody has typed. Says what came of it.
pub async fn set_option(engine: &Engine, option: &str, typed: &str) -> Result<String, String> {
    let option = option.trim();
    let value = checked(option, typed)?;
    let before = engine.config().get(option);
    configure(engine, option, Some(value.clone())).await?;
    Ok(match before {
        Some(before) => format!("Option “{option}” set to {value} (was {before})."),
        None => format!("Option “{option}” set to {value}."),
    })
}

/// Sets an option of one queue.
pub async fn set_queue_option(
    engine: &Engine,
    queue: &str,
    option: &str,
    typed: &str,
) -> Result<String, String> {
    if of_queue(option).is_none() {
        return Err(format!("there is no queue option “{option}”"));
    }
    super::deeds::check_name("the queue name", queue)?;
    set_option(engine, &name_of(queue, option), typed).await
}

/// Forgets what an option has been set to.
pub async fn unset_option(engine: &Engine, option: &str) -> Result<String, String> {
    let before = engine.config().get(option);
    configure(engine, option, None).await?;
    let before = before.map_or(String::new(), |before| format!(" (was {before})"));
    Ok(match engine.config().get(option) {
        Some(default) => format!("Option “{option}” reset to its default, {default}{before}."),
        None => format!("Option “{option}” removed{before}."),
    })
}

async fn configure(engine: &Engine, option: &str, value: Option<String>) -> Result<(), String> {
    let done = engine.configure(option, value, None).await;
    done.map_err(|error| error.to_string())
}

/// The JSON text of what somebody has typed: as it is if it is JSON, else as a JSON string.
fn checked(option: &str, typed: &str) -> Result<String, String> {
    let typed = typed.trim();
    let value = match serde_json::from_str::<IgnoredAny>(typed) {
        Ok(IgnoredAny) if typed != "null" => typed.to_owned(),
        _ => serde_json::Value::from(typed).to_string(),
    };
    Config::check(option, &value).map_err(|refused| refused.to_string())?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_numbers_and_everything_else_is_json() {
        assert_eq!(checked("heartbeat", " 90 ").as_deref(), Ok("90"));
        assert_eq!(checked("mail-cutoff", "1.5").as_deref(), Ok("1.5"));
        for typed in ["", "a minute", "NaN", "inf", "+5", "\"5\"", "null"] {
            assert_eq!(
                checked("heartbeat", typed).unwrap_err(),
                "heartbeat must be a number"
            );
        }
        assert_eq!(checked("colour", "deep red").as_deref(), Ok("\"deep red\""));
        assert_eq!(checked("colour", "[1, 2]").as_deref(), Ok("[1, 2]"));
        assert_eq!(checked("colour", "null").as_deref(), Ok("\"null\""));
        assert!(checked("", "1").is_err());
        assert!(checked("colour", &"x".repeat(5_000)).is_err());
    }

    #[test]
    fn every_default_is_explained() {
        for option in Config::default().all().keys() {
            assert!(of_server(option).is_some(), "{option}");
        }
    }
}

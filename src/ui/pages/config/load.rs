//! Loads the options.

use leptos::prelude::*;

use crate::auth::Role;
use crate::engine::{Config, Engine};
use crate::ui::context::read;
use crate::ui::error::PageError;
use crate::ui::options::{OF_QUEUE, OF_SERVER, name_of, of_server, split_queue_option};
use crate::ui::pages::config::OPTIONS_SHOWN;
use crate::ui::pages::config::model::{ConfigView, Setting};
use crate::ui::present::queue_refs;

/// All options in force.
#[server(name = LoadConfig)]
pub async fn config() -> Result<ConfigView, PageError> {
    read(Role::Viewer, async |context| {
        Ok(load_config(&context.engine))
    })
    .await
}

pub fn load_config(engine: &Engine) -> ConfigView {
    let defaults = Config::default();
    let setting = |option: &str, value: String| Setting {
        option: option.to_owned(),
        value,
        default: defaults.get(option),
    };
    let in_force = |option: &str| Some(setting(option, engine.config().get(option)?));
    let (mut of_queues, mut others, mut others_total) = (Vec::new(), Vec::new(), 0);
    for (option, value) in engine.config().all() {
        let row = setting(&option, value);
        if row.default.is_some() && of_server(&option).is_some() {
            continue;
        }
        if split_queue_option(&option).is_some() {
            of_queues.push(row);
            continue;
        }
        // Their values can be long.
        others_total += 1;
        if others.len() < OPTIONS_SHOWN {
            others.push(row);
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
        others_total,
        kinds: OF_QUEUE
            .iter()
            .filter(|option| Config::is_number(&name_of("q", option.name)))
            .map(|option| option.name.to_owned())
            .collect(),
        queues: queue_refs::queue_names(engine),
    }
}

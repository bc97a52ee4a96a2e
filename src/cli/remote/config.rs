//! `switchyard config list`, `get`, `set` and `unset`: the options of a running server and of its queues.

use serde_json::json;

use super::{ActionOutcome, Result, Session};
use crate::cli::exit::{Code, Failure};
use crate::cli::output::{Table, json_line_with, printable};
use crate::cli::{Outcome, print};
use crate::config::OptionCommand;
use crate::ui::actions::options::{SetOption, SetQueueOption, UnsetOption};
use crate::ui::options::name_of;
use crate::ui::pages::config::load::LoadConfig;
use crate::ui::pages::config::model::Setting;

pub async fn run(command: &OptionCommand) -> Outcome {
    match command {
        OptionCommand::List { remote, changed } => list(&Session::new(remote)?, *changed).await,
        OptionCommand::Get {
            remote,
            option,
            queue,
        } => {
            let session = Session::new(remote)?;
            let name = named(option, queue.as_deref());
            let mut settings = load(&session).await?.into_iter();
            let found = settings.find(|it| it.option == name);
            let found = found
                .ok_or_else(|| Failure::new(Code::NotFound, format!("option {name} is not set")))?;
            let text = || format!("{}\n", printable(&found.value));
            print(&if session.json { line(&found) } else { text() });
            Ok(())
        }
        OptionCommand::Set {
            remote,
            option,
            value,
            queue,
        } => {
            let session = Session::new(remote)?;
            let done = set(&session, option, value, queue.as_deref()).await?;
            session.report(&named(option, queue.as_deref()), &done);
            Ok(())
        }
        OptionCommand::Unset {
            remote,
            option,
            queue,
        } => {
            let session = Session::new(remote)?;
            let name = named(option, queue.as_deref());
            let (option, back) = (name.clone(), back());
            let done = session.act(UnsetOption { option, back }).await?;
            session.report(&name, &done);
            Ok(())
        }
    }
}

async fn list(session: &Session, only_changed: bool) -> Outcome {
    let mut settings = load(session).await?;
    settings.retain(|it| !only_changed || it.is_changed());
    if session.json {
        settings.iter().for_each(|it| print(&line(it)));
        return Ok(());
    }
    let mut table = Table::new(&["OPTION", "VALUE", "DEFAULT"]);
    for it in settings {
        table.row([it.option, it.value, it.default.unwrap_or_default()]);
    }
    print(&table.render());
    Ok(())
}

async fn set(
    session: &Session,
    option: &str,
    value: &str,
    queue: Option<&str>,
) -> Result<ActionOutcome> {
    let (option, value, back) = (option.to_owned(), value.to_owned(), back());
    let Some(queue) = queue.map(str::to_owned) else {
        let call = SetOption {
            option,
            value,
            back,
        };
        return session.act(call).await;
    };
    let call = SetQueueOption {
        queue,
        option,
        value,
        back,
    };
    session.act(call).await
}

/// The page to which a form would return.
fn back() -> String {
    "/ui/config".to_owned()
}

/// The full name of an option, which for a queue contains its name.
fn named(option: &str, queue: Option<&str>) -> String {
    queue.map_or_else(|| option.to_owned(), |queue| name_of(queue, option))
}

/// All options in force.
async fn load(session: &Session) -> Result<Vec<Setting>> {
    let view = session.read(LoadConfig {}).await?;
    Ok([view.of_server, view.of_queues, view.others].concat())
}

fn line(setting: &Setting) -> String {
    let default = setting.default.as_deref().unwrap_or("null");
    let texts = [("value", setting.value.as_str()), ("default", default)];
    json_line_with(&json!({ "option": setting.option }), &texts)
}

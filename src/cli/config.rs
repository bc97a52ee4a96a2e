//! `switchyard config`: checks and prints the settings of the server.

use super::{Outcome, print, print_notice};
use crate::config::{
    ConfigCommand, Loaded, Serve, Setting, Source, Value, example, quoted, reference,
};

pub fn run(loaded: &Loaded, command: &ConfigCommand) -> Outcome {
    match command {
        ConfigCommand::Check(serve) => check(loaded, serve),
        ConfigCommand::Show(show) => {
            for setting in &loaded.settings {
                print(&line(loaded, setting, show.sources));
            }
            Ok(())
        }
        // These talk to a server (`remote/config.rs`).
        ConfigCommand::Options(_) => Ok(()),
        ConfigCommand::Example => {
            print(&example());
            Ok(())
        }
        ConfigCommand::Reference => {
            print(&reference());
            Ok(())
        }
    }
}

fn check(loaded: &Loaded, serve: &Serve) -> Outcome {
    let settings = serve.settings()?;
    for warning in serve.exposure(&settings.auth)? {
        print_notice(&format!("warning: {warning}"));
    }
    print(&match &loaded.file {
        Some(file) => format!("{}: the configuration is valid\n", file.display()),
        None => "the configuration is valid; no file is used (--config)\n".to_owned(),
    });
    Ok(())
}

/// The option as a line of a configuration file.
pub fn line(loaded: &Loaded, setting: &Setting, with_source: bool) -> String {
    let name = &setting.name;
    let text = match &setting.value {
        Value::Switch => format!("{name} = true"),
        Value::One(value) => match value.parse::<i64>() {
            Ok(number) => format!("{name} = {number}"),
            Err(_) => format!("{name} = {}", quoted(value)),
        },
        Value::Many(values) => {
            let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
            format!("{name} = [{}]", values.join(", "))
        }
        Value::Secret => format!("# {name} is set and not shown"),
    };
    if !with_source {
        return format!("{text}\n");
    }
    let source = match &setting.source {
        Source::Default => "default".to_owned(),
        Source::Flag => "flag".to_owned(),
        Source::Environment(variable) => format!("environment: {variable}"),
        Source::File(line) => {
            let file = loaded.file.clone().unwrap_or_default();
            format!("file: {}, line {line}", file.display())
        }
    };
    format!("{text:<50} # {source}\n")
}

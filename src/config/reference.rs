//! The example file and the reference of the settings, written from the definitions of the flags.

use clap::{Arg, Command as Definition, CommandFactory};

use super::Command;
use super::file::{is_key, is_list, is_switch};

/// Where the options without a heading are listed.
const SERVER: &str = "Server";

/// The marks in `docs/configuration.md` around the generated part.
pub const BEGIN: &str = "<!-- Written by `make reference`. -->";
pub const END: &str = "<!-- End of the generated part. -->";

/// Maximum length of a line of a comment.
const WIDTH: usize = 100;

/// The definition of `switchyard serve`.
pub fn serve() -> Definition {
    let mut command = Command::command();
    command.build();
    command
        .find_subcommand("serve")
        .cloned()
        .unwrap_or_default()
}

/// The options that the file can set, by heading.
fn sections(serve: &Definition) -> Vec<(&str, Vec<&Arg>)> {
    let mut sections: Vec<(&str, Vec<&Arg>)> = Vec::new();
    for arg in serve.get_arguments().filter(|arg| is_key(arg)) {
        let heading = arg.get_help_heading().unwrap_or(SERVER);
        match sections.iter_mut().find(|(name, _)| *name == heading) {
            Some((_, args)) => args.push(arg),
            None => sections.push((heading, vec![arg])),
        }
    }
    sections
}

/// An example of a configuration file: every key, commented out, with its default or a placeholder.
pub fn example() -> String {
    let serve = serve();
    let mut text = "\
# Configuration of `switchyard serve`: switchyard serve --config switchyard.toml
#
# Each key is the name of a flag. Environment variables take precedence over this file, and flags over both.
# Relative paths start at the server's working directory. Check the file with `switchyard config check`.
"
    .to_owned();
    for (heading, args) in sections(&serve) {
        text.push_str(&format!("\n# ---- {heading} ----\n"));
        for arg in args {
            let name = arg.get_long().unwrap_or_default();
            text.push('\n');
            for line in wrapped(&help(arg)) {
                text.push_str(&format!("# {line}\n"));
            }
            if let Some(variable) = arg.get_env() {
                text.push_str(&format!("# Environment: {}\n", variable.to_string_lossy()));
            }
            text.push_str(&format!("#{name} = {}\n", value(arg)));
        }
    }
    text
}

/// The reference for `docs/configuration.md`.
pub fn reference() -> String {
    let serve = serve();
    let mut text = format!("{BEGIN}\n");
    for (heading, args) in sections(&serve) {
        text.push_str(&format!(
            "\n### {heading}\n\n| key and flag | environment | default | |\n|---|---|---|---|\n"
        ));
        for arg in args {
            let flag = match placeholder(arg) {
                Some(value) => format!("--{} {value}", arg.get_long().unwrap_or_default()),
                None => format!("--{}", arg.get_long().unwrap_or_default()),
            };
            let variable = arg.get_env().unwrap_or_default().to_string_lossy();
            let default = default(arg).map_or_else(
                || if is_switch(arg) { "off" } else { "" }.to_owned(),
                |default| format!("`{default}`"),
            );
            let help = help(arg).replace('|', "\\|");
            text.push_str(&format!(
                "| `{flag}` | `{variable}` | {default} | {help} |\n"
            ));
        }
    }
    text.push_str(&format!("\n{END}"));
    text
}

/// The help of an option, with the values that it accepts.
fn help(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let mut help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    if !help.ends_with('.') {
        help.push('.');
    }
    let values = arg.get_possible_values();
    if !is_switch(arg) && !values.is_empty() {
        help.push_str(" Values:");
        for (number, value) in values.iter().enumerate() {
            let about = value
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            let separator = if number == 0 { "" } else { ";" };
            help.push_str(&format!("{separator} {} ({about})", value.get_name()));
        }
        help.push('.');
    }
    help
}

fn default(arg: &Arg) -> Option<String> {
    let default = arg
        .get_default_values()
        .first()?
        .to_string_lossy()
        .into_owned();
    (!is_switch(arg)).then_some(default)
}

fn placeholder(arg: &Arg) -> Option<String> {
    if is_switch(arg) {
        return None;
    }
    let name = arg.get_value_names().and_then(|names| names.first());
    let name = name.map_or_else(|| arg.get_id().as_str().to_uppercase(), ToString::to_string);
    let is_optional = arg
        .get_num_args()
        .is_some_and(|count| count.min_values() == 0);
    Some(if is_optional {
        format!("[{name}]")
    } else {
        name
    })
}

/// The value of a key in the example.
fn value(arg: &Arg) -> String {
    if is_switch(arg) {
        return "true".to_owned();
    }
    let value = default(arg)
        .or_else(|| placeholder(arg))
        .unwrap_or_default();
    match value.parse::<i64>() {
        Ok(number) => number.to_string(),
        Err(_) if is_list(arg) => format!("[{}]", quoted(&value)),
        Err(_) => quoted(value.trim_matches(['[', ']'])),
    }
}

/// The text as a string of TOML. JSON strings are TOML strings.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{7f}', "\\u007f")
}

/// The text in lines of up to [`WIDTH`] characters.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn file(name: &str) -> String {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
    }

    #[test]
    fn the_files_are_written_from_the_definitions_of_the_flags() {
        let remedy = "out of date: run `make reference`";
        assert_eq!(file("switchyard.example.toml"), example(), "{remedy}");
        let docs = file("docs/configuration.md");
        assert!(
            docs.contains(&reference()),
            "docs/configuration.md is {remedy}"
        );
    }

    #[test]
    fn help_example_and_reference_have_the_same_options() {
        let mut serve = serve();
        let help = serve.render_long_help().to_string();
        let (example, reference) = (example(), reference());
        let args: Vec<&Arg> = serve.get_arguments().filter(|arg| is_key(arg)).collect();
        assert!(args.len() > 30, "{}", args.len());
        for arg in &args {
            let name = arg.get_long().unwrap();
            assert!(help.contains(&format!("--{name}")), "{name}");
            assert!(reference.contains(&format!("| `--{name}")), "{name}");
            let key = format!("\n#{name} = ");
            assert_eq!(example.matches(&key).count(), 1, "{name}");
        }
        assert_eq!(
            example.lines().filter(|line| is_setting(line)).count(),
            args.len()
        );
        assert_eq!(
            reference
                .lines()
                .filter(|line| line.starts_with("| `--"))
                .count(),
            args.len()
        );
    }

    /// Whether the line of the example is a key that is commented out.
    fn is_setting(line: &str) -> bool {
        line.starts_with('#') && line.chars().nth(1).is_some_and(|c| c.is_ascii_lowercase())
    }

    #[test]
    fn each_line_of_the_example_is_a_valid_setting() {
        let (serve, example) = (serve(), example());
        let settings: Vec<String> = example
            .lines()
            .map(|line| {
                if is_setting(line) {
                    line.trim_start_matches('#')
                } else {
                    line
                }
                .to_owned()
            })
            .collect();
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("switchyard.toml");
        fs::write(&path, settings.join("\n")).unwrap();
        let connection = crate::config::Connection::definition();
        let given = super::super::file::read(&path, &serve, &connection);
        let given = given.unwrap().serve;
        assert_eq!(
            given.len(),
            example.lines().filter(|line| is_setting(line)).count()
        );
        let with_default = |name: &str| {
            serve.get_arguments().any(|arg| {
                arg.get_long() == Some(name) && (is_switch(arg) || default(arg).is_some())
            })
        };
        let defaults: Vec<_> = given
            .into_iter()
            .filter(|it| with_default(&it.name))
            .collect();
        assert!(defaults.len() > 10);
        let refused = super::super::file::refused(&defaults, &serve);
        assert!(refused.is_empty(), "{refused:?}");
    }
}

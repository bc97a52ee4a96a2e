//! The command line together with the environment and the configuration file. Flags take precedence over environment
//! variables, and both over the file.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command as Definition, CommandFactory, FromArgMatches, Id};

use super::connection::CONNECTION;
use super::file::{self, ConfigFile, FileSetting, is_key, is_switch};
use super::{Command, Connection};
use crate::secret::Hash;
use crate::store::without_password;

/// The options that SIGHUP applies.
const RELOADABLE: [&str; 14] = [
    "admin-token",
    "admin-token-file",
    "admin-user",
    "admin-password",
    "admin-password-file",
    "ui-key",
    "ui-keys-file",
    "qless-token",
    "qless-token-file",
    "relay-token",
    "relay-token-file",
    "jobq-token",
    "jobq-token-file",
    "log-level",
];

/// A parsed command line.
#[derive(Debug)]
pub struct Loaded {
    pub command: Command,
    /// The configuration file, if there is one.
    pub file: Option<PathBuf>,
    /// The flags of the command that have a value and that `switchyard serve` has too, in the order of the help.
    pub settings: Vec<Setting>,
    words: Vec<OsString>,
}

/// An option and where its value comes from.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The long name of the flag, which is also the key of the file.
    pub name: String,
    pub value: Value,
    pub source: Source,
    /// Compares values without keeping secrets.
    fingerprint: Hash,
}

/// The value of an option, as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Switch,
    One(String),
    Many(Vec<String>),
    Secret,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Default,
    /// The line of the file.
    File(usize),
    /// The name of the variable.
    Environment(String),
    Flag,
}

/// Why a command line cannot be used.
#[derive(Debug)]
pub enum LoadError {
    /// The arguments are wrong, or ask for help.
    Usage(clap::Error),
    File {
        path: PathBuf,
        problems: Vec<String>,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Usage(error) => f.write_str(error.to_string().trim()),
            LoadError::File { path, problems } => {
                write!(f, "{}: {}", path.display(), problems.join("; "))
            }
        }
    }
}

/// The definition of the program. Options that follow those of a connection are not listed under its heading.
pub fn definition() -> Definition {
    let connection: Vec<Id> = Connection::definition()
        .get_arguments()
        .map(|arg| arg.get_id().clone())
        .collect();
    without_heading(Command::command(), &connection)
}

/// Removes the heading of a connection from all other options of the command and of its subcommands.
fn without_heading(definition: Definition, connection: &[Id]) -> Definition {
    definition
        .mut_args(|arg| {
            let is_below = arg.get_help_heading() == Some(CONNECTION);
            match is_below && !connection.contains(arg.get_id()) {
                true => arg.help_heading(None::<&'static str>),
                false => arg,
            }
        })
        .mut_subcommands(|subcommand| without_heading(subcommand, connection))
}

/// Parses these arguments, the program's name included.
///
/// # Errors
/// If they, an environment variable or the configuration file are wrong, or if they ask for help.
pub fn load(words: Vec<OsString>) -> Result<Loaded, LoadError> {
    let mut definition = definition();
    definition.build();
    let skeleton = skeleton(&definition).no_binary_name(false);
    let found = match skeleton.try_get_matches_from(&words) {
        Ok(found) => found,
        // The command itself explains the error better, or prints its help.
        Err(error) => {
            let usage = definition.try_get_matches_from(&words).err();
            return Err(LoadError::Usage(usage.unwrap_or(error)));
        }
    };
    let (leaf, found, depth) = leaf(&definition, &found);
    let leaf = leaf.clone();
    let Some(path) = config_file(&leaf, found) else {
        return finish(definition, words.clone(), words, &leaf, None);
    };
    let failed = |problems| LoadError::File {
        path: path.clone(),
        problems,
    };
    let serve = definition
        .find_subcommand("serve")
        .cloned()
        .unwrap_or_default();
    let read = file::read(&path, &serve, &Connection::definition()).map_err(failed)?;
    let (given, keys) = match is_client(&leaf) {
        true => (
            profile(&leaf, found, read).map_err(failed)?,
            Connection::definition(),
        ),
        false => (read.serve, serve),
    };
    let free = given.iter().filter(|given| is_free(given, &leaf, found));
    let mut used: Vec<FileSetting> = free.cloned().collect();
    // The credentials of a profile are for its own server.
    if is_client(&leaf)
        && given.iter().any(|it| it.name == SERVER)
        && !used.iter().any(|it| it.name == SERVER)
    {
        used.retain(|it| !CREDENTIALS.contains(&it.name.as_str()));
    }
    // Behind the names of the subcommands.
    let mut all = words.clone();
    let place = (depth + 1).min(all.len());
    all.splice(
        place..place,
        used.iter().flat_map(|given| given.flags.clone()),
    );
    let file = Some((path.as_path(), used.as_slice()));
    finish(definition, words, all, &leaf, file).map_err(|error| {
        let refused = file::refused(&used, &keys);
        match error {
            LoadError::Usage(_) if !refused.is_empty() => failed(refused),
            error => error,
        }
    })
}

/// Whether the command connects to a server, so that it uses a profile of the file.
fn is_client(leaf: &Definition) -> bool {
    leaf.get_arguments().any(|arg| arg.get_id() == PROFILE)
}

/// The ID of the option that names a profile.
const PROFILE: &str = "profile";

/// The key of a profile with its server, and those with its credentials.
const SERVER: &str = "server";
const CREDENTIALS: [&str; 3] = ["token", "token-file", "user"];

/// The keys of the profile that a flag or the environment names. Without a name, those of the profile `default`, which
/// need not exist.
fn profile(
    leaf: &Definition,
    found: &ArgMatches,
    mut file: ConfigFile,
) -> Result<Vec<FileSetting>, Vec<String>> {
    let Some(name) = value_of(leaf, found, PROFILE) else {
        return Ok(file.profiles.remove("default").unwrap_or_default());
    };
    let name = name.to_string_lossy();
    file.profiles.remove(&*name).ok_or_else(|| {
        let names: Vec<String> = file.profiles.into_keys().collect();
        let known = match names.is_empty() {
            true => "the file has none".to_owned(),
            false => format!("the file has {}", names.join(", ")),
        };
        vec![format!("no profile \"{name}\"; {known}")]
    })
}

impl Loaded {
    /// Reads the configuration file again, and files with secrets.
    ///
    /// # Errors
    /// As [`load`].
    pub fn reload(&self) -> Result<Loaded, LoadError> {
        load(self.words.clone())
    }

    /// The names of the options that differ: first those that SIGHUP applies, then those that need a restart.
    pub fn changes<'a>(&'a self, new: &'a Loaded) -> (Vec<&'a str>, Vec<&'a str>) {
        let has = |loaded: &Loaded, setting: &Setting| {
            let same = |other: &Setting| {
                other.name == setting.name && other.fingerprint == setting.fingerprint
            };
            loaded.settings.iter().any(same)
        };
        let removed = self.settings.iter().filter(|setting| !has(new, setting));
        let added = new.settings.iter().filter(|setting| !has(self, setting));
        let mut names: Vec<&str> = removed.chain(added).map(|it| it.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
            .into_iter()
            .partition(|name| RELOADABLE.contains(name))
    }
}

/// Parses all arguments, those from the file included.
fn finish(
    mut definition: Definition,
    words: Vec<OsString>,
    all: Vec<OsString>,
    of: &Definition,
    file: Option<(&Path, &[FileSetting])>,
) -> Result<Loaded, LoadError> {
    let matches = definition
        .try_get_matches_from_mut(all)
        .map_err(LoadError::Usage)?;
    let (_, found, _) = leaf(&definition, &matches);
    let given = file.map_or(&[][..], |(_, given)| given);
    let is_option = |arg: &&Arg| is_key(arg) && is_of_serve(&definition, arg);
    let settings = of.get_arguments().filter(is_option);
    let settings = settings
        .filter_map(|arg| setting(arg, found, given))
        .collect();
    let command = Command::from_arg_matches(&matches)
        .map_err(|error| LoadError::Usage(error.format(&mut definition)))?;
    Ok(Loaded {
        command,
        file: file.map(|(path, _)| path.to_owned()),
        settings,
        words,
    })
}

/// Whether `switchyard serve` has the option too. It does not have `--json` of `switchyard doctor`.
fn is_of_serve(definition: &Definition, arg: &Arg) -> bool {
    let serve = definition.find_subcommand("serve");
    let mut options = serve.into_iter().flat_map(Definition::get_arguments);
    options.any(|option| option.get_id() == arg.get_id())
}

/// The same commands and options without types and rules, to see which options a command line contains.
fn skeleton(definition: &Definition) -> Definition {
    // Without help and version, so that the command itself responds to them.
    let args = definition
        .get_arguments()
        .filter(|arg| !matches!(arg.get_long(), Some("help" | "version")));
    let args = args.map(|arg| {
        let action = match arg.get_action() {
            ArgAction::SetTrue => ArgAction::SetTrue,
            _ if arg.is_positional() => ArgAction::Set,
            _ => ArgAction::Append,
        };
        let is_valued = !matches!(action, ArgAction::SetTrue);
        let mut plain = Arg::new(arg.get_id().clone())
            .action(action)
            .last(arg.is_last_set())
            .allow_hyphen_values(arg.is_allow_hyphen_values_set());
        if let Some(long) = arg.get_long() {
            plain = plain.long(long.to_owned());
        }
        if let Some(short) = arg.get_short() {
            plain = plain.short(short);
        }
        if let Some(index) = arg.get_index() {
            plain = plain.index(index);
        }
        match arg.get_num_args() {
            Some(count) if is_valued => plain
                .num_args(count)
                .value_parser(clap::value_parser!(OsString)),
            _ => plain,
        }
    });
    let subcommands = definition
        .get_subcommands()
        .filter(|it| it.get_name() != "help");
    Definition::new(definition.get_name().to_owned())
        .aliases(definition.get_all_aliases().map(str::to_owned))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .subcommand_required(definition.is_subcommand_required_set())
        .args(args)
        .subcommands(subcommands.map(skeleton))
}

/// The subcommand that runs, its arguments, and how many names lead to it.
fn leaf<'a>(
    mut definition: &'a Definition,
    mut matches: &'a ArgMatches,
) -> (&'a Definition, &'a ArgMatches, usize) {
    let mut depth = 0;
    while let Some((name, inner)) = matches.subcommand()
        && let Some(next) = definition.find_subcommand(name)
    {
        (definition, matches, depth) = (next, inner, depth + 1);
    }
    (definition, matches, depth)
}

/// The configuration file that a flag or the environment names, if the command takes one.
fn config_file(leaf: &Definition, found: &ArgMatches) -> Option<PathBuf> {
    value_of(leaf, found, "config").map(PathBuf::from)
}

/// The value of an option that the command has, from its flag or from the environment.
fn value_of(leaf: &Definition, found: &ArgMatches, id: &str) -> Option<OsString> {
    let arg = leaf.get_arguments().find(|arg| arg.get_id() == id)?;
    let flag = found.get_raw(id).and_then(Iterator::last);
    let variable = || arg.get_env().and_then(env::var_os);
    flag.map(OsString::from).or_else(variable)
}

/// Whether the command has the option, and neither a flag nor the environment sets it or an alternative to it.
fn is_free(given: &FileSetting, leaf: &Definition, found: &ArgMatches) -> bool {
    let args = || leaf.get_arguments();
    let Some(arg) = args().find(|arg| arg.get_long() == Some(given.name.as_str())) else {
        return false;
    };
    let is_set = |arg: &Arg| {
        found.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
            || arg.get_env().and_then(env::var_os).is_some()
    };
    let alternatives = leaf.get_groups().filter(|group| {
        !(*group).clone().is_multiple() && group.get_args().any(|id| id == arg.get_id())
    });
    let mut alternatives = alternatives.flat_map(clap::ArgGroup::get_args);
    let replaced = |id: &Id| args().any(|other| other.get_id() == id && is_set(other));
    !is_set(arg) && !alternatives.any(replaced)
}

/// The value of an option; `None` if it has none.
fn setting(arg: &Arg, found: &ArgMatches, given: &[FileSetting]) -> Option<Setting> {
    let (id, name) = (arg.get_id().as_str(), arg.get_long()?);
    let raw: Vec<String> = found
        .get_raw(id)?
        .map(|it| it.to_string_lossy().into_owned())
        .collect();
    let from_file = given.iter().find(|given| given.name == name);
    let source = match (found.value_source(id)?, from_file) {
        (ValueSource::CommandLine, Some(given)) => Source::File(given.line),
        (ValueSource::CommandLine, None) => Source::Flag,
        (ValueSource::EnvVariable, _) => Source::Environment(
            arg.get_env()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        ),
        _ => Source::Default,
    };
    if is_switch(arg) && !found.get_flag(id) {
        return None;
    }
    Some(Setting {
        name: name.to_owned(),
        fingerprint: Hash::of(raw.join("\0")),
        value: shown(arg, name, raw),
        source,
    })
}

fn shown(arg: &Arg, name: &str, raw: Vec<String>) -> Value {
    match raw {
        _ if is_switch(arg) => Value::Switch,
        // The password of such a URL is its only secret part.
        raw if ["database", "otlp-endpoint"].contains(&name) => {
            Value::One(without_password(&raw.concat()))
        }
        _ if arg.is_hide_env_values_set() => Value::Secret,
        raw if file::is_list(arg) => {
            let parts = raw
                .iter()
                .flat_map(|value| match arg.get_value_delimiter() {
                    Some(delimiter) => value.split(delimiter).map(str::to_owned).collect(),
                    None => vec![value.clone()],
                });
            Value::Many(parts.collect())
        }
        raw => Value::One(raw.concat()),
    }
}

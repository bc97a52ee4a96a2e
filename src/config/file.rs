//! The configuration file: TOML whose keys are the long names of the flags of `switchyard serve`, and tables
//! `[profiles.NAME]` whose keys are those of the flags that connect to a server. Each value becomes a flag, so that
//! it is parsed and checked exactly like one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use clap::builder::{OsStr, Resettable};
use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, ArgAction, Command as Definition};
use toml::de::{DeTable, DeValue};

/// Maximum size of a configuration file, in bytes.
pub const CONFIG_FILE_BYTES_MAX: u64 = 256 << 10;

/// How similar a misspelled key must be to the name that is suggested: 0 is unrelated, 1 is equal.
const SIMILARITY_MIN: f64 = 0.7;

/// An option that the file sets, as flags.
#[derive(Clone, Debug)]
pub struct FileSetting {
    /// The key: the long name of the flag.
    pub name: String,
    pub line: usize,
    /// The flags with their values.
    pub flags: Vec<OsString>,
}

/// The keys of a file.
#[derive(Clone, Debug, Default)]
pub struct ConfigFile {
    pub serve: Vec<FileSetting>,
    /// The keys of each profile.
    pub profiles: BTreeMap<String, Vec<FileSetting>>,
}

/// The key of the table with the profiles.
const PROFILES: &str = "profiles";

/// Whether the file can set this option.
pub fn is_key(arg: &Arg) -> bool {
    let name = arg.get_long().unwrap_or_default();
    !arg.is_hide_set() && !matches!(name, "" | "config" | "profile" | "help" | "version")
}

/// Whether an option has several values.
pub fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append) || arg.get_value_delimiter().is_some()
}

/// Whether an option is a switch, without a value.
pub fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

/// Reads the file. `serve` and `connection` define its keys and those of profiles.
///
/// # Errors
/// All problems of the file, each with its line. They contain no values, which may be secrets.
pub fn read(
    path: &Path,
    serve: &Definition,
    connection: &Definition,
) -> Result<ConfigFile, Vec<String>> {
    let text = read_text(path).map_err(|why| vec![why])?;
    parse(&text, serve, connection)
}

fn read_text(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    file.take(CONFIG_FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    if u64::try_from(text.len()).is_ok_and(|length| length > CONFIG_FILE_BYTES_MAX) {
        return Err(format!(
            "larger than the limit of {CONFIG_FILE_BYTES_MAX} bytes"
        ));
    }
    Ok(text)
}

fn parse(
    text: &str,
    serve: &Definition,
    connection: &Definition,
) -> Result<ConfigFile, Vec<String>> {
    let table = DeTable::parse(text).map_err(|error| {
        // The error's own text would quote the line, and with it perhaps a secret.
        let at = error.span().map_or(String::new(), |span| at(text, &span));
        vec![format!("{at}{}", error.message())]
    })?;
    let (mut file, mut problems) = (ConfigFile::default(), Vec::new());
    let top = table.get_ref();
    if let Some((key, profiles)) = top.get_key_value(PROFILES) {
        match profiles.get_ref() {
            DeValue::Table(profiles) => {
                for (name, profile) in profiles {
                    let DeValue::Table(keys) = profile.get_ref() else {
                        problems.push((line(text, &name.span()), not_a_profile()));
                        continue;
                    };
                    let given = keys_of(text, keys, connection, &mut problems);
                    file.profiles.insert(name.get_ref().to_string(), given);
                }
            }
            _ => problems.push((line(text, &key.span()), not_a_profile())),
        }
    }
    file.serve = keys_of(text, top, serve, &mut problems);
    if problems.is_empty() {
        return Ok(file);
    }
    problems.sort();
    let problems = problems.into_iter();
    Err(problems
        .map(|(line, why)| format!("line {line}: {why}"))
        .collect())
}

fn not_a_profile() -> String {
    format!("{PROFILES}: expected tables [{PROFILES}.NAME]")
}

/// The keys of a table that the definition has, in the order of their lines. Adds a problem for each other key, and
/// for each wrong value.
fn keys_of(
    text: &str,
    table: &DeTable<'_>,
    definition: &Definition,
    problems: &mut Vec<(usize, String)>,
) -> Vec<FileSetting> {
    let mut given = Vec::new();
    for (key, value) in table.iter().filter(|(key, _)| key.get_ref() != PROFILES) {
        let line = line(text, &key.span());
        let name: &str = key.get_ref();
        let found = definition
            .get_arguments()
            .find(|arg| is_key(arg) && arg.get_long() == Some(name));
        let flags = match found {
            None => Err(unknown(name, definition)),
            Some(arg) => flags(arg, name, value.get_ref()),
        };
        match flags {
            Ok(flags) => given.push(FileSetting {
                name: name.to_owned(),
                line,
                flags,
            }),
            Err(why) => problems.push((line, why)),
        }
    }
    given.sort_by_key(|given| given.line);
    given
}

fn at(text: &str, span: &Range<usize>) -> String {
    format!("line {}: ", line(text, span))
}

/// The number of the line where the span starts.
fn line(text: &str, span: &Range<usize>) -> usize {
    let before = text.bytes().take(span.start);
    before.filter(|byte| *byte == b'\n').count() + 1
}

fn unknown(name: &str, definition: &Definition) -> String {
    let names = definition
        .get_arguments()
        .filter(|arg| is_key(arg))
        .filter_map(Arg::get_long);
    let near = names.map(|known| (strsim::jaro(known, &name.replace('_', "-")), known));
    let near = near
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    match near {
        Some((_, near)) => format!("unknown key \"{name}\"; did you mean \"{near}\"?"),
        None => format!("unknown key \"{name}\"; docs/configuration.md lists all keys"),
    }
}

/// The flags with the value of this key.
fn flags(arg: &Arg, name: &str, value: &DeValue<'_>) -> Result<Vec<OsString>, String> {
    let flag = || vec![OsString::from(format!("--{name}"))];
    let with = |value: String| OsString::from(format!("--{name}={value}"));
    // The value is optional (`--hsts`).
    let is_optional = arg
        .get_num_args()
        .is_some_and(|count| count.min_values() == 0);
    match value {
        DeValue::Boolean(is_on) if is_switch(arg) || is_optional => {
            Ok(if *is_on { flag() } else { Vec::new() })
        }
        _ if is_switch(arg) => Err(format!("{name}: expected true or false")),
        DeValue::Array(values) if is_list(arg) => {
            let values = values.iter().map(|value| scalar(value.get_ref()));
            let values = values.map(|value| value.map(with)).collect::<Option<_>>();
            values.ok_or_else(|| format!("{name}: expected an array of strings"))
        }
        value => match scalar(value) {
            Some(value) => Ok(vec![with(value)]),
            None if is_list(arg) => Err(format!("{name}: expected an array of strings")),
            None => Err(format!("{name}: expected a string or a whole number")),
        },
    }
}

/// The text of a string or a whole number.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => {
            let number = i64::from_str_radix(number.as_str(), number.radix()).ok()?;
            Some(number.to_string())
        }
        _ => None,
    }
}

/// The values that the options refuse, each with its line.
pub fn refused(given: &[FileSetting], definition: &Definition) -> Vec<String> {
    // Without the environment, so that only the file can be wrong.
    let definition = definition.clone().no_binary_name(true);
    let definition = definition.mut_args(|arg| arg.env(Resettable::<OsStr>::Reset));
    let readable = given
        .iter()
        .filter(|given| !given.flags.iter().any(is_pipe));
    let refused = readable.filter_map(|given| {
        let error = definition
            .clone()
            .try_get_matches_from(&given.flags)
            .err()?;
        let why = match error.kind() {
            ErrorKind::ValueValidation => std::error::Error::source(&error)?.to_string(),
            ErrorKind::InvalidValue => match error.get(ContextKind::ValidValue) {
                Some(valid) => format!("expected one of {valid}"),
                None => "expected a value".to_owned(),
            },
            // Options that belong together are checked when all are known.
            ErrorKind::MissingRequiredArgument | ErrorKind::ArgumentConflict => return None,
            _ => "the value is not valid".to_owned(),
        };
        Some(format!("line {}: {}: {why}", given.line, given.name))
    });
    refused.collect()
}

/// Whether the flag names a pipe with a secret, which cannot be read a second time.
fn is_pipe(flag: &OsString) -> bool {
    let path = flag.to_str().and_then(|flag| flag.split_once("-file="));
    let found = path.and_then(|(_, path)| fs::metadata(path).ok());
    found.is_some_and(|found| found.file_type().is_fifo())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::config::{Command, Connection};

    fn serve() -> Definition {
        let mut command = Command::command();
        command.build();
        command.find_subcommand("serve").unwrap().clone()
    }

    fn read(text: &str) -> Result<ConfigFile, Vec<String>> {
        parse(text, &serve(), &Connection::definition())
    }

    #[test]
    fn values_become_flags() {
        let text = r#"
listen = "[::1]:3000"      # a comment
"no-auth" = true
open-qless = false
lmstfy-body-max = 65_535
hsts = true
allowed-host = ["a.example", "b.example"]
trusted-proxy = "10.0.0.0/8"
"#;
        let given = read(text).unwrap().serve;
        let flags = given.iter().flat_map(|given| &given.flags);
        let flags: Vec<_> = flags.map(|flag| flag.to_str().unwrap()).collect();
        let expected = [
            "--listen=[::1]:3000",
            "--no-auth",
            "--lmstfy-body-max=65535",
            "--hsts",
            "--allowed-host=a.example",
            "--allowed-host=b.example",
            "--trusted-proxy=10.0.0.0/8",
        ];
        assert_eq!(flags, expected);
        assert_eq!(given[1].line, 3);
    }

    #[test]
    fn problems_name_their_line_and_no_value() {
        for (text, expected) in [
            (
                "lisen = 1",
                r#"line 1: unknown key "lisen"; did you mean "listen"?"#,
            ),
            (
                "\nopen_qless = true",
                r#"line 2: unknown key "open_qless"; did you mean "open-qless"?"#,
            ),
            (
                "connection-timeout = 1",
                r#"line 1: unknown key "connection-timeout""#,
            ),
            ("[server]\nlisten = 1", "line 1: unknown key \"server\""),
            ("config = 'other.toml'", "line 1: unknown key \"config\""),
            (
                "no-auth = 'secret'",
                "line 1: no-auth: expected true or false",
            ),
            (
                "listen = ['secret']",
                "line 1: listen: expected a string or a whole number",
            ),
            (
                "allowed-host = [1.5]",
                "line 1: allowed-host: expected an array of strings",
            ),
            ("\n\nadmin-token = \"secret", "line 3: "),
            ("listen = 'a'\nlisten = 'b'", "line 2: duplicate key"),
            (
                "profiles = 1",
                "line 1: profiles: expected tables [profiles.NAME]",
            ),
            (
                "[profiles]\na = 'secret'",
                "line 2: profiles: expected tables",
            ),
            (
                "[profiles.a]\nservr = 'secret'",
                "line 2: unknown key \"servr\"; did you mean \"server\"?",
            ),
            (
                "[profiles.a]\nlisten = 'secret'",
                "line 2: unknown key \"listen\"",
            ),
        ] {
            let problems = read(text).unwrap_err();
            assert!(problems[0].starts_with(expected), "{problems:?}");
            assert!(!problems[0].contains("secret"), "{problems:?}");
        }
        let problems = read("a = 1\nb = 2").unwrap_err();
        assert_eq!(problems.len(), 2, "all problems are reported at once");
    }

    #[test]
    fn profiles_have_keys_of_their_own() {
        let text =
            "listen = '[::1]:1'\n[profiles.a]\nserver = 'http://a'\nuser = 'ada'\n[profiles.b]\n";
        let file = read(text).unwrap();
        assert_eq!(file.serve.len(), 1);
        assert_eq!(file.profiles.keys().collect::<Vec<_>>(), ["a", "b"]);
        let flags: Vec<_> = file.profiles["a"].iter().flat_map(|it| &it.flags).collect();
        assert_eq!(flags, ["--server=http://a", "--user=ada"]);
        assert_eq!(file.profiles["a"][1].line, 4);
    }

    #[test]
    fn values_are_checked_like_those_of_flags() {
        for (text, expected) in [
            (
                "listen = 'nowhere'",
                Some("line 1: listen: invalid socket address syntax"),
            ),
            (
                "durability = 'secret'",
                Some("line 1: durability: expected one of full, process"),
            ),
            ("hsts = -1", Some("line 1: hsts: -1 is not in 0..=63072000")),
            (
                "admin-token = ''",
                Some("line 1: admin-token: must not be empty"),
            ),
            ("tls-cert = 'a.pem'", None),
            ("max-connections = 10", None),
        ] {
            let given = read(text).unwrap().serve;
            let refused = refused(&given, &serve());
            assert_eq!(refused.first().map(String::as_str), expected);
        }
    }
}

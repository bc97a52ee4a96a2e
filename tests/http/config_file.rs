//! The configuration file, `switchyard config`, shell completions and the manual page.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::support::eventually;
use crate::support::keys::ADMIN;
use crate::support::{Server, database, log::Logged};

/// A folder with a configuration file.
struct Configured(TempDir);

impl Configured {
    fn new(text: &str) -> Configured {
        let configured = Configured(TempDir::new().unwrap());
        configured.write(text);
        configured
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("switchyard.toml")
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).unwrap();
    }

    fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Server::program();
        command.args(arguments).arg("--config").arg(self.path());
        // It is an option too.
        command
            .env_remove("RUST_LOG")
            .envs(variables.iter().copied());
        command.output().unwrap()
    }

    /// Standard output of a command that succeeds.
    #[track_caller]
    fn printed(&self, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        stdout(&self.run(arguments, variables))
    }
}

#[track_caller]
fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn an_invalid_log_filter_is_refused_with_its_possible_sources() {
    let file = Configured::new("");
    let output = file.run(&["serve"], &[("RUST_LOG", "switchyard=loud")]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = stderr(&output);
    assert!(
        text.contains("switchyard=loud") && text.contains("RUST_LOG"),
        "{text}"
    );
    assert!(text.contains("expected a level such as `info`"), "{text}");
}

#[test]
fn a_flag_overrides_the_environment_which_overrides_the_file() {
    let file = Configured::new(
        "relay-body-max = 1\nlmstfy-body-max = 1\n\njobq-body-max = 1\nno-auth = true\n",
    );
    let variables = [
        ("SWITCHYARD_LMSTFY_BODY_MAX", "2"),
        ("SWITCHYARD_JOBQ_BODY_MAX", "2"),
        ("SWITCHYARD_NO_AUTH", "false"),
    ];
    let arguments = ["config", "show", "--sources", "--jobq-body-max", "3"];
    let shown = file.printed(&arguments, &variables);
    let path = file.path().display().to_string();
    for (start, source) in [
        ("relay-body-max = 1 ", format!("# file: {path}, line 1")),
        (
            "lmstfy-body-max = 2 ",
            "# environment: SWITCHYARD_LMSTFY_BODY_MAX".to_owned(),
        ),
        ("jobq-body-max = 3 ", "# flag".to_owned()),
        ("empty-queue-age = 600 ", "# default".to_owned()),
    ] {
        let line = shown.lines().find(|line| line.starts_with(start));
        let line = line.unwrap_or_else(|| panic!("{start}: {shown}"));
        assert!(line.ends_with(&source), "{line}");
    }
    assert!(!shown.contains("sources ="), "{shown}");
    assert!(
        !shown.contains("no-auth"),
        "the environment turns it off: {shown}"
    );
}

#[test]
fn config_show_prints_an_equivalent_configuration_file() {
    let text = "allowed-host = [\"a.example\", \"b.example\"]\nhsts = true\ntrusted-proxy = \"10.0.0.0/8\"\nopen-relay = true\n";
    let file = Configured::new(text);
    let shown = file.printed(&["config", "show"], &[]);
    assert!(
        shown.contains("allowed-host = [\"a.example\", \"b.example\"]\n"),
        "{shown}"
    );
    assert!(shown.contains("open-relay = true\n"), "{shown}");
    let again = Configured::new(&shown);
    assert_eq!(again.printed(&["config", "show"], &[]), shown);
}

#[test]
fn secrets_are_not_shown() {
    let file = Configured::new(
        "qless-token = \"the-secret-of-qless\"\nui-key = [\"viewer:olga:the-secret-of-olga\"]\n\
         admin-token = \"the-secret-of-admin\"\ndatabase = \"postgres://me:the-secret-of-db@host/db\"\n\
         otlp-endpoint = \"http://me:the-secret-of-otlp@host:4318\"\n",
    );
    let variables = [("SWITCHYARD_RELAY_TOKEN", "the-secret-of-relay")];
    let arguments = [
        "config",
        "show",
        "--sources",
        "--jobq-token",
        "the-secret-of-jobq",
    ];
    let shown = file.printed(&arguments, &variables);
    assert!(!shown.contains("secret"), "{shown}");
    for name in [
        "qless-token",
        "ui-key",
        "admin-token",
        "relay-token",
        "jobq-token",
    ] {
        assert!(
            shown.contains(&format!("# {name} is set and not shown")),
            "{shown}"
        );
    }
    assert!(
        shown.contains("database = \"postgres://me@host/db\""),
        "{shown}"
    );
    assert!(
        shown.contains("otlp-endpoint = \"http://me@host:4318"),
        "{shown}"
    );
}

#[test]
fn an_option_of_the_environment_overrides_its_alternative_in_the_file() {
    let file = Configured::new("admin-token-file = \"/does/not/exist\"\n");
    let output = file.run(&["config", "check"], &[]);
    assert!(
        stderr(&output).contains("line 1: admin-token-file"),
        "{output:?}"
    );
    let variables = [("SWITCHYARD_ADMIN_TOKEN", ADMIN)];
    let shown = file.printed(&["config", "show"], &variables);
    assert!(shown.contains("# admin-token is set"), "{shown}");
    assert!(!shown.contains("admin-token-file"), "{shown}");
}

#[test]
fn wrong_files_are_refused_with_their_lines() {
    for (text, expected) in [
        (
            "lisen = \"127.0.0.1:0\"\nx = 1",
            &[
                "line 1: unknown key \"lisen\"; did you mean \"listen\"?",
                "line 2: unknown key",
            ][..],
        ),
        (
            "listen = \"secret\"",
            &["line 1: listen: invalid socket address"],
        ),
        ("admin-token = \"secret", &["line 1: "]),
        ("tls-cert = \"secret\"", &["--tls-key"]),
        (
            "admin-token = 'a'\nadmin-token-file = '/dev/null'",
            &["line 2: admin-token-file: must not be empty"],
        ),
        ("open-qless = true\nqless-token = 'a'", &["--qless-token"]),
    ] {
        let file = Configured::new(text);
        for command in [
            &["config", "check"][..],
            &["serve", "--database", "sqlite::memory:"],
        ] {
            let output = file.run(command, &[]);
            let error = stderr(&output);
            assert!(!output.status.success(), "{text}");
            assert!(output.stdout.is_empty(), "{output:?}");
            for expected in expected {
                assert!(error.contains(expected), "{expected}: {error}");
            }
            assert!(!error.contains("secret"), "{error}");
        }
    }
    let missing = Configured::new("");
    fs::remove_file(missing.path()).unwrap();
    let output = missing.run(&["config", "check"], &[]);
    assert!(stderr(&output).contains("No such file"), "{output:?}");
    let large = Configured::new(&"#".repeat(256 << 10));
    large.printed(&["config", "check"], &[]);
    large.write(&"#".repeat((256 << 10) + 1));
    assert!(!large.run(&["config", "check"], &[]).status.success());
}

#[test]
fn check_reports_what_keeps_the_server_from_starting() {
    let file = Configured::new("listen = \"0.0.0.0:3000\"\n");
    let output = file.run(&["config", "check"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--admin-token"), "{output:?}");
    file.write("listen = \"0.0.0.0:3000\"\ninsecure = true\n");
    let output = file.run(&["config", "check"], &[]);
    assert!(
        stdout(&output).contains("the configuration is valid"),
        "{output:?}"
    );
    assert!(
        stderr(&output).contains("warning: accepting unauthenticated"),
        "{output:?}"
    );
    file.write("hsts = true\n");
    assert!(!file.run(&["config", "check"], &[]).status.success());
    // Each other listener, too.
    for (listener, open) in [
        ("redis-listen", "open-qless"),
        ("metrics-listen", "open-metrics"),
    ] {
        let options =
            format!("admin-token = 'long-enough-for-an-admin'\n{listener} = '0.0.0.0:3001'\n");
        for command in [
            &["config", "check"][..],
            &["doctor", "--database", "sqlite::memory:"],
        ] {
            file.write(&options.replace("admin-token = 'long-enough-for-an-admin'\n", ""));
            let output = file.run(command, &[]);
            assert_eq!(output.status.code(), Some(1), "{output:?}");
            let printed = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                stderr(&output)
            );
            assert!(
                printed.contains("cannot listen on 0.0.0.0:3001"),
                "{printed}"
            );
            file.write(&format!("{options}{open} = true\n"));
            let output = file.run(command, &[]);
            let printed = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                stderr(&output)
            );
            let warning = "accepting unauthenticated requests at 0.0.0.0:3001";
            assert!(printed.contains(warning), "{printed}");
        }
    }
}

/// The status of a qless request with this token.
async fn status(server: &Server, token: &str) -> u16 {
    let request = server.http.get(format!("http://{}/queues", server.address));
    request
        .bearer_auth(token)
        .send()
        .await
        .unwrap()
        .status()
        .as_u16()
}

/// A server that gets its listening address and its tokens from the file.
fn with_file(file: &Configured) -> Logged {
    let path = file.path().display().to_string();
    Logged::with("info", &["--config", &path])
}

/// Checks that of the two tokens of qless, the server accepts only this one.
async fn assert_only_token(server: &Server, accepted: &str) {
    for token in ["the-first-token-of-qless", "the-second-token-of-qless"] {
        let expected = if token == accepted { 200 } else { 401 };
        assert_eq!(status(server, token).await, expected, "{token}");
    }
}

#[tokio::test]
async fn the_server_uses_the_file_and_sighup_applies_changed_secrets() {
    let file = Configured::new("qless-token = \"the-first-token-of-qless\"\n");
    let logged = with_file(&file);
    assert_only_token(&logged.server, "the-first-token-of-qless").await;
    file.write(
        "qless-token = \"the-second-token-of-qless\"\nrelay-body-max = 77\nopen-relay = true\n",
    );
    logged.server.reload();
    eventually("the reload", async || {
        logged.log().contains("reloaded the configuration file")
    })
    .await;
    assert_only_token(&logged.server, "the-second-token-of-qless").await;
    let log = logged.log();
    assert!(log.contains("changed: qless-token"), "{log}");
    let pending = "takes effect only after a restart: open-relay, relay-body-max";
    assert!(log.contains(pending), "{log}");
    assert!(!log.contains("-token-of-"), "{log}");
}

#[tokio::test]
async fn a_wrong_file_or_one_that_opens_an_api_changes_nothing() {
    let file = Configured::new("qless-token = \"the-first-token-of-qless\"\n");
    let logged = with_file(&file);
    for (number, (text, why)) in [
        (
            "qless-token = \"the-second-token-of-qless\"\nlisen = 1\n",
            "did you mean",
        ),
        ("", "lose its last"),
        (
            "qless-token = \"the-second-token-of-qless\"\nrelay-token = \"x\"\n",
            "first credentials",
        ),
        ("qless-token = \"\"\n", "must not be empty"),
    ]
    .into_iter()
    .enumerate()
    {
        file.write(text);
        logged.server.reload();
        eventually("the error", async || {
            let log = logged.log();
            log.matches("nothing was changed").count() == number + 1 && log.contains(why)
        })
        .await;
        assert_only_token(&logged.server, "the-first-token-of-qless").await;
    }
}

#[tokio::test]
async fn sighup_changes_the_log_level() {
    let folder = Configured::new("log-level = \"error\"\n");
    let database = database::address(&folder.0.path().join("jobs.db"));
    let path = folder.path().display().to_string();
    let mut command = Server::command(&database, &["--config", &path]);
    let log = folder.0.path().join("log");
    command
        .env_remove("RUST_LOG")
        .stderr(fs::File::create(&log).unwrap());
    let server = Server::run(command);
    folder.write("log-level = \"info\"\n");
    server.reload();
    eventually("the new level", async || {
        let log = fs::read_to_string(&log).unwrap();
        log.contains("changed: log-level") && log.contains("reloaded the configuration file")
    })
    .await;
}

#[test]
fn tokens_are_created_in_the_database_of_the_file() {
    let folder = TempDir::new().unwrap();
    let database = database::address(&folder.path().join("tokens.db"));
    let file = Configured::new(&format!("database = \"{database}\"\nrelay-body-max = 1\n"));
    file.printed(&["token", "create", "mail"], &[]);
    let listed = file.printed(&["token", "list"], &[]);
    assert!(listed.starts_with("mail\t"), "{listed}");
}

/// All flags and commands of the program, hidden ones excepted, from its help.
fn flags_of_help(path: &[&str], found: &mut Vec<(Vec<String>, String)>) {
    let output = Server::program().args(path).arg("--help").output().unwrap();
    let help = stdout(&output);
    let mut in_commands = false;
    for line in help.lines() {
        if !line.starts_with(' ') {
            in_commands = line == "Commands:";
        }
        let word = line.split_whitespace().next().unwrap_or_default();
        if in_commands && line.starts_with("  ") && !line.starts_with("   ") && word != "help" {
            found.push((
                path.iter().map(ToString::to_string).collect(),
                word.to_owned(),
            ));
            flags_of_help(&[path, &[word]].concat(), found);
        }
        let is_flag = line.trim_start().starts_with('-');
        let long = line
            .split([' ', ',', '[', '='])
            .find(|word| word.starts_with("--") && word.len() > 2);
        if let (true, false, Some(long)) = (is_flag, in_commands, long) {
            found.push((
                path.iter().map(ToString::to_string).collect(),
                long.to_owned(),
            ));
        }
    }
}

#[test]
fn completions_and_manual_name_every_command_and_flag() {
    let mut all = Vec::new();
    flags_of_help(&[], &mut all);
    assert!(all.len() > 80, "{all:?}");
    let run = |arguments: &[&str]| stdout(&Server::program().args(arguments).output().unwrap());
    let manual = run(&["man"]).replace('\\', "");
    assert!(manual.contains(".TH"), "{manual}");
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]);
        for (path, word) in &all {
            let written = match (shell, word.strip_prefix("--")) {
                ("fish", Some(long)) => format!("-l {long}"),
                _ => word.clone(),
            };
            assert!(script.contains(&written), "{shell}: {path:?} {word}");
        }
    }
    for (path, word) in &all {
        let expected = match word.starts_with("--") {
            true => word.clone(),
            false => format!("switchyard {} {word}", path.join(" "))
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .to_uppercase(),
        };
        let is_group = all.iter().any(|(parent, _)| parent.last() == Some(word));
        assert!(
            manual.contains(&expected) || is_group,
            "{path:?} {word}: {expected}"
        );
    }
}

#[test]
fn bash_completes_flags_and_commands() {
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("switchyard.bash");
    let written = Server::program()
        .args(["completions", "bash"])
        .output()
        .unwrap();
    fs::write(&script, stdout(&written)).unwrap();
    for (words, expected) in [
        (&["switchyard", "con"][..], "config"),
        (&["switchyard", "serve", "--relay-b"], "--relay-body-max"),
        (&["switchyard", "serve", "--durability", ""], "process"),
        (&["switchyard", "token", "cr"], "create"),
    ] {
        let program = format!(
            "source {}; COMP_WORDS=({}); COMP_CWORD={}; _switchyard switchyard {} {}; echo ${{COMPREPLY[@]}}",
            script.display(),
            words
                .iter()
                .map(|word| format!("'{word}'"))
                .collect::<Vec<_>>()
                .join(" "),
            words.len() - 1,
            format_args!("'{}'", words[words.len() - 1]),
            format_args!("'{}'", words[words.len() - 2]),
        );
        let output = Command::new("bash")
            .args(["-c", &program])
            .output()
            .unwrap();
        let completed = stdout(&output);
        assert!(
            completed.split_whitespace().any(|word| word == expected),
            "{words:?}: {output:?}"
        );
    }
}

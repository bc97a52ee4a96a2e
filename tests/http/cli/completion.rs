//! Completion of the names of queues.

use std::process::Command;

use super::Cli;
use crate::support::Server;

const QUEUES: [&str; 5] = ["mail", "mails", "images", "a b", "lmstfy:shop/mail"];

#[tokio::test]
async fn names_of_queues_are_completed() {
    let server = Server::with(&["--no-auth"]);
    let cli = Cli::of(&server);
    // Clients choose these names; a shell would run the commands, or not take the names literally.
    let hostile = [
        "m$(id)", "m`id`", "m;id", "m&id", "m|id", "m>id", "~root", "m*", "m'", "m\"", "m\\",
        "m!1", "=id", "mé",
    ];
    for queue in QUEUES.into_iter().chain(hostile) {
        cli.run(&["job", "put", queue, "1"]).ok();
    }
    assert_eq!(cli.run(&["complete-queues", "mai"]).ok(), "mail\nmails\n");
    assert_eq!(
        cli.run(&["complete-queues", "lmstfy:"]).ok(),
        "lmstfy:shop/mail\n"
    );
    let all = cli.run(&["complete-queues"]).ok();
    let mut all: Vec<&str> = all.lines().collect();
    all.sort_unstable();
    assert_eq!(all, ["images", "lmstfy:shop/mail", "mail", "mails"]);
}

#[tokio::test]
async fn bash_completes_names_of_queues() {
    let server = Server::with(&["--no-auth"]);
    let cli = Cli::of(&server);
    for queue in QUEUES {
        cli.run(&["job", "put", queue, "1"]).ok();
    }
    let folder = tempfile::TempDir::new().unwrap();
    let script = folder.path().join("switchyard.bash");
    std::fs::write(&script, cli.run(&["completions", "bash"]).ok()).unwrap();
    let script = script.display();
    let program = Server::path();
    let program = program.display();
    for (line, expected) in [
        ("switchyard queue pause ma", "mail mails"),
        ("switchyard queue pause mail mails im", "images"),
        ("switchyard job put ", "mail mails images lmstfy:shop/mail"),
        ("switchyard job put lmstfy:sh", "shop/mail"),
        ("switchyard job show a --queue mai", "mail mails"),
        ("switchyard job move --to im", "images"),
        ("switchyard queue pau", "pause"),
        ("switchyard queue pause --js", "--json"),
    ] {
        let complete = format!(
            "switchyard() {{ '{program}' \"$@\"; }}
            source {script}
            COMP_LINE='{line}' COMP_POINT=${{#COMP_LINE}}
            read -ra COMP_WORDS <<<\"$COMP_LINE\"
            [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
            COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
            _switchyard_with_queues switchyard \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"
            echo \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        bash.env("SWITCHYARD_SERVER", format!("http://{}", server.address));
        let output = bash.args(["-c", &complete]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            text.trim(),
            expected,
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[tokio::test]
async fn the_scripts_of_zsh_and_fish_ask_for_names_of_queues() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    let zsh = cli.run(&["completions", "zsh"]).ok();
    assert!(
        zsh.contains("compdef _switchyard_with_queues switchyard"),
        "{zsh}"
    );
    let fish = cli.run(&["completions", "fish"]).ok();
    assert!(fish.contains("switchyard complete-queues"), "{fish}");
}

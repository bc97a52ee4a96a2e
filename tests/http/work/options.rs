//! The connection: profiles, tokens, TLS; and errors of the command line.

use super::{Folder, Worker, command};
use crate::support::Server;
use crate::support::tls::CertificatePair;

const TOKEN: &str = "the-token-of-qless-clients";

#[tokio::test]
async fn a_profile_of_the_configuration_file_names_server_and_token() {
    let (server, folder) = (Server::with(&["--qless-token", TOKEN]), Folder::new());
    let token = folder.write("token", TOKEN);
    let text = format!(
        "listen = '127.0.0.1:1'\n[profiles.default]\nserver = 'http://127.0.0.1:1'\n[profiles.test]\n\
         server = 'http://{}/'\ntoken-file = '{token}'\n",
        server.address
    );
    let file = folder.write("switchyard.toml", &text);
    let options = format!("--queue mail --drain --config {file} --profile test");
    Worker::run(command(&folder, &options, "true"))
        .ends_with(0)
        .await;
    // Flags take precedence over the profile.
    let options = format!("{options} --token another");
    let said = Worker::run(command(&folder, &options, "true"))
        .ends_with(1)
        .await;
    assert!(said.contains("server answered 401"), "{said}");
    // Another server does not get the credentials of the profile.
    let options = format!(
        "--queue mail --drain --config {file} --profile test --server http://{}",
        server.address
    );
    let said = Worker::run(command(&folder, &options, "true"))
        .ends_with(1)
        .await;
    assert!(said.contains("server answered 401"), "{said}");
    let options = format!("--queue mail --drain --config {file} --profile tset");
    let said = Worker::run(command(&folder, &options, "true"))
        .ends_with(1)
        .await;
    assert!(
        said.contains(r#"no profile "tset"; the file has default, test"#),
        "{said}"
    );
    assert!(!said.contains(TOKEN), "{said}");
}

#[tokio::test]
async fn a_program_inherits_no_secrets() {
    let (server, folder) = (Server::with(&["--qless-token", TOKEN]), Folder::new());
    let url = format!("http://{}/add/mail?host=client", server.address);
    for id in ["a", "b"] {
        let add = server.http.post(&url).bearer_auth(TOKEN);
        let added = add
            .body(format!(r#"{{"data": {{"id": "{id}", "meta": 1}}}}"#))
            .send();
        let added = added.await.unwrap();
        assert!(
            added.status().is_success(),
            "{}",
            added.text().await.unwrap()
        );
    }
    let run = async |options: &str, file: &str| {
        let script = format!(r#"env > "$DIR/{file}""#);
        let options = format!("--queue mail --once {options}");
        let mut command = command(&folder, &options, &script);
        command.env("SWITCHYARD_SERVER", format!("http://{}", server.address));
        command.env("SWITCHYARD_TOKEN", TOKEN).env("OTHER", "kept");
        for name in ["ADMIN_PASSWORD", "UI_KEYS", "JOBQ_TOKEN_FILE", "DATABASE"] {
            command.env(format!("SWITCHYARD_{name}"), "a-secret-of-the-server");
        }
        Worker::run(command).ends_with(0).await;
        folder.read(file)
    };
    let inherited = run("", "none").await;
    assert!(inherited.contains("OTHER=kept"), "{inherited}");
    assert!(inherited.contains("SWITCHYARD_JOB_ID="), "{inherited}");
    assert!(!inherited.contains(TOKEN), "{inherited}");
    assert!(!inherited.contains("a-secret-of-the-server"), "{inherited}");
    let inherited = run("--pass-env SWITCHYARD_TOKEN", "one").await;
    assert!(inherited.contains(&format!("SWITCHYARD_TOKEN={TOKEN}\n")));
    assert!(!inherited.contains("a-secret-of-the-server"), "{inherited}");
}

#[tokio::test]
async fn a_server_without_permission_ends_the_worker() {
    let (server, folder) = (Server::with(&["--qless-token", TOKEN]), Folder::new());
    let said = Worker::start(&server, &folder, "--queue mail", "true")
        .ends_with(1)
        .await;
    assert!(said.contains("server answered 401"), "{said}");
}

#[tokio::test]
async fn https_needs_a_trusted_certificate() {
    let (pair, folder) = (CertificatePair::new(), Folder::new());
    let server = pair.serve(&[]);
    server_url(&server, &folder, &pair, true).await;
    server_url(&server, &folder, &pair, false).await;
}

async fn server_url(server: &Server, folder: &Folder, pair: &CertificatePair, is_trusted: bool) {
    let mut options = format!("--queue mail --drain --server https://{}", server.address);
    if is_trusted {
        options.push_str(&format!(" --ca {}", pair.certificate().display()));
        Worker::run(command(folder, &options, "true"))
            .ends_with(0)
            .await;
        return;
    }
    // The certificate is not one of the system's, which can be missing.
    let other = CertificatePair::new();
    options.push_str(&format!(" --ca {}", other.certificate().display()));
    let mut worker = Worker::run(command(folder, &options, "true"));
    let said = worker.says("cannot connect to https://").await;
    worker.terminate();
    worker.ends_with(0).await;
    assert!(said.contains("certificate"), "{said}");
}

#[tokio::test]
async fn a_program_that_does_not_exist_ends_the_worker_before_it_claims() {
    let (server, folder) = (Server::with(&[]), Folder::new());
    server.client().add_ids("mail", &["a"]).await;
    for (program, expected) in [
        ("no-such-program", "is in no directory of PATH"),
        ("./no-such-program", "does not exist or is not executable"),
    ] {
        let mut command = tokio::process::Command::from(Server::program());
        command.args([
            "work",
            "--queue",
            "mail",
            "--server",
            &server.address,
            "--",
            program,
        ]);
        let said = Worker::run(command).ends_with(1).await;
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(server.client().state("a").await, "waiting");
    for (options, expected) in [
        ("--queue mail --server ftp://a", "is not an HTTP URL"),
        ("--queue mail --user ada", "--token"),
        ("--queue mail --profile test", "--config"),
        ("--queue mail --api lmstfy --ttr 1s", "--ttr must be longer"),
        ("", "--queue"),
    ] {
        let (code, output) = Worker::run(command(&folder, options, "true")).ended().await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(expected), "{options}: {said}");
        assert!([1, 2].contains(&code), "{options}: {code}");
    }
}

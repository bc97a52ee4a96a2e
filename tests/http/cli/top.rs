//! `switchyard top` in a pseudoterminal of 80 × 24 characters.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use serde_json::json;

use super::{Cli, fail_jobs};
use crate::support::Server;
use crate::support::keys::{UI_KEYS, VIEWER_KEY};

/// A guard against a screen that never appears; no test waits this long.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The program in its terminal.
struct Terminal {
    child: Child,
    /// What the terminal shows, and a notification for each change.
    screen: Arc<(Mutex<vt100::Parser>, Condvar)>,
    keys: File,
    /// Keeps the terminal open when the program has ended.
    device: OwnedFd,
}

impl Terminal {
    fn start(cli: &Cli) -> Terminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let device = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let mut command = cli.command(&["top"]);
        command.env("TERM", "xterm-256color");
        command.stdin(device.try_clone().unwrap());
        command.stdout(device.try_clone().unwrap());
        command.stderr(device.try_clone().unwrap());
        let child = command.spawn().unwrap();
        let screen = Arc::new((Mutex::new(vt100::Parser::new(24, 80, 0)), Condvar::new()));
        let mut output = File::from(master.try_clone().unwrap());
        let shared = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shared.0.lock().unwrap().process(&bytes[..count]);
                shared.1.notify_all();
            }
        });
        Terminal {
            child,
            screen,
            keys: File::from(master),
            device,
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen fulfills a condition.
    #[track_caller]
    fn until(&self, what: &str, is: impl Fn(&vt100::Screen) -> bool) {
        let (parser, changed) = &*self.screen;
        let parser = parser.lock().unwrap();
        let (parser, waited) = changed
            .wait_timeout_while(parser, WAIT_MAX, |it| !is(it.screen()))
            .unwrap();
        assert!(
            !waited.timed_out(),
            "{what}: {}",
            parser.screen().contents()
        );
    }

    /// Waits until the screen shows a text.
    #[track_caller]
    fn shows(&self, text: &str) {
        self.until(text, |screen| screen.contents().contains(text));
    }

    /// Waits until the program has ended, and checks that the terminal works as before.
    fn ended(&mut self) -> ExitStatus {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(began.elapsed() < WAIT_MAX, "the program does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        self.until("the main screen", |screen| {
            !screen.alternate_screen() && !screen.hide_cursor()
        });
        let modes = tcgetattr(&self.device).unwrap().local_modes;
        assert!(
            modes.contains(LocalModes::ICANON | LocalModes::ECHO),
            "{modes:?}"
        );
        status
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Whether the row of the queue `mail` shows that it is paused.
fn is_paused(screen: &vt100::Screen) -> bool {
    let text = screen.contents();
    let mut rows = text.lines();
    rows.any(|row| row.starts_with("mail ") && row.trim_end().ends_with("paused"))
}

#[tokio::test]
async fn the_keys_work_on_a_real_server() {
    let server = Server::with(&[]);
    let cli = Cli::of(&server);
    let job = json!({ "id": "welcome-1", "meta": { "to": "ada" } });
    server.client().post("/add/mail", job).await.ok();
    fail_jobs(&server, "bad", &["x"], ("Timeout", "no answer\u{1b}[2J")).await;
    let mut terminal = Terminal::start(&cli);
    terminal.shows("1 Queues (2)");
    // The order of the queues is that of their first jobs.
    terminal.shows("mail");
    terminal.press("p");
    terminal.shows("Queue “mail” paused.");
    terminal.until("the queue is marked", is_paused);
    server.client().add_ids("later", &["b"]).await;
    terminal.shows("1 Queues (3)");
    terminal.press("\r");
    terminal.shows("welcome-1");
    terminal.press("\r");
    terminal.shows("> job welcome-1");
    terminal.shows("\"ada\"");
    terminal.press("\u{1b}");
    terminal.shows("> mail, waiting");
    terminal.press("\u{1b}");
    // An escape and another key at once would be a single key.
    terminal.until("the queues", |screen| !screen.contents().contains("> mail"));
    terminal.press("2");
    terminal.shows(r"no answer\u{1b}[2J");
    terminal.press("r");
    terminal.shows("Retry failed jobs of group Timeout (1)? [y/N]");
    terminal.press("y");
    terminal.shows("no failed jobs");
    assert_eq!(server.client().state("x").await, "waiting");
    terminal.press("1/lat\r");
    terminal.shows("filter: lat");
    terminal.until("the others are hidden", |screen| !is_paused(screen));
    terminal.press("?");
    terminal.shows("pause or resume the queue");
    terminal.press("q");
    assert!(terminal.ended().success());
}

#[tokio::test]
async fn sigterm_restores_the_terminal() {
    let server = Server::with(&[]);
    let mut terminal = Terminal::start(&Cli::of(&server));
    terminal.shows("no queues yet");
    terminal.until("the alternate screen", vt100::Screen::alternate_screen);
    crate::support::signal("TERM", terminal.child.id());
    assert!(terminal.ended().success());
}

#[tokio::test]
async fn a_viewer_sees_why_a_key_is_refused() {
    let server = Server::with(&UI_KEYS);
    server.client().add_ids("mail", &["a"]).await;
    let mut terminal = Terminal::start(&Cli::of(&server).with_token(VIEWER_KEY));
    terminal.shows("mail");
    terminal.press("p");
    terminal.shows("You need the operator role");
    terminal.press("q");
    assert!(terminal.ended().success());
}

#[tokio::test]
async fn top_waits_for_a_server_that_restarts() {
    let folder = tempfile::TempDir::new().unwrap();
    let database = folder.path().join("jobs.db");
    let server = Server::on(&database, &[]);
    server.client().add_ids("mail", &["a"]).await;
    let mut terminal = Terminal::start(&Cli::of(&server));
    terminal.shows("1 Queues (1)");
    let address = server.address.clone();
    server.stop().await;
    terminal.shows("disconnected: ");
    let server = Server::on(&database, &["--listen", &address]);
    server.client().add_ids("images", &["b"]).await;
    terminal.shows("1 Queues (2)");
    terminal.until("connected again", |screen| {
        !screen.contents().contains("disconnected")
    });
    terminal.press("q");
    assert!(terminal.ended().success());
}

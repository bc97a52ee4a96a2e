//! The live feed of the dashboard (`/ui/events`): says when something may have changed.

use std::io::IsTerminal;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Result, SEC_FETCH_SITE, Session};
use crate::cli::exit::{Code, Failure};
use crate::cli::output::printable;
use crate::cli::{Outcome, print, print_notice, try_print};
use crate::client::Events;

/// The server sends an event at least every 15 s, so a longer silence is a lost connection.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// The first and the longest wait before an attempt to connect again.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(15);

/// Minimum time between two outputs of a watched command.
const INTERVAL: Duration = Duration::from_secs(1);

/// The feed of a server. Connects again after a failure, with increasing delays.
pub struct Feed {
    session: Session,
    events: Option<Events>,
    /// How long to wait before the next connection.
    wait: Option<Duration>,
}

impl Feed {
    pub fn new(session: Session) -> Feed {
        Feed {
            session,
            events: None,
            wait: None,
        }
    }

    /// Waits for the next change. A call that has to connect returns as soon as it is connected, because anything may
    /// have changed.
    ///
    /// # Errors
    /// If the connection fails. The next call waits and connects again.
    pub async fn changed(&mut self) -> Result<()> {
        match self.try_changed().await {
            Ok(()) => {
                self.wait = None;
                Ok(())
            }
            Err(failure) => {
                self.events = None;
                let wait = self.wait.map_or(WAIT_MIN, |wait| (wait * 2).min(WAIT_MAX));
                self.wait = Some(wait);
                Err(failure)
            }
        }
    }

    async fn try_changed(&mut self) -> Result<()> {
        let Some(events) = &mut self.events else {
            if let Some(wait) = self.wait {
                sleep(wait).await;
            }
            let request = self.session.client.get(["ui", "events"]);
            let events = request
                .header(SEC_FETCH_SITE, "same-origin")
                .events()
                .await?;
            self.events = Some(events);
            return Ok(());
        };
        loop {
            let event = timeout(SILENCE_MAX, events.next()).await;
            let event = event.map_err(|_| lost("no event for 45 s"))??;
            match event {
                Some(event) if event.name == "change" => return Ok(()),
                Some(_) => {}
                None => return Err(lost("the server closed the event stream")),
            }
        }
    }
}

fn lost(why: &str) -> Failure {
    Failure::new(Code::Unreachable, why)
}

/// Prints what `load` returns; with `watch` again after every change, until the command is interrupted.
///
/// # Errors
/// If `load` fails; with `watch` not if the server is unreachable: then it waits.
pub async fn watched(
    session: &Session,
    watch: bool,
    load: impl AsyncFn() -> Result<String>,
) -> Outcome {
    if !watch {
        print(&load().await?);
        return Ok(());
    }
    let mut feed = Feed::new(session.clone());
    let mut shown = String::new();
    let mut is_connected = true;
    loop {
        let next = Instant::now() + INTERVAL;
        let loaded = match feed.changed().await {
            Ok(()) => load().await,
            Err(failure) => Err(failure),
        };
        match loaded {
            Ok(text) => {
                is_connected = true;
                if text != shown {
                    // The output is a closed pipe.
                    if show(session, &text).is_err() {
                        return Ok(());
                    }
                    shown = text;
                }
            }
            Err(failure) if failure.code == Code::Unreachable => {
                if is_connected {
                    print_notice(&format!(
                        "{}; waiting for the server",
                        printable(&failure.message)
                    ));
                }
                is_connected = false;
            }
            Err(failure) => return Err(failure.into()),
        }
        sleep_until(next).await;
    }
}

/// Prints the text. On a terminal, clears the screen first, except for JSON.
fn show(session: &Session, text: &str) -> std::io::Result<()> {
    if session.json {
        try_print(text)
    } else if std::io::stdout().is_terminal() {
        try_print(&format!("\u{1b}[H\u{1b}[2J\u{1b}[3J{text}"))
    } else {
        try_print(&format!("{text}\n"))
    }
}

/// Waits until `is_done`, which is checked after every change, returns true.
///
/// # Errors
/// If the check fails.
pub async fn wait_until(session: &Session, is_done: impl AsyncFn() -> Result<bool>) -> Result<()> {
    let mut feed = Feed::new(session.clone());
    loop {
        let next = Instant::now() + INTERVAL;
        if is_done().await? {
            return Ok(());
        }
        // If the server remains unreachable, `is_done` returns the error.
        drop(feed.changed().await);
        sleep_until(next).await;
    }
}

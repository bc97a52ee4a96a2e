//! `switchyard top`: a dashboard in the terminal. It follows the live feed of the server, and reads what it shows with
//! the server functions of the dashboard after each change, at most once a second.

mod app;
mod data;
mod draw;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use self::app::{Action, App, Effect};
use self::data::{Loaded, View, act, load};
use super::Outcome;
use super::exit::{Code, Failure};
use super::remote::Session;
use super::remote::feed::Feed;
use crate::config::Top;

/// Minimum time between two reads, and how often relative times are drawn again.
const INTERVAL: Duration = Duration::from_secs(1);

/// How often the thread that reads keys checks whether it should end.
const KEY_INTERVAL: Duration = Duration::from_millis(200);

/// Keys that wait to be processed; more of them wait in the terminal.
const KEYS_MAX: usize = 64;

/// What happens outside of the terminal.
enum TopEvent {
    /// Something may have changed on the server.
    Changed,
    /// The feed is interrupted.
    Lost(Failure),
    /// What a view shows.
    Loaded(View, Result<Box<Loaded>, Failure>),
    /// The result of an action.
    Acted(Result<String, Failure>),
}

pub async fn run(options: &Top) -> Outcome {
    let session = Session::connect(&options.connection, false)?;
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::usage("switchyard top needs a terminal").into());
    }
    // Errors of the first read are shown without the dashboard.
    let first = load(&session, &View::Queues).await?;
    let terminal = ratatui::try_init();
    let terminal = terminal
        .map_err(|error| Failure::new(Code::Error, format!("cannot use the terminal: {error}")))?;
    let guard = TerminalGuard;
    let outcome = show(session, terminal, first).await;
    drop(guard);
    outcome
}

/// Restores the terminal when it is dropped. ratatui's own hook restores it after a panic.
struct TerminalGuard;

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

async fn show(session: Session, mut terminal: DefaultTerminal, first: Loaded) -> Outcome {
    let mut app = App::new(session.client.server());
    app.loaded(&View::Queues, Ok(first));
    let (sender, mut events) = channel(KEYS_MAX);
    let (mut keys, _reader) = keys();
    tokio::spawn(follow(session.clone(), sender.clone()));
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut is_loading, mut next_load) = (false, Instant::now() + INTERVAL);
    loop {
        terminal.draw(|frame| draw::draw(frame, &mut app))?;
        let may_load = app.is_stale && !is_loading;
        let effect = tokio::select! {
            key = keys.recv() => match key {
                Some(Event::Key(key)) => app.key(key),
                Some(_) => Effect::None,
                // The terminal is gone.
                None => Effect::Quit,
            },
            Some(event) = events.recv() => {
                match event {
                    TopEvent::Changed => app.changed(),
                    TopEvent::Lost(failure) => app.connection_lost(&failure),
                    TopEvent::Loaded(view, loaded) => {
                        (is_loading, next_load) = (false, Instant::now() + INTERVAL);
                        app.loaded(&view, loaded.map(|loaded| *loaded));
                    }
                    TopEvent::Acted(result) => app.acted(result),
                }
                Effect::None
            }
            () = sleep_until(next_load), if may_load => Effect::Load,
            _ = ticks.tick() => Effect::None,
            _ = terminate.recv() => Effect::Quit,
            _ = hang_up.recv() => Effect::Quit,
            _ = interrupt.recv() => Effect::Quit,
        };
        match effect {
            Effect::None => {}
            Effect::Quit => return Ok(()),
            Effect::Load if is_loading => app.is_stale = true,
            // A view that was just opened does not wait for the interval.
            Effect::Load => {
                (is_loading, app.is_stale) = (true, false);
                tokio::spawn(read(session.clone(), app.view().clone(), sender.clone()));
            }
            Effect::Act(action) => {
                tokio::spawn(run_action(session.clone(), action, sender.clone()));
            }
        }
    }
}

async fn read(session: Session, view: View, events: Sender<TopEvent>) {
    let loaded = load(&session, &view).await.map(Box::new);
    drop(events.send(TopEvent::Loaded(view, loaded)).await);
}

async fn run_action(session: Session, action: Action, events: Sender<TopEvent>) {
    let result = act(&session, &action).await;
    drop(events.send(TopEvent::Acted(result)).await);
}

async fn follow(session: Session, events: Sender<TopEvent>) {
    let mut feed = Feed::new(session);
    loop {
        let next = match feed.changed().await {
            Ok(()) => TopEvent::Changed,
            Err(failure) => TopEvent::Lost(failure),
        };
        if events.send(next).await.is_err() {
            return;
        }
    }
}

/// Ends the thread that reads keys when it is dropped.
struct Reader(Arc<AtomicBool>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The events of the terminal, which a thread reads. The channel closes when the terminal is gone.
fn keys() -> (Receiver<Event>, Reader) {
    let (sender, keys) = channel(KEYS_MAX);
    let is_ended = Arc::new(AtomicBool::new(false));
    let reader = Reader(Arc::clone(&is_ended));
    std::thread::spawn(move || {
        while !is_ended.load(Ordering::Relaxed) {
            let event = match event::poll(KEY_INTERVAL) {
                Ok(false) => continue,
                Ok(true) => event::read(),
                Err(error) => Err(error),
            };
            let Ok(event) = event else {
                return;
            };
            if sender.blocking_send(event).is_err() {
                return;
            }
        }
    });
    (keys, reader)
}

//! Reloads files on SIGHUP.

use std::io;

use futures::{Stream, StreamExt, stream};
use tokio::signal::unix::{SignalKind, signal};

use super::notify::ServiceManager;

/// A reload: the name of what is reloaded, for the log, and the function. If the function fails, nothing changes.
pub struct Reload {
    pub what: &'static str,
    pub run: Box<dyn FnMut() -> Result<(), String> + Send>,
}

/// The SIGHUPs that the process receives after this call. Signals that arrive together count as one.
///
/// # Errors
/// If the signal handler cannot be installed.
pub fn hangups() -> io::Result<impl Stream<Item = ()> + Send + Unpin> {
    let mut signals = signal(SignalKind::hangup())?;
    Ok(stream::poll_fn(move |context| signals.poll_recv(context)))
}

/// Runs all reloads for each signal, until there are no more signals. Reloads read files, so they run on a blocking
/// thread. The service manager learns when they start and end.
pub async fn reload_on(
    mut signals: impl Stream<Item = ()> + Unpin,
    mut reloads: Vec<Reload>,
    manager: ServiceManager,
) {
    while signals.next().await.is_some() {
        manager.reloading().await;
        let run = move || {
            let failed: Vec<_> = reloads.iter_mut().filter_map(run).collect();
            (reloads, failed.join(", "))
        };
        let (again, failed) = match tokio::task::spawn_blocking(run).await {
            Ok(ran) => ran,
            Err(error) => {
                tracing::error!(%error, "a reload panicked; SIGHUP is ignored until the server restarts");
                manager.ready("Listening; reloads are ignored").await;
                return;
            }
        };
        reloads = again;
        match failed.as_str() {
            "" => manager.ready("Listening; files reloaded").await,
            failed => {
                let status = format!("Listening; see the log for what was not reloaded: {failed}");
                manager.ready(&status).await;
            }
        }
    }
}

/// Returns what could not be reloaded.
fn run(reload: &mut Reload) -> Option<&'static str> {
    let what = reload.what;
    match (reload.run)() {
        Ok(()) => {
            tracing::info!("reloaded {what}");
            None
        }
        Err(why) => {
            tracing::error!("cannot reload {what}; nothing was changed: {why}");
            Some(what)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[tokio::test]
    async fn each_signal_runs_all_reloads_even_after_an_error() {
        let ran = Arc::new(Mutex::new(Vec::new()));
        let reload = |what: &'static str, outcome: Result<(), String>| {
            let ran = Arc::clone(&ran);
            let run = move || {
                ran.lock().unwrap().push(what);
                outcome.clone()
            };
            let run = Box::new(run);
            Reload { what, run }
        };
        let reloads = vec![
            reload("one", Err("no such file".to_owned())),
            reload("two", Ok(())),
        ];
        let manager = ServiceManager::default();
        reload_on(stream::iter([(), ()]), reloads, manager).await;
        assert_eq!(*ran.lock().unwrap(), ["one", "two", "one", "two"]);
    }
}

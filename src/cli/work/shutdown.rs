//! The end of a worker: first it claims no more jobs, then it stops the programs that still run.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Tells all parts of a worker when to end.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// No more jobs are claimed.
    finish: CancellationToken,
    /// Programs are stopped.
    stop: CancellationToken,
}

impl Shutdown {
    /// On SIGTERM or SIGINT, no more jobs are claimed, and after `grace` or at a second signal, programs are stopped.
    ///
    /// # Errors
    /// If the signals cannot be received.
    pub fn on_signals(grace: Duration) -> io::Result<Shutdown> {
        let shutdown = Shutdown::default();
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        tokio::spawn(shutdown.clone().listen(terminate, interrupt, grace));
        Ok(shutdown)
    }

    async fn listen(self, mut terminate: Signal, mut interrupt: Signal, grace: Duration) {
        either(&mut terminate, &mut interrupt).await;
        tracing::info!("stopping: no more jobs are claimed");
        self.finish.cancel();
        tokio::select! {
            () = tokio::time::sleep(grace) => {}
            () = either(&mut terminate, &mut interrupt) => {}
        }
        self.stop.cancel();
    }

    /// Claims no more jobs.
    pub fn finish(&self) {
        self.finish.cancel();
    }

    /// Waits until no more jobs may be claimed.
    pub async fn finishing(&self) {
        self.finish.cancelled().await;
    }

    /// Waits until programs must be stopped.
    pub async fn stopping(&self) {
        self.stop.cancelled().await;
    }
}

/// Waits for one of two signals.
async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

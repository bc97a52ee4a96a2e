//! `switchyard serve`: opens the database, listens, prints the startup banner, and serves until a signal.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::banner::{banner, first_token};
use super::{Outcome, dev, print};
use crate::auth::Keyring;
use crate::config::{Access, Monitoring, Serve};
use crate::engine::Engine;
use crate::http::{Listeners, Reload, Settings, hangups, reload_on, serve_engine};
use crate::store::without_password;

pub async fn run(options: &Serve) -> Outcome {
    let settings = options.settings()?;
    let (access, monitoring) = (&options.access, &options.monitoring);
    serve(options.listen, settings, access, monitoring, None).await
}

/// Serves until SIGTERM or SIGINT. With `generated_jobs`, first adds that many generated jobs, and then keeps adding
/// and working on some.
///
/// # Errors
/// If the configuration is unsafe, the address cannot be bound, or the database cannot be opened.
pub async fn serve(
    listen: SocketAddr,
    mut settings: Settings,
    access: &Access,
    monitoring: &Monitoring,
    generated_jobs: Option<usize>,
) -> Outcome {
    for warning in access.check(listen, &settings.auth)? {
        tracing::warn!("{warning}");
    }
    settings.hosts = access.hosts(listen, &settings.auth);
    let (metrics, warning) = monitoring.access(access, &settings.auth)?;
    settings.metrics = metrics;
    if let Some(warning) = warning {
        tracing::warn!("{warning}");
    }
    let (terminate, interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    // Installed before the banner is printed, because programs may send SIGHUP as soon as they read the address.
    let hangups = hangups()?;
    // The listener with the stricter requirements for keys.
    let strictest = monitoring
        .metrics_listen
        .filter(|_| settings.metrics.requires_credentials);
    let strictest = strictest.unwrap_or(listen);
    let mut reloads = vec![reload_keys(access, strictest, &settings.auth.keyring)];
    if let Some(tls) = settings.tls.clone() {
        let what = "the TLS certificate";
        let run = Box::new(move || tls.reload());
        reloads.push(Reload { what, run });
    }
    let listener = bind(listen).await?;
    let metrics = match monitoring.metrics_listen {
        Some(listen) => Some(bind(listen).await?),
        None => None,
    };
    let database = without_password(&settings.engine.database);
    let engine = Engine::open(&settings.engine)
        .await
        .map_err(|error| format!("cannot open {database}: {}", error.detail()))?;
    let address = listener.local_addr()?;
    let metrics_at = metrics.as_ref().map(TcpListener::local_addr).transpose()?;
    let token = first_token(&engine, &settings, address).await?;
    print(&banner(
        (address, metrics_at),
        &database,
        &settings,
        token.as_deref(),
    ));
    tokio::spawn(reload_on(hangups, reloads));
    if let Some(jobs) = generated_jobs {
        tokio::spawn(dev::generate_jobs(engine.clone(), jobs));
    }
    let listeners = Listeners {
        main: listener,
        metrics,
    };
    serve_engine(
        listeners,
        engine,
        &settings,
        stop_signal(terminate, interrupt),
    )
    .await?;
    Ok(())
}

async fn bind(listen: SocketAddr) -> Result<TcpListener, String> {
    let bound = TcpListener::bind(listen).await;
    bound.map_err(|error| format!("cannot listen on {listen}: {error}"))
}

/// Reloads the files with keys.
fn reload_keys(access: &Access, listen: SocketAddr, keyring: &Keyring) -> Reload {
    let (access, keyring) = (access.clone(), keyring.clone());
    let run = move || {
        keyring.replace(access.reload(listen)?);
        Ok(())
    };
    Reload {
        what: "keys",
        run: Box::new(run),
    }
}

/// Ends with the first SIGTERM or SIGINT; the second ends the process at once.
async fn stop_signal(mut terminate: Signal, mut interrupt: Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        std::process::exit(1);
    });
}

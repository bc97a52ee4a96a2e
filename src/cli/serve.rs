//! `switchyard serve`: opens the database, listens, prints the startup banner, and serves until a signal.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::banner::{banner, first_token};
use super::{Outcome, dev, print};
use crate::auth::Keyring;
use crate::config::{Access, Serve};
use crate::engine::Engine;
use crate::http::{Reload, Settings, hangups, reload_on, serve_engine};
use crate::store::without_password;

pub async fn run(options: &Serve) -> Outcome {
    let settings = options.settings()?;
    serve(options.listen, settings, &options.access, None).await
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
    generated_jobs: Option<usize>,
) -> Outcome {
    for warning in access.check(listen, &settings.auth)? {
        tracing::warn!("{warning}");
    }
    settings.hosts = access.hosts(listen, &settings.auth);
    let (terminate, interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    // Installed before the banner is printed, because programs may send SIGHUP as soon as they read the address.
    let hangups = hangups()?;
    let mut reloads = vec![reload_keys(access, listen, &settings.auth.keyring)];
    if let Some(tls) = settings.tls.clone() {
        let what = "the TLS certificate";
        let run = Box::new(move || tls.reload());
        reloads.push(Reload { what, run });
    }
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    let database = without_password(&settings.engine.database);
    let engine = Engine::open(&settings.engine)
        .await
        .map_err(|error| format!("cannot open {database}: {}", error.detail()))?;
    let address = listener.local_addr()?;
    let token = first_token(&engine, &settings, address).await?;
    print(&banner(address, &database, &settings, token.as_deref()));
    tokio::spawn(reload_on(hangups, reloads));
    if let Some(jobs) = generated_jobs {
        tokio::spawn(dev::generate_jobs(engine.clone(), jobs));
    }
    serve_engine(
        listener,
        engine,
        &settings,
        stop_signal(terminate, interrupt),
    )
    .await?;
    Ok(())
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

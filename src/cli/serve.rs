//! `switchyard serve`: opens the database, listens, prints the startup banner, and serves until a signal.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::banner::{banner, first_token};
use super::{Outcome, dev, log, print};
use crate::auth::{Auth, Keyring, is_loopback};
use crate::config::{Access, LoadError, Loaded, Monitoring, Subcommand};
use crate::engine::Engine;
use crate::http::{Listeners, Reload, ServiceManager, Settings, hangups, reload_on, serve_engine};
use crate::store::without_password;
use crate::traces::Exporter;

pub async fn run(loaded: Loaded) -> Outcome {
    let Subcommand::Serve(options) = &loaded.command.subcommand else {
        return Ok(());
    };
    let settings = options.settings()?;
    let (access, monitoring) = (options.access.clone(), options.monitoring.clone());
    let addresses = Addresses {
        main: options.listen,
        redis: options.network.redis_listen,
    };
    serve(
        addresses,
        settings,
        &access,
        &monitoring,
        Some(loaded),
        None,
    )
    .await
}

/// The addresses to listen on, besides that for metrics.
#[derive(Clone, Copy)]
pub struct Addresses {
    pub main: SocketAddr,
    /// For qless over the Redis protocol.
    pub redis: Option<SocketAddr>,
}

/// Serves until SIGTERM or SIGINT. SIGHUP reloads the configuration file of `loaded`, or otherwise the files with keys,
/// and the TLS certificate. With `generated_jobs`, first adds that many generated jobs, and then keeps adding and
/// working on some.
///
/// # Errors
/// If the configuration is unsafe, the address cannot be bound, or the database cannot be opened.
pub async fn serve(
    addresses: Addresses,
    mut settings: Settings,
    access: &Access,
    monitoring: &Monitoring,
    loaded: Option<Loaded>,
    generated_jobs: Option<usize>,
) -> Outcome {
    let listen = addresses.main;
    let (metrics, warnings) =
        access.check_all(listen, addresses.redis, monitoring, &settings.auth)?;
    settings.hosts = access.hosts(listen, &settings.auth);
    settings.metrics = metrics;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let endpoint = monitoring.otlp_endpoint.as_deref();
    let traces = endpoint.map(Exporter::start).transpose()?;
    let (terminate, interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    // Installed before the banner is printed, because programs may send SIGHUP as soon as they read the address.
    let hangups = hangups()?;
    // A listener with the strictest requirements for keys.
    let metrics_listen = monitoring
        .metrics_listen
        .filter(|_| settings.metrics.requires_credentials);
    let mut others = [addresses.redis, metrics_listen].into_iter().flatten();
    let strictest = others.find(|other| !is_loopback(*other)).unwrap_or(listen);
    let reloads = reloads(loaded, access, strictest, &settings);
    let listener = bind(listen).await?;
    let metrics = bind_if_set(monitoring.metrics_listen).await?;
    let redis = bind_if_set(addresses.redis).await?;
    let database = without_password(&settings.engine.database);
    let engine = Engine::open(&settings.engine)
        .await
        .map_err(|error| format!("cannot open {database}: {}", error.detail()))?;
    let address = listener.local_addr()?;
    let metrics_at = metrics.as_ref().map(TcpListener::local_addr).transpose()?;
    let redis_at = redis.as_ref().map(TcpListener::local_addr).transpose()?;
    let token = first_token(&engine, &settings, address).await?;
    print(&banner(
        (address, metrics_at, redis_at),
        &database,
        &settings,
        token.as_deref(),
    ));
    let manager = ServiceManager::of_process();
    tokio::spawn(reload_on(hangups, reloads, manager.clone()));
    if let Some(jobs) = generated_jobs {
        tokio::spawn(dev::generate_jobs(engine.clone(), jobs));
    }
    let listeners = Listeners {
        main: listener,
        metrics,
        redis,
    };
    manager.ready(&format!("Listening on {address}")).await;
    let stop = stop_signal(terminate, interrupt, manager);
    let served = serve_while_writable(listeners, engine, &settings, stop).await;
    if let Some(traces) = traces {
        traces.stop().await;
    }
    served
}

/// Serves until `stop` completes. If the database can no longer be trusted, ends the process at once: to stop
/// gracefully would close the database, which could write to it.
async fn serve_while_writable(
    listeners: Listeners,
    engine: Engine,
    settings: &Settings,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Outcome {
    let writing = engine.clone();
    tokio::select! {
        served = serve_engine(listeners, engine, settings, stop) => Ok(served?),
        () = writing.writer_failed() => {
            tracing::error!("stopping, because nothing can be written");
            std::process::exit(1)
        }
    }
}

async fn bind(listen: SocketAddr) -> Result<TcpListener, String> {
    let bound = async {
        let socket = match listen {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // The address is free at once after a restart.
        socket.set_reuseaddr(true)?;
        socket.bind(listen)?;
        socket.listen(BACKLOG)
    };
    let bound: io::Result<TcpListener> = bound.await;
    bound.map_err(|error| format!("cannot listen on {listen}: {error}"))
}

/// New connections that wait to be accepted. With more, clients try again after a second. The system may have a lower
/// limit.
const BACKLOG: u32 = 4_096;

async fn bind_if_set(listen: Option<SocketAddr>) -> Result<Option<TcpListener>, String> {
    match listen {
        Some(listen) => bind(listen).await.map(Some),
        None => Ok(None),
    }
}

/// What SIGHUP reloads.
fn reloads(
    loaded: Option<Loaded>,
    access: &Access,
    listen: SocketAddr,
    settings: &Settings,
) -> Vec<Reload> {
    let mut reloads = vec![match loaded.filter(|loaded| loaded.file.is_some()) {
        Some(loaded) => reload_config(loaded, listen, settings.auth.clone()),
        None => reload_keys(access, listen, &settings.auth.keyring),
    }];
    if let Some(tls) = settings.tls.clone() {
        let what = "the TLS certificate";
        let run = Box::new(move || tls.reload());
        reloads.push(Reload { what, run });
    }
    reloads
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

/// Reloads the configuration file and the files with keys. `auth` is that of the running server.
fn reload_config(started: Loaded, listen: SocketAddr, auth: Auth) -> Reload {
    let mut last: Option<Loaded> = None;
    let run = move || {
        let new = reloaded(&started, last.as_ref().unwrap_or(&started), listen, &auth)?;
        last = Some(new);
        Ok(())
    };
    Reload {
        what: "the configuration file",
        run: Box::new(run),
    }
}

/// Applies what can be applied, and logs what has changed since the last reload and since the start.
fn reloaded(
    started: &Loaded,
    last: &Loaded,
    listen: SocketAddr,
    auth: &Auth,
) -> Result<Loaded, String> {
    let (Subcommand::Serve(at_start), Subcommand::Serve(before)) =
        (&started.command.subcommand, &last.command.subcommand)
    else {
        return Err("not a server".to_owned());
    };
    before.access.check_files()?;
    let one_line = |error: LoadError| error.to_string().replace('\n', " ");
    let new = started.reload().map_err(one_line)?;
    let Subcommand::Serve(options) = &new.command.subcommand else {
        return Err("not a server".to_owned());
    };
    let no_auth = at_start.access.no_auth;
    let credentials = options.access.replacements(listen, auth, no_auth)?;
    log::set_level(&options.log_level, at_start.monitoring.log_requests)?;
    auth.keyring.replace(credentials);
    let (applied, _) = last.changes(&new);
    if !applied.is_empty() {
        tracing::info!("changed: {}", applied.join(", "));
    }
    let (_, pending) = started.changes(&new);
    if !pending.is_empty() {
        let pending = pending.join(", ");
        tracing::warn!("changed, but takes effect only after a restart: {pending}");
    }
    Ok(new)
}

/// Ends with the first SIGTERM or SIGINT; the second ends the process at once.
async fn stop_signal(mut terminate: Signal, mut interrupt: Signal, manager: ServiceManager) {
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
    manager.stopping().await;
}

//! The command line: start, signals, end.

mod greeting;
mod token;

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZero;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use greeting::{first_token, greeting};
use switchyard::config::{Access, Action, Command, Network};
use switchyard::demo;
use switchyard::doors::Keyring;
use switchyard::engine::{Engine, Options};
use switchyard::server::{Reload, Settings, hangups, raise_open_files, reload_on, serve_engine};
use switchyard::store::{self, Copied, Progress, shown};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often a copy, or the filling of a demonstration, tells how far it is.
const TELL_EVERY: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // Else it would panic where nobody reads what we write any more.
        .log_internal_errors(false)
        .init();
    // A core for the database's thread: where more threads than cores want to run, each handing over of
    // a request or a result waits for the scheduler.
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.saturating_sub(1).max(1))
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => runtime.block_on(start()),
        Err(error) => {
            tracing::error!("cannot start threads: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start() -> ExitCode {
    raise_open_files();
    let outcome = match Command::parse().action {
        Action::Serve(serve) => match serve.settings() {
            Ok(settings) => run(serve.listen, settings, &serve.access, None).await,
            Err(why) => Err(why.into()),
        },
        Action::Dev {
            listen,
            jobs,
            access,
            network,
        } => {
            let engine = Options {
                database: "sqlite::memory:".to_owned(),
                ..Options::default()
            };
            match demonstration(engine, &access, &network) {
                Ok(settings) => run(listen, settings, &access, Some(jobs)).await,
                Err(why) => Err(why.into()),
            }
        }
        Action::Token(command) => token::run(command).await,
        Action::Copy(databases) => copy(&databases.from, &databases.to).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// How the server of `switchyard dev` is to behave.
fn demonstration(engine: Options, access: &Access, network: &Network) -> Result<Settings, String> {
    Ok(Settings {
        engine,
        allow_flush: true,
        doors: access.doors()?,
        no_auth: access.no_auth,
        limits: network.limits(),
        proxies: network.proxies(),
        tls: network.tls()?,
        hsts: network.hsts()?,
        ..Settings::default()
    })
}

/// Serves until told to stop; with a number, made-up jobs: so many at once, and then others that keep moving.
async fn run(
    listen: SocketAddr,
    mut settings: Settings,
    access: &Access,
    made_up: Option<usize>,
) -> Result<(), Box<dyn std::error::Error>> {
    for warning in access.check(listen, &settings.doors)? {
        tracing::warn!("{warning}");
    }
    settings.hosts = access.hosts(listen, &settings.doors);
    let (terminate, interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    // Before the address is printed: from then on a SIGHUP must not end the process.
    let hangups = hangups()?;
    let mut reloads = vec![reload_keys(access, listen, &settings.doors.keyring)];
    if let Some(tls) = settings.tls.clone() {
        let what = "the TLS certificate";
        let run = Box::new(move || tls.reload());
        reloads.push(Reload { what, run });
    }
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    let database = shown(&settings.engine.database);
    let engine = Engine::open(&settings.engine)
        .await
        .map_err(|error| format!("cannot open {database}: {}", error.detail()))?;
    let address = listener.local_addr()?;
    let token = first_token(&engine, &settings, address).await?;
    say(&greeting(address, &database, &settings, token.as_deref()));
    tokio::spawn(reload_on(hangups, reloads));
    if let Some(jobs) = made_up {
        tokio::spawn(demonstrate(engine.clone(), jobs));
    }
    serve_engine(
        listener,
        engine,
        &settings,
        told_to_stop(terminate, interrupt),
    )
    .await?;
    Ok(())
}

/// Reads the files with keys again.
fn reload_keys(access: &Access, listen: SocketAddr, keyring: &Keyring) -> Reload {
    let (access, keyring) = (access.clone(), keyring.clone());
    let run = move || {
        keyring.replace(access.reread(listen)?);
        Ok(())
    };
    Reload {
        what: "keys",
        run: Box::new(run),
    }
}

/// Fills the database, telling how far it is about once a second, and then lets made-up jobs move.
async fn demonstrate(engine: Engine, jobs: usize) {
    if jobs > 0 {
        let mut told = Instant::now();
        let tell = |done: usize| {
            if done >= jobs || told.elapsed() >= TELL_EVERY {
                told = Instant::now();
                tracing::info!("{} of {jobs} demo jobs created", done.min(jobs));
            }
        };
        match demo::fill(&engine, jobs, tell).await {
            Ok(()) => say(&format!("{jobs} demo jobs created\n")),
            Err(error) => tracing::error!("cannot create the demo jobs: {error}"),
        }
    }
    demo::play(engine).await;
}

/// Prints it. Whoever has closed the pipe does not want to know.
fn say(text: &str) {
    let mut stdout = std::io::stdout().lock();
    drop(
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush()),
    );
}

/// Copies a database, telling how far it is about once a second.
async fn copy(from: &str, to: &str) -> Result<(), Box<dyn std::error::Error>> {
    let began = Instant::now();
    let mut told: Option<Instant> = None;
    let mut tell = |at: Progress| {
        let done = at.rows >= at.of;
        if done && at.of > 0 || told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            told = Some(Instant::now());
            // Whoever has closed the pipe does not want to know.
            drop(writeln!(
                std::io::stderr(),
                "{} {}: {} of {} rows",
                at.done,
                at.table,
                at.rows,
                at.of
            ));
        }
    };
    let copied = store::copy(from, to, &mut tell)
        .await
        .map_err(|error| format!("cannot copy {} to {}: {error}", shown(from), shown(to)))?;
    say(&format!(
        "{:<16}{:>12}  checksum on both sides\n",
        "table", "rows"
    ));
    for Copied {
        table,
        rows,
        checksum,
    } in &copied
    {
        say(&format!("{table:<16}{rows:>12}  {checksum:016x}\n"));
    }
    let rows: u64 = copied.iter().map(|copied| copied.rows).sum();
    let seconds = began.elapsed().as_secs_f64();
    say(&format!(
        "{rows} rows copied and verified in {seconds:.1} s: {} holds what {} held\n",
        shown(to),
        shown(from)
    ));
    Ok(())
}

/// Ends with the first SIGTERM or SIGINT; the second ends the process at once.
async fn told_to_stop(mut terminate: Signal, mut interrupt: Signal) {
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

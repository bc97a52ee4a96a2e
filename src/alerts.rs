//! Alerts: calls webhooks when problems of the overview begin and end.
//!
//! Two tasks run on the server that leads maintenance. One compares the problems with the rules, and adds deliveries to
//! the database ([`watch`]). The other sends what is due ([`delivery`]). So a delivery survives restarts, and a new
//! leader continues where the last one stopped.
//!
//! [`watch`]: crate::alerts::watch
//! [`delivery`]: crate::alerts::delivery

pub mod delivery;
pub mod watch;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::blocking::poll_blocking_if_many;
use crate::client::Webhooks;
use crate::engine::{AlertDelivery, Engine, Error, keep_running};
use crate::secret::SigningKey;
use crate::ui::pages::overview::load::load_overview;
use crate::ui::pages::overview::reportable::reportable_problems;
use delivery::{LEASE_S, attempt};
use watch::{Change, Watch};

/// How often the problems are compared with the rules.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// How often the server looks for due deliveries.
const SEND_INTERVAL: Duration = Duration::from_secs(1);

/// Deliveries that are sent at the same time.
const CONCURRENT: usize = 16;

/// The settings of alerts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Signs the bodies.
    pub key: SigningKey,
    /// The name of the server, as dashboard pages show it.
    pub environment: String,
}

/// Starts the tasks, if alerts are configured; they run until `stop` is canceled.
pub fn start(engine: &Engine, settings: Option<&Settings>, stop: &CancellationToken) {
    let Some(settings) = settings.cloned() else {
        return;
    };
    let (checked, stopped) = (engine.clone(), stop.clone());
    tokio::spawn(async move {
        let checks = keep_running("alerts", || run_checks(checked.clone()));
        stopped.run_until_cancelled(checks).await
    });
    let (sending, stopped) = (engine.clone(), stop.clone());
    tokio::spawn(async move {
        let deliveries = || run_deliveries(sending.clone(), settings.clone());
        let deliveries = keep_running("deliveries of alerts", deliveries);
        stopped.run_until_cancelled(deliveries).await
    });
}

async fn run_checks(engine: Engine) {
    let mut ticks = interval(CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = Watch::default();
    loop {
        ticks.tick().await;
        if !engine.is_leader() {
            watch = Watch::default();
            continue;
        }
        let queues = engine.known_queues().count();
        let check = Box::pin(check(&engine, &mut watch));
        let checked = poll_blocking_if_many(queues, check);
        if let Err(error) = checked.await {
            tracing::warn!(%error, "failed to check the alert rules");
        }
    }
}

/// Compares the problems with the rules once.
async fn check(engine: &Engine, watch: &mut Watch) -> Result<(), Error> {
    let rules = engine.alert_rules().await?;
    if rules.is_empty() {
        return Ok(());
    }
    let (overview, reported) =
        futures::try_join!(load_overview(engine), engine.reported_problems())?;
    let now = engine.now(None);
    let found = reportable_problems(overview, now.0);
    let mut result = Ok(());
    for change in watch.step(&rules, &found, reported, now) {
        if !engine.is_leader() {
            break;
        }
        let written = match change {
            Change::Raise(rule, reported) => engine.report_problem(rule, reported).await,
            Change::End(rule, reported) => engine.report_end(rule, reported).await,
        };
        let is_outage = written == Err(Error::Unavailable);
        result = result.and(written);
        // What was found may have ended when the database responds again.
        if is_outage {
            break;
        }
    }
    result
}

async fn run_deliveries(engine: Engine, settings: Settings) {
    let webhooks = Arc::new(Webhooks::default());
    let mut ticks = interval(SEND_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if !engine.is_leader() {
            continue;
        }
        // More may be due.
        while engine.is_leader() {
            match send_due(&engine, &settings, &webhooks).await {
                Ok(CONCURRENT) => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(%error, "failed to send alerts");
                    break;
                }
            }
        }
    }
}

/// Sends up to 16 deliveries that are due, each once. Returns how many there were.
async fn send_due(
    engine: &Engine,
    settings: &Settings,
    webhooks: &Webhooks,
) -> Result<usize, Error> {
    let due = engine.due_alert_deliveries(CONCURRENT as i64).await?;
    let count = due.len();
    let sent = due
        .into_iter()
        .map(|(delivery, url)| send(engine, settings, webhooks, delivery, url));
    let results: Vec<Result<(), Error>> = join_all(sent).await;
    results.into_iter().collect::<Result<(), Error>>()?;
    Ok(count)
}

async fn send(
    engine: &Engine,
    settings: &Settings,
    webhooks: &Webhooks,
    delivery: AlertDelivery,
    url: String,
) -> Result<(), Error> {
    if !engine.begin_alert_attempt(&delivery, LEASE_S).await? {
        return Ok(());
    }
    let result = attempt(&delivery, &url, engine.now(None), settings, webhooks).await;
    if !result.is_delivered && result.retry_s.is_none() {
        let (rule, outcome) = (&delivery.rule_name, &result.outcome);
        tracing::warn!(rule, outcome, "gave up on an alert");
    }
    engine.end_alert_attempt(&delivery, result).await
}

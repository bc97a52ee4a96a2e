//! Recurring jobs, and what somebody has typed of one.

use serde::de::IgnoredAny;

use super::super::read::PAGE_JOBS;
use super::super::views::{RecurringForm, RecurringRow, RecurringView, RecurringsView};
use super::deeds::{check_name, number, only};
use super::{queue_names, rows};
use crate::engine::{
    Engine, JobKey, Page, QueueKey, RECURRING_ID_BYTES_MAX, Recur, Recurring, RecurringChange,
    Result,
};

/// Children that the page of a recurring job shows.
const CHILDREN_SHOWN: i64 = 10;

/// The longest times in seconds, a hundred years: beyond that it is a slip.
const SECONDS_MAX: f64 = 3_155_760_000.0;

/// A page of the recurring jobs of a queue, or of all, by when their next child is due.
pub async fn recurrings(
    engine: &Engine,
    queue: Option<&str>,
    offset: usize,
) -> Result<RecurringsView> {
    let key = queue.map(QueueKey::qless);
    let page = Page {
        offset,
        limit: PAGE_JOBS,
    };
    let found = engine.recurring_in(key.as_ref(), page).await?;
    let total = match &key {
        Some(key) => engine
            .queue(key, None)
            .await?
            .map_or(0, |queue| queue.recurring),
        None => {
            let queues = engine.queues(None).await?;
            queues.iter().map(|queue| queue.recurring).sum()
        }
    };
    Ok(RecurringsView {
        total,
        rows: found
            .iter()
            .map(|recurring| row(engine, recurring))
            .collect(),
        queues: queue_names(engine),
    })
}

/// The recurring job with that id, and its newest children.
pub async fn recurring(engine: &Engine, id: &str) -> Result<Option<RecurringView>> {
    let Some(recurring) = engine.recurring(id).await? else {
        return Ok(None);
    };
    let oldest = (recurring.made - CHILDREN_SHOWN).max(0);
    let ids = (oldest + 1..=recurring.made).rev();
    let keys: Vec<JobKey> = ids
        .map(|number| JobKey::qless(format!("{id}-{number}")))
        .collect();
    let children: Vec<_> = engine
        .list_jobs_by_key(&keys)
        .await?
        .into_iter()
        .flatten()
        .filter(|job| job.spawned_from.as_deref() == Some(id))
        .collect();
    Ok(Some(RecurringView {
        row: row(engine, &recurring),
        children: rows(engine, &children),
        body: recurring.body,
        queues: queue_names(engine),
    }))
}

fn row(engine: &Engine, recurring: &Recurring) -> RecurringRow {
    let queue = engine.known_queues().by_id(recurring.queue);
    RecurringRow {
        id: recurring.id.clone(),
        queue: engine.known_queues().name(recurring.queue),
        paused: queue.is_some_and(|queue| queue.paused),
        klass: recurring.klass.clone(),
        interval: recurring.interval,
        next: recurring.next_at.0,
        made: recurring.made,
        backlog: recurring.backlog,
        priority: recurring.priority,
        retries: recurring.retries,
        tags: recurring.tags.clone(),
    }
}

/// Puts a recurring job. Returns its id. One that is there already is left as it is: whoever wants to
/// change it should see what it is.
pub async fn recur(engine: &Engine, typed: &RecurringForm) -> Result<String, String> {
    let (id, klass) = (typed.id.trim(), typed.klass.trim());
    check_name("the queue name", &typed.queue)?;
    if !id.is_empty() {
        check_name("the ID", id)?;
        if id.len() > RECURRING_ID_BYTES_MAX {
            return Err(format!(
                "the ID of a recurring job must not be longer than {RECURRING_ID_BYTES_MAX} bytes"
            ));
        }
        let there = engine.recurring(id).await;
        if there.map_err(|error| error.to_string())?.is_some() {
            return Err(format!("recurring job “{id}” already exists"));
        }
    }
    let body = match typed.data.trim() {
        "" => "{}",
        data => data,
    };
    if let Err(error) = serde_json::from_str::<IgnoredAny>(body) {
        return Err(format!("the data is not valid JSON: {error}"));
    }
    let offset_s = match typed.offset.trim() {
        "" => 0.0,
        offset => seconds("the time until the first run", offset, "1")?,
    };
    let recur = Recur {
        id: (!id.is_empty()).then(|| id.to_owned()),
        body: body.to_owned(),
        klass: (!klass.is_empty()).then(|| klass.to_owned()),
        interval_s: interval(typed)?,
        offset_s,
        priority: number("priority", or_zero(&typed.priority))?,
        tags: Vec::new(),
        retries: count("retries", or_zero(&typed.retries))?,
        backlog: count("backlog", or_zero(&typed.backlog))?,
    };
    let queue = QueueKey::qless(&typed.queue);
    only(engine.recur(queue, vec![recur], None).await)
}

/// Changes a recurring job to what somebody has typed.
pub async fn change_recurring(engine: &Engine, typed: &RecurringForm) -> Result<(), String> {
    check_name("the queue name", &typed.queue)?;
    let change = RecurringChange {
        priority: Some(number("priority", &typed.priority)?),
        interval_s: Some(interval(typed)?),
        retries: Some(count("retries", &typed.retries)?),
        backlog: Some(count("backlog", &typed.backlog)?),
        queue: Some(QueueKey::qless(&typed.queue)),
        ..RecurringChange::default()
    };
    let changed = engine.change_recurring(&typed.id, change, None).await;
    changed.map(drop).map_err(|error| error.to_string())
}

/// Ends a recurring job. Unlike the verb, says so if it is not there.
pub async fn unrecur(engine: &Engine, id: &str) -> Result<(), String> {
    let there = engine.recurring(id).await;
    if there.map_err(|error| error.to_string())?.is_none() {
        return Err(format!("recurring job “{id}” no longer exists"));
    }
    let done = engine.unrecur(id, None).await;
    done.map_err(|error| error.to_string())
}

fn interval(typed: &RecurringForm) -> Result<f64, String> {
    let interval = seconds("the interval", &typed.interval, &typed.unit)?;
    if interval > 0.0 {
        Ok(interval)
    } else {
        Err("the interval must be greater than 0 s".to_owned())
    }
}

pub fn seconds(what: &str, typed: &str, unit: &str) -> Result<f64, String> {
    let seconds = number(what, typed)? * number("the unit", unit)?;
    if (0.0..=SECONDS_MAX).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(format!("{what} must be between 0 s and 100 years"))
    }
}

pub fn count(what: &str, typed: &str) -> Result<i64, String> {
    let count = typed.trim().parse::<u32>();
    count
        .map(i64::from)
        .map_err(|_| format!("{what} must be a whole number, 0 or more"))
}

fn or_zero(typed: &str) -> &str {
    if typed.trim().is_empty() { "0" } else { typed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_number_and_a_unit() {
        let typed = |interval: &str, unit: &str| RecurringForm {
            interval: interval.to_owned(),
            unit: unit.to_owned(),
            ..RecurringForm::default()
        };
        assert_eq!(interval(&typed(" 1.5 ", "60")), Ok(90.0));
        for (number, unit) in [
            ("0", "1"),
            ("-1", "60"),
            ("", "1"),
            ("1", ""),
            ("1e300", "86400"),
            ("inf", "1"),
        ] {
            assert!(interval(&typed(number, unit)).is_err(), "{number} {unit}");
        }
    }

    #[test]
    fn counts_are_whole_and_not_negative() {
        assert_eq!(count("retries", " 3 "), Ok(3));
        for typed in ["", "-1", "1.5", "many"] {
            assert!(count("retries", typed).is_err(), "{typed}");
        }
    }
}

//! Actions on recurring jobs.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use serde::de::IgnoredAny;

use super::input::{check_class, check_name, count, number, only, optional, seconds};
use super::put::names;
use super::{Action, ActionOutcome, Target, act};
use crate::auth::Role;
use crate::engine::{
    CRON_INTERVAL_S, CronSchedule, Engine, QueueKey, RECURRING_ID_BYTES_MAX, RecurringChange, Time,
};
use crate::ui::error::PageError;
use crate::ui::model::recurring::RecurringForm;
use crate::ui::urls;

fn target(id: &str) -> Target {
    Target::new(format!("recurring job {id}"), urls::recurring(id))
}

pub static CREATE_RECURRING: Action = Action::new("recur", Recur::PATH, Role::Operator, |form| {
    target(form.field("form[id]"))
});

/// Creates a recurring job and shows its page. On error, shows the form with the user's input.
#[server]
pub async fn recur(form: RecurringForm) -> Result<(), PageError> {
    act(
        &CREATE_RECURRING,
        &urls::recurring_form(&form),
        async |context| {
            let id = create(&context.engine, &form).await?;
            let page = urls::recurring(&id);
            Ok(ActionOutcome::at(
                page,
                format!("Recurring job “{id}” created."),
            ))
        },
    )
    .await
}

/// Creates the recurring job and returns its ID. Fails if the ID exists: the page of that job has a form to change it.
async fn create(engine: &Engine, form: &RecurringForm) -> Result<String, String> {
    let id = optional(&form.id);
    check_name("the queue name", &form.queue)?;
    if let Some(id) = id {
        check_name("the ID", id)?;
        if id.len() > RECURRING_ID_BYTES_MAX {
            return Err(format!(
                "the ID of a recurring job must not be longer than {RECURRING_ID_BYTES_MAX} bytes"
            ));
        }
        let existing = engine.recurring(id).await;
        if existing.map_err(|error| error.to_string())?.is_some() {
            return Err(format!("recurring job “{id}” already exists"));
        }
    }
    let body = body(form)?;
    check_class(optional(&form.klass))?;
    let offset_s = match optional(&form.offset) {
        Some(offset) => seconds("the time until the first run", offset, "1")?,
        None => 0.0,
    };
    let cron = cron(form, engine.now(None)).await?;
    let job = crate::engine::Recur {
        id: id.map(str::to_owned),
        body,
        klass: optional(&form.klass).map(str::to_owned),
        interval_s: match cron {
            Some(_) => CRON_INTERVAL_S,
            None => interval(form)?,
        },
        cron,
        offset_s,
        priority: number("the priority", or_zero(&form.priority))?,
        tags: tags(form)?,
        retries: count("retries", or_zero(&form.retries))?,
        backlog: count("the catch-up limit", or_zero(&form.backlog))?,
    };
    let queue = QueueKey::qless(&form.queue);
    only(engine.recur(queue, vec![job], None).await)
}

pub static CHANGE_RECURRING: Action = Action::new(
    "change_recurring",
    ChangeRecurring::PATH,
    Role::Operator,
    |form| target(form.field("form[id]")),
);

/// Changes a recurring job.
#[server]
pub async fn change_recurring(form: RecurringForm, back: String) -> Result<(), PageError> {
    act(&CHANGE_RECURRING, &back, async |context| {
        check_name("the queue name", &form.queue)?;
        let engine = &context.engine;
        let cron = cron(&form, engine.now(None)).await?;
        let interval_s = match cron {
            Some(_) => None,
            None => Some(interval(&form)?),
        };
        let edits = edits(engine, &form).await?;
        let change = RecurringChange {
            priority: Some(number("the priority", &form.priority)?),
            interval_s,
            cron,
            retries: Some(count("retries", &form.retries)?),
            backlog: Some(count("the catch-up limit", &form.backlog)?),
            queue: Some(QueueKey::qless(&form.queue)),
            ..edits
        };
        engine.change_recurring(&form.id, change, None).await?;
        Ok(format!("Recurring job “{}” changed.", form.id).into())
    })
    .await
}

/// The changes of the class, the payload and the tags, if the form has them.
async fn edits(engine: &Engine, form: &RecurringForm) -> Result<RecurringChange, String> {
    if form.edit != "all" {
        return Ok(RecurringChange::default());
    }
    check_class(optional(&form.klass))?;
    let found = engine.recurring(&form.id).await;
    let found = found.map_err(|error| error.to_string())?;
    let (before, after) = (found.map_or_else(Vec::new, |found| found.tags), tags(form)?);
    let without = |all: &[String], others: &[String]| {
        let rest = all.iter().filter(|tag| !others.contains(tag));
        rest.cloned().collect::<Vec<_>>()
    };
    Ok(RecurringChange {
        klass: Some(form.klass.trim().to_owned()),
        body: Some(body(form)?),
        tag: without(&after, &before),
        untag: without(&before, &after),
        ..RecurringChange::default()
    })
}

pub static PAUSE_RECURRING: Action = of_one("pause_recurring", PauseRecurring::PATH);

/// Pauses a recurring job: it creates no jobs until it is resumed.
#[server]
pub async fn pause_recurring(id: String, back: String) -> Result<(), PageError> {
    act(&PAUSE_RECURRING, &back, async |context| {
        context.engine.pause_recurring(&id, true).await?;
        Ok(format!("Recurring job “{id}” paused. It creates no jobs until it is resumed.").into())
    })
    .await
}

pub static RESUME_RECURRING: Action = of_one("resume_recurring", ResumeRecurring::PATH);

/// Resumes a recurring job, without the runs that it has missed.
#[server]
pub async fn resume_recurring(id: String, back: String) -> Result<(), PageError> {
    act(&RESUME_RECURRING, &back, async |context| {
        context.engine.pause_recurring(&id, false).await?;
        Ok(
            format!("Recurring job “{id}” resumed. The runs that it has missed are skipped.")
                .into(),
        )
    })
    .await
}

pub static RUN_RECURRING: Action = of_one("run_recurring", RunRecurring::PATH);

/// Creates a job of a recurring job now. Its schedule stays as it is.
#[server]
pub async fn run_recurring(id: String, back: String) -> Result<(), PageError> {
    act(&RUN_RECURRING, &back, async |context| {
        let child = context.engine.run_recurring(&id).await?;
        Ok(format!("Job “{child}” created. The schedule is unchanged.").into())
    })
    .await
}

const fn of_one(name: &'static str, path: &'static str) -> Action {
    Action::new(name, path, Role::Operator, |form| target(form.field("id")))
}

pub static END_RECURRING: Action = of_one("unrecur", Unrecur::PATH);

/// Ends a recurring job. The message is shown on the page `after`.
#[server]
pub async fn unrecur(id: String, back: String, after: String) -> Result<(), PageError> {
    act(&END_RECURRING, &back, async |context| {
        // Ending a recurring job that does not exist is not an error in the engine.
        if context.engine.recurring(&id).await?.is_none() {
            return Err(format!("recurring job “{id}” no longer exists").into());
        }
        context.engine.unrecur(&id, None).await?;
        let message = format!("Recurring job “{id}” ended. Its existing jobs are kept.");
        Ok(ActionOutcome::at(after, message))
    })
    .await
}

/// The cron expression of a form, if it has one.
async fn cron(form: &RecurringForm, now: Time) -> Result<Option<CronSchedule>, String> {
    let Some(expression) = optional(&form.cron).map(str::to_owned) else {
        return Ok(None);
    };
    let zone = form.zone.clone();
    CronSchedule::check(expression, zone, now).await.map(Some)
}

/// The payload of a form; `{}` if it is blank. An error if it is not JSON.
fn body(form: &RecurringForm) -> Result<String, String> {
    let body = optional(&form.data).unwrap_or("{}");
    match serde_json::from_str::<IgnoredAny>(body) {
        Ok(_) => Ok(body.to_owned()),
        Err(error) => Err(format!("the payload is not valid JSON: {error}")),
    }
}

/// The tags of a form.
fn tags(form: &RecurringForm) -> Result<Vec<String>, String> {
    names("each tag", form.tags.split([',', '\n']))
}

fn interval(form: &RecurringForm) -> Result<f64, String> {
    let interval = seconds("the interval", &form.interval, &form.unit)?;
    if interval > 0.0 {
        Ok(interval)
    } else {
        Err("the interval must be greater than 0 s".to_owned())
    }
}

fn or_zero(text: &str) -> &str {
    optional(text).unwrap_or("0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_number_and_a_unit() {
        let form = |interval: &str, unit: &str| RecurringForm {
            interval: interval.to_owned(),
            unit: unit.to_owned(),
            ..RecurringForm::default()
        };
        assert_eq!(interval(&form(" 1.5 ", "60")), Ok(90.0));
        for (number, unit) in [
            ("0", "1"),
            ("-1", "60"),
            ("", "1"),
            ("1", ""),
            ("1e300", "86400"),
            ("inf", "1"),
        ] {
            assert!(interval(&form(number, unit)).is_err(), "{number} {unit}");
        }
    }
}

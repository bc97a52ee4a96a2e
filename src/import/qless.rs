//! Translates the keys of qless-core; `import/keys.rs` describes them.

mod job;

use std::collections::HashMap;

use job::{FIELDS, SourceList};

use super::Result;
use super::keys::{Keys, LISTS, has_fields, qless_job_id};
use super::redis::{PAGE, Redis, Reply};
use super::target::{RECURRING, Target};
use crate::engine::{
    Config, ImportedDependencies, ImportedQueue, ImportedRecurring, JobKey, Protocol, QueueKey,
    Recurring, Time,
};

/// The newest events of a job that are read, besides the first.
const EVENTS: &str = "-500";

const QLESS: &str = "qless";
const QUEUES: &str = "queues";
const OPTIONS: &str = "options";
const TRACKED: &str = "tracked jobs";
const WORKERS: &str = "workers";

/// Imports options and queues, on which the jobs depend.
///
/// # Errors
/// If the source cannot be read or the target cannot be written.
pub async fn import_settings(
    redis: &mut Redis,
    keys: &Keys,
    target: &mut Target<'_>,
) -> Result<()> {
    if keys.queues.is_empty() && keys.qless_jobs == 0 {
        return Ok(());
    }
    let options = redis.hash("ql:config").await?;
    for (option, value) in options {
        import_option(target, &option, value).await?;
    }
    let mut seen = HashMap::new();
    let mut start = 0;
    loop {
        let page = redis.sorted_page("ql:queues", start, false).await?;
        start += page.len();
        seen.extend(page.iter().filter_map(|(name, score)| {
            Some((name.text()?, Time::from_seconds(*score).unwrap_or_default()))
        }));
        if page.len() < PAGE {
            break;
        }
    }
    let paused = redis.set("ql:paused_queues").await?;
    for name in keys.queues.iter().chain(&paused) {
        seen.entry(name.clone()).or_default();
    }
    let now = target.engine().map(|engine| engine.now(None));
    let queues = seen.into_iter().map(|(name, first_seen)| ImportedQueue {
        paused: paused.contains(&name),
        first_seen: match first_seen == Time::default() {
            true => now.unwrap_or_default(),
            false => first_seen,
        },
        key: QueueKey::qless(name),
    });
    import_queues(target, queues.collect()).await
}

async fn import_option(target: &mut Target<'_>, option: &str, value: String) -> Result<()> {
    target.report.count(QLESS, OPTIONS).found += 1;
    // The engine keeps JSON texts.
    let is_number =
        Config::is_number(option) && serde_json::from_str::<serde_json::Number>(&value).is_ok();
    let value = match is_number {
        true => value,
        false => serde_json::Value::from(value).to_string(),
    };
    if let Err(error) = Config::check(option, &value) {
        target
            .report
            .skip(QLESS, OPTIONS, option, error.to_string());
        return Ok(());
    }
    if let Some(engine) = target.engine() {
        if engine.config().is_set(option) {
            target.report.count(QLESS, OPTIONS).existing += 1;
            return Ok(());
        }
        engine.configure(option, Some(value), None).await?;
    }
    target.count_imported(OPTIONS);
    Ok(())
}

async fn import_queues(target: &mut Target<'_>, queues: Vec<ImportedQueue>) -> Result<()> {
    target.report.count(QLESS, QUEUES).found += queues.len() as u64;
    let mut good = Vec::new();
    for queue in queues {
        let wrong =
            crate::engine::invalid_name_reason(&queue.key.name, crate::engine::NAME_BYTES_MAX);
        match wrong {
            Some(wrong) => {
                let reason = format!("the name {wrong}");
                target.report.skip(QLESS, QUEUES, &queue.key.name, reason);
            }
            None => good.push(queue),
        }
    }
    target.report.count(QLESS, QUEUES).imported += good.len() as u64;
    if let Some(engine) = target.engine() {
        engine.import_queues(good).await?;
    }
    Ok(())
}

/// Imports the jobs in all lists, in the order in which qless would hand them out.
///
/// # Errors
/// If the source cannot be read or the target cannot be written.
pub async fn import_jobs(redis: &mut Redis, keys: &Keys, target: &mut Target<'_>) -> Result<()> {
    for queue in &keys.queues {
        for list in LISTS {
            let key = format!("ql:q:{queue}-{list}");
            let mut start = 0;
            loop {
                let page = redis.sorted_page(&key, start, list == "work").await?;
                start += page.len();
                let is_last = page.len() < PAGE;
                let place = |score| match list {
                    "locks" => SourceList::Locks { queue, score },
                    "work" => SourceList::Work { queue, score },
                    "scheduled" => SourceList::Scheduled { queue, score },
                    _ => SourceList::Depends { queue, score },
                };
                let page = page.into_iter().map(|(jid, score)| (jid, place(score)));
                import_page(redis, target, page.collect()).await?;
                if is_last {
                    break;
                }
            }
        }
    }
    for group in &keys.groups {
        let key = format!("ql:f:{group}");
        let mut end = redis.count(&["LLEN", &key]).await?;
        // The oldest failure is the last one.
        while end > 0 {
            let start = end.saturating_sub(PAGE);
            let (first, last) = (start.to_string(), (end - 1).to_string());
            let page = redis.call(&["LRANGE", &key, &first, &last]).await?.list();
            let page = page.into_iter().rev();
            let page = page
                .map(|jid| (jid, SourceList::Failed { group }))
                .collect();
            import_page(redis, target, page).await?;
            end = start;
        }
    }
    let mut start = 0;
    loop {
        let page = redis.sorted_page("ql:completed", start, false).await?;
        start += page.len();
        let is_last = page.len() < PAGE;
        let page = page.into_iter();
        let page = page.map(|(jid, score)| (jid, SourceList::Completed { score }));
        import_page(redis, target, page.collect()).await?;
        if is_last {
            return Ok(());
        }
    }
}

async fn import_page(
    redis: &mut Redis,
    target: &mut Target<'_>,
    page: Vec<(Reply, SourceList<'_>)>,
) -> Result<()> {
    let mut jobs = Vec::with_capacity(page.len());
    for (jid, place) in page {
        match jid.text() {
            Some(jid) => jobs.push((format!("ql:j:{jid}"), jid, place)),
            None => target.skip(
                Protocol::Qless,
                place.state().as_str(),
                "",
                "its ID is not UTF-8",
            ),
        }
    }
    let histories: Vec<String> = jobs
        .iter()
        .map(|(key, ..)| format!("{key}-history"))
        .collect();
    let mut commands = Vec::with_capacity(3 * jobs.len());
    for ((key, ..), history) in jobs.iter().zip(&histories) {
        let mut fields = vec!["HMGET", key.as_str()];
        fields.extend(FIELDS);
        commands.push(fields);
        commands.push(vec!["LINDEX", history.as_str(), "0"]);
        commands.push(vec!["LRANGE", history.as_str(), EVENTS, "-1"]);
    }
    redis.send(&commands).await?;
    for (_, jid, place) in &jobs {
        let fields = redis.reply().await?.list();
        let first = redis.reply().await?;
        let events = redis.reply().await?.list();
        if !has_fields(&fields) {
            target.skip(
                Protocol::Qless,
                place.state().as_str(),
                jid,
                "its data is missing",
            );
            continue;
        }
        match job::translate(jid, place, &fields, &first, &events) {
            Ok(import) => target.job(import).await?,
            Err(reason) => target.skip(Protocol::Qless, place.state().as_str(), jid, &reason),
        }
    }
    Ok(())
}

/// Imports what refers to jobs: dependencies, tracked jobs; and recurring jobs and workers. Notes the jobs that no list
/// has.
///
/// # Errors
/// If the source cannot be read or the target cannot be written.
pub async fn import_rest(redis: &mut Redis, keys: &Keys, target: &mut Target<'_>) -> Result<()> {
    for queue in &keys.queues {
        import_dependencies(redis, queue, target).await?;
        import_recurring(redis, queue, target).await?;
    }
    import_tracked(redis, target).await?;
    import_workers(redis, target).await?;
    note_unlisted(redis, keys, target).await
}

/// Dependencies that are collected before they are written, apart from those of the last job.
const DEPENDENCIES_MAX: usize = 2_000;

async fn import_dependencies(
    redis: &mut Redis,
    queue: &str,
    target: &mut Target<'_>,
) -> Result<()> {
    let key = format!("ql:q:{queue}-depends");
    let mut start = 0;
    loop {
        let page = redis.sorted_page(&key, start, false).await?;
        start += page.len();
        let is_last = page.len() < PAGE;
        let jids: Vec<String> = page.iter().filter_map(|(jid, _)| jid.text()).collect();
        let sets = jids.iter().map(|jid| format!("ql:j:{jid}-dependencies"));
        let sets: Vec<String> = sets.collect();
        let commands: Vec<_> = sets
            .iter()
            .map(|key| vec!["SMEMBERS", key.as_str()])
            .collect();
        redis.send(&commands).await?;
        let (mut jobs, mut count) = (Vec::new(), 0);
        for id in jids {
            let needs = redis.reply().await?.list();
            let needs: Vec<String> = needs.iter().filter_map(Reply::text).collect();
            count += needs.len();
            jobs.push(ImportedDependencies { id, needs });
            if count >= DEPENDENCIES_MAX {
                count = 0;
                target.dependencies(std::mem::take(&mut jobs)).await?;
            }
        }
        if !jobs.is_empty() {
            target.dependencies(jobs).await?;
        }
        if is_last {
            return Ok(());
        }
    }
}

async fn import_recurring(redis: &mut Redis, queue: &str, target: &mut Target<'_>) -> Result<()> {
    let key = format!("ql:q:{queue}-recur");
    let mut start = 0;
    loop {
        let page = redis.sorted_page(&key, start, false).await?;
        start += page.len();
        let is_last = page.len() < PAGE;
        for (jid, next_at) in page {
            let jid = jid.text().unwrap_or_default();
            let key = format!("ql:r:{jid}");
            let mut command = vec!["HMGET", key.as_str()];
            command.extend(RECURRING_FIELDS);
            let fields = redis.call(&command).await?.list();
            match recurring(&jid, queue, next_at, &fields) {
                Some(import) => target.recurring(import).await?,
                None => target.skip(
                    Protocol::Qless,
                    RECURRING,
                    &jid,
                    "its data is missing or not JSON",
                ),
            }
        }
        if is_last {
            return Ok(());
        }
    }
}

const RECURRING_FIELDS: [&str; 8] = [
    "klass", "data", "priority", "tags", "count", "interval", "retries", "backlog",
];

fn recurring(id: &str, queue: &str, next_at: f64, fields: &[Reply]) -> Option<ImportedRecurring> {
    let [
        klass,
        data,
        priority,
        tags,
        count,
        interval,
        retries,
        backlog,
    ] = fields
    else {
        return None;
    };
    let body = data.text().filter(|text| job::is_json(text))?;
    let interval = Time::from_seconds(interval.number()?)?.0.max(1);
    let recurring = Recurring {
        seq: 0,
        id: id.to_owned(),
        queue: 0,
        next_at: Time::from_seconds(next_at)?,
        interval,
        cron: None,
        held_next: None,
        children_count: job::integer(count).unwrap_or_default(),
        backlog: job::integer(backlog).unwrap_or_default(),
        priority: job::priority(priority),
        retries: job::integer(retries).unwrap_or_default(),
        klass: klass.text().filter(|klass| !klass.is_empty()),
        tags: job::tags(tags),
        body,
    };
    let queue = QueueKey::qless(queue);
    Some(ImportedRecurring { queue, recurring })
}

async fn import_tracked(redis: &mut Redis, target: &mut Target<'_>) -> Result<()> {
    let mut start = 0;
    loop {
        let page = redis.sorted_page("ql:tracked", start, false).await?;
        start += page.len();
        let is_last = page.len() < PAGE;
        let tracked: Vec<(String, Time)> = page
            .iter()
            .filter_map(|(jid, score)| Some((jid.text()?, Time::from_seconds(*score)?)))
            .collect();
        target.report.count(QLESS, TRACKED).found += page.len() as u64;
        let added = match target.engine() {
            Some(engine) => engine.import_tracked(tracked.clone()).await?,
            None => tracked.iter().map(|_| Ok(true)).collect(),
        };
        for ((jid, _), added) in tracked.iter().zip(added) {
            if added? {
                target.count_imported(TRACKED);
            } else {
                let reason = "the job does not exist, or too many are tracked";
                target.report.skip(QLESS, TRACKED, jid, reason);
            }
        }
        if is_last {
            return Ok(());
        }
    }
}

async fn import_workers(redis: &mut Redis, target: &mut Target<'_>) -> Result<()> {
    let mut start = 0;
    loop {
        let page = redis.sorted_page("ql:workers", start, false).await?;
        start += page.len();
        let is_last = page.len() < PAGE;
        target.report.count(QLESS, WORKERS).found += page.len() as u64;
        let workers = page.iter().filter_map(|(name, score)| {
            let name = name
                .text()
                .filter(|it| it.len() <= crate::engine::NAME_BYTES_MAX)?;
            Some((name, Time::from_seconds(*score)?))
        });
        let workers: HashMap<String, Time> = workers.collect();
        target.report.count(QLESS, WORKERS).imported += workers.len() as u64;
        target.report.count(QLESS, WORKERS).skipped += (page.len() - workers.len()) as u64;
        if let Some(engine) = target.engine() {
            engine.import_workers(workers).await?;
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Compares the job hashes with the target. A hash that is in no list is a job that qless itself would never hand out.
async fn note_unlisted(redis: &mut Redis, keys: &Keys, target: &mut Target<'_>) -> Result<()> {
    let Some(engine) = target.engine().cloned() else {
        return Ok(());
    };
    let (mut missing, mut examples) = (0_u64, Vec::new());
    let mut cursor = (keys.qless_jobs > 0).then(|| "0".to_owned());
    while let Some(at) = cursor {
        let (page, next) = redis.scan(&at).await?;
        cursor = next;
        let names = page.iter().filter_map(Reply::text);
        let jobs = names.filter_map(|key| Some(JobKey::qless(qless_job_id(&key)?)));
        let jobs: Vec<JobKey> = jobs.collect();
        for some in jobs.chunks(PAGE) {
            let found = engine.existing_jobs(some).await?;
            for key in some.iter().filter(|key| !found.contains(*key)) {
                missing += 1;
                if examples.len() < super::NAMED_MAX {
                    examples.push(key.id.clone());
                }
            }
        }
    }
    if missing > 0 {
        let examples = examples.join(", ");
        target.report.note(&format!(
            "{missing} job hashes of qless are not in the target: those of skipped jobs, and those in no list, which \
             qless would never deliver ({examples})"
        ));
    }
    Ok(())
}

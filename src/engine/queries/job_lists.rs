//! Lists of jobs: whole, with shortened texts, or only IDs. The size of whole jobs is checked before they are loaded.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::blocking::block_in_place_if_many;
use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, RESPONSE_BYTES_MAX, Result};
use crate::engine::model::job::{EffectiveState, Job, JobKey, QueueKey, can_look_up};
use crate::engine::model::job_rows::{self};
use crate::engine::model::page::{OffsetPage, OffsetPageStatements};
use crate::engine::queries::record_batches::MEASUREMENTS_MAX;
use crate::memory::{SMALL_MAX, holding, reserve};
use crate::store::{Arg, Row, Statement, StoreError};

/// Pages beyond this offset are long scans: the database reads and sorts all rows before them.
const DEEP_OFFSET: usize = 10_000;

/// For reads of more rows than they return. Guests, of whom only a few reads run, must not keep users waiting.
static LONG_SCANS: Semaphore = Semaphore::const_new(1);
static LONG_SCANS_OF_GUESTS: Semaphore = Semaphore::const_new(1);

/// How long a request waits for the permit of such a read.
const PERMIT_WAIT_MAX: Duration = Duration::from_secs(2);

pub struct List {
    /// The jobs with shortened texts.
    pub brief: &'static str,
    pub pages: OffsetPageStatements,
}

macro_rules! list {
    ($from:literal) => {
        List {
            brief: concat!("SELECT ", $crate::engine::model::job_columns::job_columns!(brief: "1000"), " FROM ", $from),
            pages: $crate::engine::model::page::OffsetPageStatements {
                whole: concat!("SELECT ", $crate::engine::model::job_columns::job_columns!(), " FROM ", $from),
                ids: concat!("SELECT j.id FROM ", $from),
                bytes: concat!(
                    "SELECT CAST(coalesce(sum(s.bytes), 0) AS BIGINT) FROM (SELECT ",
                    $crate::engine::model::job_columns::job_bytes!(with_edges),
                    " AS bytes FROM ",
                    $from,
                    ") AS s"
                ),
            },
        }
    };
}

pub(crate) use list;

/// A whole job takes as long to convert as [`ENTRIES_PER_JOB`] rows of other lists, and a long text as one row per
/// [`BYTES_PER_ENTRY`] bytes.
const ENTRIES_PER_JOB: usize = 10;
const BYTES_PER_ENTRY: usize = 512;

/// Jobs that are read by their keys at once.
const KEYS_AT_ONCE: usize = 1_000;

/// Time limit for the reads of a deep page.
const DEEP_PAGE_TIME_MAX: Duration = Duration::from_secs(20);

impl Engine {
    /// The jobs with these keys, in this order; `None` for missing ones.
    ///
    /// # Errors
    /// [`Error::ResponseTooLarge`], [`Error::Busy`].
    pub async fn jobs_by_key(&self, keys: &[JobKey]) -> Result<Vec<Option<Job>>> {
        self.refresh_cache().await?;
        let mut sizes = Vec::new();
        for keys in keys.chunks(KEYS_AT_ONCE) {
            let found = self.by_key(keys, BY_KEY.pages.bytes, None).await?;
            sizes.push(size(found.first())?);
        }
        let bytes = sizes.iter().sum();
        reserve_for_jobs(bytes).await?;
        let mut found = Vec::new();
        for (keys, bytes) in keys.chunks(KEYS_AT_ONCE).zip(sizes) {
            let part = self.part_of_jobs(keys, BY_KEY.pages.whole, Some(bytes));
            found.extend(part.await?);
        }
        if found.len() < keys.len() {
            reserve_for_repeated(keys, &found).await?;
        }
        block_in_place_if_many(entries(keys.len(), bytes), || Ok(in_order(keys, found)))
    }

    /// Like [`Engine::jobs_by_key`], with shortened texts.
    pub async fn short_jobs_by_key(&self, keys: &[JobKey]) -> Result<Vec<Option<Job>>> {
        self.refresh_cache().await?;
        let mut found = Vec::new();
        for keys in keys.chunks(KEYS_AT_ONCE) {
            let part = self.part_of_jobs(keys, BY_KEY.brief, None);
            found.extend(part.await?);
        }
        Ok(in_order(keys, found))
    }

    /// Those of the jobs that are complete.
    pub async fn complete_jobs(&self, keys: &[JobKey]) -> Result<HashSet<JobKey>> {
        let mut complete = HashSet::new();
        for keys in keys.chunks(KEYS_AT_ONCE) {
            for row in self.by_key(keys, COMPLETE_BY_KEY, None).await? {
                complete.insert(JobKey {
                    scope: row.int(0)?,
                    id: row.text(1)?,
                });
            }
        }
        Ok(complete)
    }

    /// Reads some of the jobs of a request, which had `bytes` bytes, if they were measured. Not all at once, because
    /// converting the rows of 10,000 jobs takes long.
    async fn part_of_jobs(
        &self,
        keys: &[JobKey],
        sql: &'static str,
        bytes: Option<usize>,
    ) -> Result<Vec<Job>> {
        let rows = self.by_key(keys, sql, bytes).await?;
        let entries = entries(0, bytes.unwrap_or_default());
        let found = block_in_place_if_many(entries, move || jobs(&rows))?;
        tokio::task::yield_now().await;
        Ok(found)
    }

    /// Reads each job once, even if its key is repeated in this part. `bytes`: what the jobs had, if they were measured.
    async fn by_key(
        &self,
        keys: &[JobKey],
        sql: &'static str,
        bytes: Option<usize>,
    ) -> Result<Vec<Row>> {
        let mut seen = HashSet::new();
        let rows: Vec<_> = keys
            .iter()
            .filter(|key| can_look_up(&key.id))
            .map(|key| (key.scope, key.id.as_str()))
            .filter(|key| seen.insert(*key))
            .collect();
        let statement = Statement::of_rows(sql, &rows);
        let statement = match bytes {
            Some(bytes) => statement.measured(bytes),
            None => statement,
        };
        Ok(self.readers().rows(statement).await?)
    }

    /// A page of the jobs in a state, of one queue or (only complete and scheduled ones) of all.
    ///
    /// # Errors
    /// [`Error::ResponseTooLarge`], [`Error::Busy`].
    pub async fn jobs(
        &self,
        state: EffectiveState,
        queue: Option<&QueueKey>,
        page: OffsetPage,
        now: Option<Time>,
    ) -> Result<Vec<Job>> {
        let Some((list, args)) = self.list(state, queue, page, now).await? else {
            return Ok(Vec::new());
        };
        self.page_of_jobs(list, &args, page).await
    }

    /// The whole jobs of a page.
    ///
    /// # Errors
    /// [`Error::ResponseTooLarge`], [`Error::Busy`].
    pub(super) async fn page_of_jobs(
        &self,
        list: &List,
        args: &[Arg],
        page: OffsetPage,
    ) -> Result<Vec<Job>> {
        whole_jobs(&self.page_of_rows(&list.pages, args, page).await?)
    }

    /// The rows of a page, and their size.
    pub(super) async fn page_of_rows(
        &self,
        list: &OffsetPageStatements,
        args: &[Arg],
        page: OffsetPage,
    ) -> Result<MeasuredRows> {
        let Some(permit) = self.deep_page_permit(page).await? else {
            return self.measured_rows(Depth::Shallow, list, args).await;
        };
        holding(permit, self.measured_rows(Depth::Deep, list, args)).await
    }

    /// The IDs of the rows of a page.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub(super) async fn page_of_ids(
        &self,
        list: &OffsetPageStatements,
        args: Vec<Arg>,
        page: OffsetPage,
    ) -> Result<Vec<String>> {
        let ids = Statement::new(list.ids, args);
        let rows = match self.deep_page_permit(page).await? {
            None => self.readers().rows(ids).await?,
            Some(permit) => holding(permit, self.rows_at(Depth::Deep, ids)).await?,
        };
        let ids = rows.iter().map(|row| row.text(0));
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// The IDs of the jobs that [`Engine::jobs`] returns.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub async fn job_ids(
        &self,
        state: EffectiveState,
        queue: Option<&QueueKey>,
        page: OffsetPage,
        now: Option<Time>,
    ) -> Result<Vec<String>> {
        let Some((list, args)) = self.list(state, queue, page, now).await? else {
            return Ok(Vec::new());
        };
        self.page_of_ids(&list.pages, args, page).await
    }

    /// The statements of a list, and their arguments; `None` if there is no such list.
    async fn list(
        &self,
        state: EffectiveState,
        queue: Option<&QueueKey>,
        page: OffsetPage,
        now: Option<Time>,
    ) -> Result<Option<(&'static List, Vec<Arg>)>> {
        self.refresh_cache().await?;
        let now = self.now(now).0;
        // SQLite computes with floating-point numbers if the sum overflows.
        let offset = page.offset.min(usize::MAX / 4);
        let (limit, offset) = (page.limit as i64, offset as i64);
        let mut args: Vec<Arg> = vec![limit.into(), offset.into()];
        let Some(queue) = queue else {
            return Ok(match state {
                EffectiveState::Complete => Some((&COMPLETE, args)),
                EffectiveState::Scheduled => {
                    args.push(now.into());
                    Some((&SCHEDULED, args))
                }
                _ => None,
            });
        };
        let Some(queue) = self.known_queues().get(queue) else {
            return Ok(None);
        };
        args.extend([queue.id.into(), now.into()]);
        let list = match state {
            EffectiveState::Waiting => &WAITING_IN,
            EffectiveState::Scheduled => &SCHEDULED_IN,
            EffectiveState::Depends => &DEPENDS_IN,
            EffectiveState::Running => &RUNNING_IN,
            EffectiveState::Stalled => &STALLED_IN,
            EffectiveState::Failed => &FAILED_IN,
            EffectiveState::Complete => &COMPLETE_IN,
            EffectiveState::Dead => &DEAD_IN,
            EffectiveState::Record => &RECORDS_IN,
        };
        Ok(Some((list, args)))
    }

    pub(in crate::engine) async fn read_whole(
        &self,
        list: &List,
        args: &[Arg],
    ) -> Result<Vec<Job>> {
        whole_jobs(
            &self
                .measured_rows(Depth::Shallow, &list.pages, args)
                .await?,
        )
    }

    async fn measured_rows(
        &self,
        depth: Depth,
        list: &OffsetPageStatements,
        args: &[Arg],
    ) -> Result<MeasuredRows> {
        let statement = |sql| Statement::new(sql, args.iter().cloned());
        for _ in 0..MEASUREMENTS_MAX {
            let found = self.rows_at(depth, statement(list.bytes)).await?;
            let bytes = size(found.first())?;
            reserve_for_jobs(bytes).await?;
            let whole = statement(list.whole).measured(bytes);
            match self.rows_at(depth, whole).await {
                // As soon as one of the rows is changed, others can be on the page.
                Err(StoreError::Grown) => {}
                rows => return Ok(MeasuredRows { rows: rows?, bytes }),
            }
        }
        Err(Error::Busy)
    }

    async fn rows_at(&self, depth: Depth, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let readers = self.readers();
        match depth {
            Depth::Shallow => readers.rows(statement).await,
            Depth::Deep => readers.rows_within(DEEP_PAGE_TIME_MAX, statement).await,
        }
    }
}

/// Rows, and the size that they had when they were measured.
pub(super) struct MeasuredRows {
    pub rows: Vec<Row>,
    bytes: usize,
}

fn whole_jobs(MeasuredRows { rows, bytes }: &MeasuredRows) -> Result<Vec<Job>> {
    block_in_place_if_many(entries(rows.len(), *bytes), || jobs(rows))
}

/// How many rows precede a page.
#[derive(Clone, Copy)]
enum Depth {
    Shallow,
    /// More than [`DEEP_OFFSET`]. SQLite sorts them in temporary files.
    Deep,
}

impl Engine {
    /// Waits for the permit of reads of more rows than they return, so that these occupy only one of the readers.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub(super) async fn long_scan_permit(&self) -> Result<SemaphorePermit<'static>> {
        let scans = match self.is_for_guests() {
            true => &LONG_SCANS_OF_GUESTS,
            false => &LONG_SCANS,
        };
        let permit = timeout(PERMIT_WAIT_MAX, scans.acquire()).await;
        permit.ok().and_then(Result::ok).ok_or(Error::Busy)
    }

    /// Like [`Engine::long_scan_permit`]; pages with small offsets need none.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub(super) async fn deep_page_permit(
        &self,
        page: OffsetPage,
    ) -> Result<Option<SemaphorePermit<'static>>> {
        match page.offset > DEEP_OFFSET {
            true => self.long_scan_permit().await.map(Some),
            false => Ok(None),
        }
    }
}

/// As many rows of other lists take as long to convert as this many whole jobs of this size.
fn entries(jobs: usize, bytes: usize) -> usize {
    (ENTRIES_PER_JOB * jobs).max(bytes / BYTES_PER_ENTRY)
}

/// The size in this row.
fn size(row: Option<&Row>) -> Result<usize> {
    let bytes = row.map_or(Ok(0), |row| row.int(0))?;
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Reserves memory for jobs of this size, and for the response with them.
///
/// # Errors
/// [`Error::ResponseTooLarge`], [`Error::Busy`].
async fn reserve_for_jobs(bytes: usize) -> Result<()> {
    if bytes > RESPONSE_BYTES_MAX {
        return Err(Error::ResponseTooLarge);
    }
    if bytes > SMALL_MAX {
        reserve(2 * bytes).await?;
    }
    Ok(())
}

pub fn jobs(rows: &[Row]) -> Result<Vec<Job>> {
    let jobs: Result<_, StoreError> = rows.iter().map(|row| Ok(job_rows::job(row)?.0)).collect();
    Ok(jobs?)
}

/// Reserves memory for jobs that a list returns once for each time their key is repeated.
///
/// # Errors
/// [`Error::ResponseTooLarge`], [`Error::Busy`].
async fn reserve_for_repeated(keys: &[JobKey], found: &[Job]) -> Result<()> {
    let sizes = found.iter().map(|job| (&job.key, job.loaded_bytes()));
    let sizes: HashMap<_, _> = sizes.collect();
    let once: usize = sizes.values().sum();
    let all: usize = keys.iter().filter_map(|key| sizes.get(key)).sum();
    if all > RESPONSE_BYTES_MAX {
        return Err(Error::ResponseTooLarge);
    }
    reserve_for_jobs(all - once).await
}

fn in_order(keys: &[JobKey], found: Vec<Job>) -> Vec<Option<Job>> {
    let found = found.into_iter().map(|job| (job.key.clone(), job));
    let mut found: HashMap<JobKey, Job> = found.collect();
    let mut repeats: HashMap<&JobKey, usize> = HashMap::new();
    for key in keys {
        *repeats.entry(key).or_default() += 1;
    }
    let next = |key| match repeats.get_mut(key) {
        Some(left @ 2..) => {
            *left -= 1;
            found.get(key).cloned()
        }
        _ => found.remove(key),
    };
    keys.iter().map(next).collect()
}

const COMPLETE_BY_KEY: &str = "
SELECT j.scope, j.id FROM rows($1) AS k CROSS JOIN jobs AS j
WHERE j.scope = k.int(0) AND j.id = k.text(1) AND j.state = {complete}";

const BY_KEY: List =
    list!("rows($1) AS k CROSS JOIN jobs AS j WHERE j.scope = k.int(0) AND j.id = k.text(1)");

// Each part is limited to the end of the page before they are sorted together. The last one is short: due jobs that
// have not been promoted yet. Only the jobs of the page are read whole: those before it would be kept in memory.
const WAITING_IN: List = list!(
    "(
        SELECT kind, priority, ready_at, seq FROM (
            SELECT kind, priority, ready_at, seq FROM (
                SELECT 1 AS kind, w.priority, w.ready_at, w.seq FROM jobs AS w WHERE w.queue = $3 AND w.state = {waiting}
                ORDER BY w.priority, w.ready_at, w.seq LIMIT $1 + $2) AS waiting
            UNION ALL
            SELECT kind, priority, ready_at, seq FROM (
                SELECT 0 AS kind, 0.0 AS priority, t.since AS ready_at, t.seq FROM jobs AS t
                WHERE t.queue = $3 AND t.state = {timed_out} ORDER BY t.since, t.seq LIMIT $1 + $2) AS timed_out
            UNION ALL
            SELECT kind, priority, ready_at, seq FROM (
                SELECT 1 AS kind, s.priority, s.ready_at, s.seq FROM jobs AS s
                WHERE s.queue = $3 AND s.state = {scheduled} AND s.ready_at <= $4
                ORDER BY s.priority, s.ready_at, s.seq LIMIT $1 + $2) AS due
        ) AS c ORDER BY c.kind, c.priority, c.ready_at, c.seq LIMIT $1 + 0 OFFSET $2 + 0
    ) AS p CROSS JOIN jobs AS j WHERE j.seq = p.seq ORDER BY p.kind, p.priority, p.ready_at, p.seq"
);

const SCHEDULED_IN: List = list!(
    "jobs AS j WHERE j.queue = $3 AND j.state = {scheduled} AND j.ready_at > $4
     ORDER BY j.ready_at, j.seq LIMIT $1 + 0 OFFSET $2 + 0"
);

const DEPENDS_IN: List = list!(
    "jobs AS j WHERE j.queue = $3 AND j.state = {depends} ORDER BY j.since, j.seq LIMIT $1 + 0 OFFSET $2 + 0"
);

const RUNNING_IN: List = list!(
    "jobs AS j WHERE j.queue = $3 AND j.state = {running} AND j.lease_until > $4
     ORDER BY j.lease_until, j.seq LIMIT $1 + 0 OFFSET $2 + 0"
);

const STALLED_IN: List = list!(
    "jobs AS j WHERE j.queue = $3 AND j.state = {running} AND j.lease_until <= $4
     ORDER BY j.lease_until, j.seq LIMIT $1 + 0 OFFSET $2 + 0"
);

const FAILED_IN: List = list!(
    "jobs AS j WHERE j.queue = $3 AND j.state = {failed}
     ORDER BY j.since DESC, j.seq DESC LIMIT $1 + 0 OFFSET $2 + 0"
);

const COMPLETE_IN: List = list!(
    "jobs AS j WHERE j.queue = $3 AND j.state = {complete}
     ORDER BY j.since DESC, j.seq DESC LIMIT $1 + 0 OFFSET $2 + 0"
);

const DEAD_IN: List = list!(
    "jobs AS j WHERE j.queue = $3 AND j.state = {dead} ORDER BY j.since, j.seq LIMIT $1 + 0 OFFSET $2 + 0"
);

const RECORDS_IN: List = list!(
    "jobs AS j WHERE j.queue = $3 AND j.state = {record} ORDER BY j.updated_at, j.seq LIMIT $1 + 0 OFFSET $2 + 0"
);

const COMPLETE: List = list!(
    "jobs AS j WHERE j.state = {complete} ORDER BY j.since DESC, j.seq DESC LIMIT $1 + 0 OFFSET $2 + 0"
);

const SCHEDULED: List = list!(
    "jobs AS j WHERE j.state = {scheduled} AND j.ready_at > $3 ORDER BY j.ready_at, j.seq LIMIT $1 + 0 OFFSET $2 + 0"
);

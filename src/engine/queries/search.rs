//! Searches jobs of all protocols. An index narrows down the job numbers where possible; the rest is evaluated here,
//! newest job first, batch by batch, within limits. The result says how far the search got and where to continue.

pub mod matching;
pub mod plan;
pub mod rows;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::blocking::block_in_place_if_many;
use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, Protocol, QueueId};
use crate::engine::model::queue::Queue;
use crate::engine::queries::batch_size::BatchSizer;
use crate::search::Search;
use crate::store::{Row, Statement, StoreError};

use matching::{ScanBudget, ScannedJob};
use plan::Source;
use rows::{BY_SEQ, EXACT, NEXT, NEXT_SIZES, SIZE, SIZES_BY_SEQ, SUMMARIES, scanned_job};

/// Jobs with exactly the searched ID that are shown first.
const EXACT_MAX: i64 = 20;

/// Jobs that are converted at once.
const JOBS_AT_ONCE: usize = 50;

/// Tags that a list shows.
pub const LISTED_TAGS_MAX: usize = 20;

/// Limits of one search.
#[derive(Clone, Copy, Debug)]
pub struct SearchLimits {
    /// Jobs to find.
    pub jobs: usize,
    /// Jobs to read.
    pub scanned: usize,
    /// No further batch is read after this time, except for the first few hundred jobs, so that results of a small
    /// database do not depend on the load of the machine.
    pub time: Duration,
}

impl Default for SearchLimits {
    fn default() -> Self {
        SearchLimits {
            jobs: 50,
            scanned: 20_000,
            time: Duration::from_millis(200),
        }
    }
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct SearchResult {
    /// Newest first.
    pub jobs: Vec<Job>,
    /// If the search is a single word: the jobs with this ID.
    pub exact: Vec<Job>,
    pub scanned: usize,
    /// The approximate number of jobs that had to be considered.
    pub considered: i64,
    /// The job number to continue from, if there may be more.
    pub next: Option<i64>,
    /// Whether the search stopped at its limit of jobs to read, of work or of time.
    pub is_cut: bool,
    /// The creation time of the last job that was read.
    pub scanned_down_to: Option<Time>,
}

/// A matching job, with the fields that a search reads.
pub struct Hit<'a> {
    pub job: &'a Job,
    pub queue: &'a Queue,
    /// The approximate size of its texts.
    pub bytes: i64,
}

/// Visible queues by ID.
pub type QueuesById = HashMap<QueueId, Arc<Queue>>;

impl Engine {
    /// Matching jobs of all protocols, newest first; with `after`, only those with lower numbers.
    pub async fn search(
        &self,
        search: &Search,
        after: Option<i64>,
        limits: SearchLimits,
        now: Option<Time>,
    ) -> Result<SearchResult> {
        self.refresh_cache().await?;
        let (now, queues) = (self.now(now), self.visible_queues());
        let matching = self.matching_numbers(search, &queues, after, limits, now);
        let (hits, mut found) = matching.await?;
        found.exact = self.exact(search, &queues, now).await?;
        found.jobs = self.job_summaries(&hits, &queues, now).await?;
        // Some may have changed since they were matched.
        found
            .jobs
            .retain(|job| search.may_match_state(job.listed_state(now).as_str()));
        Ok(found)
    }

    /// Like [`Engine::search`], but passes the matching jobs on in small parts, with all tags up to 16 KiB, and returns
    /// none.
    pub async fn search_in_parts(
        &self,
        search: &Search,
        after: Option<i64>,
        limits: SearchLimits,
        on_jobs: &mut (dyn FnMut(Vec<Job>) + Send),
    ) -> Result<SearchResult> {
        self.refresh_cache().await?;
        let queues = self.visible_queues();
        let matching = self.matching_numbers(search, &queues, after, limits, self.now(None));
        let (hits, found) = matching.await?;
        let mut still_matching = |mut jobs: Vec<Job>| {
            let now = self.now(None);
            jobs.retain(|job| search.may_match_state(job.listed_state(now).as_str()));
            on_jobs(jobs);
        };
        self.each_part(&hits, &queues, None, &mut still_matching)
            .await?;
        Ok(found)
    }

    /// The numbers of matching jobs, newest first, and how far the search got.
    async fn matching_numbers(
        &self,
        search: &Search,
        queues: &QueuesById,
        after: Option<i64>,
        limits: SearchLimits,
        now: Time,
    ) -> Result<(Vec<i64>, SearchResult)> {
        let mut hits = Vec::new();
        let mut on_match = |hit: Hit<'_>| hits.push(hit.job.seq);
        let scan = self.scan_matching(search, queues, after, limits, now, &mut on_match);
        let found = scan.await?;
        Ok((hits, found))
    }

    /// Scans matching jobs, newest first, and calls `on_match` for each. Returns how far it got.
    pub(in crate::engine) async fn scan_matching(
        &self,
        search: &Search,
        queues: &QueuesById,
        after: Option<i64>,
        limits: SearchLimits,
        now: Time,
        on_match: &mut (dyn FnMut(Hit<'_>) + Send),
    ) -> Result<SearchResult> {
        let after = after.unwrap_or(i64::MAX);
        let plan = self.plan(search, queues, limits, now).await?;
        // From here on: a plan may wait for counts that others read.
        let mut budget = ScanBudget::within(limits.time, self);
        let mut source = match plan.first() {
            Some(source) => source,
            None => self.numbers(&plan, search, after).await?,
        };
        let mut scan = Scan {
            found: SearchResult {
                considered: plan.considered,
                ..SearchResult::default()
            },
            hits: 0,
            last_hit: None,
            after,
        };
        let mut sizer = BatchSizer::default();
        loop {
            let wanted = sizer.next().min(limits.scanned - scan.found.scanned);
            let (batch, read) = self.batch(&mut source, scan.after, wanted).await?;
            let rows = Arc::new(self.scanned_jobs(queues, &batch)?);
            drop(batch);
            for row in rows.iter() {
                sizer.count_row(match search.needs_body() {
                    true => usize::try_from(row.bytes).unwrap_or_default(),
                    false => row.loaded_bytes(),
                });
            }
            // One more than requested, to see whether there are more.
            let more = (limits.jobs - scan.hits).saturating_add(1);
            let results = self.match_jobs(search, &rows, now, more, &mut budget);
            let results = match results.await {
                // What has been found so far is a result. The next search continues after it.
                Err(Error::Busy) if scan.found.scanned > 0 => {
                    scan.cut();
                    break;
                }
                results => results?,
            };
            if !scan.add(&rows, &results, limits.jobs, on_match) {
                break;
            }
            if results.len() < rows.len() {
                // A job that alone exceeds the budget is skipped, so that the next search gets further.
                if let (0, Some(first)) = (scan.found.scanned, rows.first()) {
                    scan.found.scanned = 1;
                    scan.after = first.job.seq;
                }
                scan.cut();
                break;
            }
            // Jobs found in an index may have been deleted meanwhile.
            scan.after = scan.after.min(read.last);
            if read.is_all {
                break;
            }
            if scan.found.scanned >= limits.scanned || budget.is_over() {
                scan.cut();
                break;
            }
            if read.needs_index {
                source = match self.numbers(&plan, search, scan.after).await {
                    Err(Error::Busy) => {
                        scan.cut();
                        break;
                    }
                    source => source?,
                };
            }
            tokio::task::yield_now().await;
        }
        Ok(scan.found)
    }

    fn scanned_jobs(
        &self,
        queues: &QueuesById,
        rows: &[Row],
    ) -> Result<Vec<ScannedJob>, StoreError> {
        let row = |row: &Row| {
            let job = scanned_job(row)?;
            Ok(ScannedJob {
                queue: queues.get(&job.queue).cloned(),
                is_tracked: self.known_tracked().contains_job(&job.key),
                bytes: row.int(SIZE)?,
                job,
            })
        };
        rows.iter().map(row).collect()
    }

    /// Passes the jobs with these numbers on in small parts, highest number first, with shortened texts, and all tags up
    /// to 16 KiB. Jobs that no longer exist are left out.
    pub async fn numbered_jobs(
        &self,
        numbers: &[i64],
        on_jobs: &mut (dyn FnMut(Vec<Job>) + Send),
    ) -> Result<()> {
        self.refresh_cache().await?;
        let queues = self.visible_queues();
        self.each_part(numbers, &queues, None, on_jobs).await
    }

    /// The queues whose jobs are visible: excludes deleted ones that maintenance has not emptied yet.
    pub(in crate::engine) fn visible_queues(&self) -> QueuesById {
        block_in_place_if_many(self.known_queues().count(), || {
            let all = self.known_queues().unordered().into_iter();
            let all = all.filter(|queue| !queue.forgotten || queue.key.protocol != Protocol::Jobq);
            all.map(|queue| (queue.id, queue)).collect()
        })
    }

    /// Reads the next jobs, with the fields that the search needs: fewer if these are large together, but at least one.
    async fn batch(
        &self,
        source: &mut Source,
        after: i64,
        wanted: usize,
    ) -> Result<(Vec<Row>, Read)> {
        match source {
            Source::All(left) => {
                let wanted = wanted.min(*left);
                let next =
                    |sql, count: usize| Statement::new(sql, [after.into(), (count as i64).into()]);
                let (fitting, all) = if wanted > BatchSizer::FIRST {
                    let (_, sizes) = self.scan_sizes(next(NEXT_SIZES, wanted)).await?;
                    (BatchSizer::fitting(&sizes), sizes.len())
                } else {
                    (wanted, wanted)
                };
                let rows = self.readers().rows(next(NEXT, fitting)).await?;
                *left -= rows.len();
                let read = Read {
                    // Jobs may have been deleted meanwhile.
                    is_all: fitting == all && rows.len() < wanted,
                    needs_index: *left == 0,
                    last: after,
                };
                Ok((rows, read))
            }
            Source::Numbers(numbers, more) => {
                let rest = numbers.split_off(wanted.min(numbers.len()));
                let mut batch = std::mem::replace(numbers, rest);
                if batch.len() > BatchSizer::FIRST {
                    let (found, sizes) = self.scan_sizes(numbered(SIZES_BY_SEQ, &batch)).await?;
                    let last = found.get(BatchSizer::fitting(&sizes).saturating_sub(1));
                    let is_later = |number: &i64| last.is_some_and(|last| number < last);
                    if let Some(end) = batch.iter().position(is_later) {
                        let later = batch.split_off(end);
                        numbers.splice(..0, later);
                    }
                }
                let read = Read {
                    is_all: numbers.is_empty() && !*more,
                    needs_index: numbers.is_empty(),
                    last: batch.last().copied().unwrap_or(after),
                };
                let rows = self.readers().rows(numbered(BY_SEQ, &batch)).await?;
                Ok((rows, read))
            }
        }
    }

    /// The numbers of jobs, and the sizes of the texts that a search reads.
    async fn scan_sizes(&self, statement: Statement) -> Result<(Vec<i64>, Vec<i64>)> {
        let rows = self.readers().rows(statement).await?;
        let sized = |row: &Row| Ok((row.int(0)?, row.int(1)?));
        rows.iter().map(sized).collect()
    }

    /// The jobs with these numbers, highest first, as a list shows them: with shortened texts, the first tags, and
    /// without history.
    pub(in crate::engine) async fn job_summaries(
        &self,
        numbers: &[i64],
        queues: &QueuesById,
        now: Time,
    ) -> Result<Vec<Job>> {
        let mut found = Vec::new();
        let mut on_jobs = |jobs: Vec<Job>| {
            found.extend(jobs.into_iter().map(|mut job| {
                job.tags.truncate(LISTED_TAGS_MAX);
                job
            }));
        };
        self.each_part(numbers, queues, Some(now), &mut on_jobs)
            .await?;
        Ok(found)
    }

    /// Reads the jobs with these numbers, highest first, in small parts, because each can have 16 KiB of tags.
    async fn each_part(
        &self,
        numbers: &[i64],
        queues: &QueuesById,
        now: Option<Time>,
        on_jobs: &mut (dyn FnMut(Vec<Job>) + Send),
    ) -> Result<()> {
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable_by_key(|number| Reverse(*number));
        for some in numbers.chunks(JOBS_AT_ONCE) {
            let rows = self.readers().rows(numbered(SUMMARIES, some)).await?;
            let now = self.now(now);
            let mut jobs = all_of(&rows)?;
            jobs.retain(|job| queues.contains_key(&job.queue) && !job.is_expired(now));
            on_jobs(jobs);
        }
        Ok(())
    }

    /// The jobs with these numbers, with the fields that a search reads, and their sizes in bytes.
    pub(in crate::engine) async fn jobs_with_sizes(
        &self,
        numbers: &[i64],
    ) -> Result<Vec<(Job, i64)>> {
        let rows = self.readers().rows(numbered(BY_SEQ, numbers)).await?;
        let sized = |row: &Row| Ok((scanned_job(row)?, row.int(SIZE)?));
        rows.iter().map(sized).collect()
    }

    /// The jobs whose ID equals the search text.
    async fn exact(&self, search: &Search, queues: &QueuesById, now: Time) -> Result<Vec<Job>> {
        match search.id() {
            Some(id) => self.find_by_id(id, queues, now).await,
            None => Ok(Vec::new()),
        }
    }

    /// Jobs of all protocols with this ID, newest first; at most 20.
    pub async fn jobs_with_id(&self, id: &str, now: Option<Time>) -> Result<Vec<Job>> {
        self.refresh_cache().await?;
        self.find_by_id(id, &self.visible_queues(), self.now(now))
            .await
    }

    async fn find_by_id(&self, id: &str, queues: &QueuesById, now: Time) -> Result<Vec<Job>> {
        let statement = Statement::new(EXACT, [id.into(), EXACT_MAX.into()]);
        let rows = self.readers().rows(statement).await?;
        let mut jobs = all_of(&rows)?;
        jobs.retain(|job| !job.is_expired(now) && queues.contains_key(&job.queue));
        Ok(jobs)
    }
}

/// The statement for the jobs with these numbers.
fn numbered(sql: &'static str, numbers: &[i64]) -> Statement {
    let rows: Vec<_> = numbers.iter().map(|number| (*number,)).collect();
    Statement::of_rows(sql, &rows)
}

/// How far a scan got.
struct Scan {
    found: SearchResult,
    hits: usize,
    /// The number of the last matching job.
    last_hit: Option<i64>,
    /// The scan continues with jobs below this number.
    after: i64,
}

impl Scan {
    /// Counts the rows that have a result, and calls `on_match` for each match. False at the first match beyond
    /// `hits_max`.
    fn add(
        &mut self,
        rows: &[ScannedJob],
        results: &[bool],
        hits_max: usize,
        on_match: &mut (dyn FnMut(Hit<'_>) + Send),
    ) -> bool {
        for (row, is_match) in rows.iter().zip(results) {
            let job = &row.job;
            if let (true, Some(queue)) = (is_match, &row.queue) {
                if self.hits == hits_max {
                    self.found.next = self.last_hit;
                    return false;
                }
                (self.hits, self.last_hit) = (self.hits + 1, Some(job.seq));
                let bytes = row.bytes;
                on_match(Hit { job, queue, bytes });
            }
            self.found.scanned += 1;
            self.found.scanned_down_to = Some(job.created_at);
            self.after = job.seq;
        }
        true
    }

    /// Ends the scan before it has seen all jobs.
    fn cut(&mut self) {
        self.found.next = Some(self.after);
        self.found.is_cut = true;
    }
}

fn all_of(rows: &[Row]) -> Result<Vec<Job>, StoreError> {
    rows.iter()
        .map(|row| Ok(crate::engine::model::job_rows::job(row)?.0))
        .collect()
}

/// How far a batch got.
struct Read {
    /// There are no more jobs.
    is_all: bool,
    /// All jobs of the source have been read; more must be read from the index.
    needs_index: bool,
    /// The last number that was requested.
    last: i64,
}

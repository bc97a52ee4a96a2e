//! Chooses what a search reads: the index that narrows it down most, or all jobs.

use std::collections::{HashMap, HashSet};
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::blocking::block_in_place_if_many;
use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{EffectiveState, QueueId, State};
use crate::engine::queries::evaluate::Allowance;
use crate::engine::queries::queues::COUNTS;
use crate::engine::queries::search::matching::each;
use crate::engine::queries::search::rows::{
    FAILED_WITH, GROUP_COUNT, OF_CLASS, TAG_COUNT, TAGGED, TRACKED, When, in_state,
};
use crate::engine::queries::search::{QueuesById, SearchLimits};
use crate::memory::holding;
use crate::search::Search;
use crate::store::{Arg, Row, Statement, StoreError};

/// The most index entries that are sorted by number, for a page of a list and for a larger search. If there are more,
/// the search scans all jobs, newest first.
const PAGE_ENTRIES_MAX: i64 = 2_000_000;
const ENTRIES_MAX: i64 = 200_000;

/// Index entries up to which several searches sort at the same time, which takes them some tens of milliseconds.
const SORTED_AT_ONCE: i64 = 50_000;

/// For searches that sort more. Guests, of whom only a few reads run, must not keep users waiting.
static SORTS: Semaphore = Semaphore::const_new(1);
static SORTS_OF_GUESTS: Semaphore = Semaphore::const_new(1);

/// How long such a search waits for others.
const SORT_WAIT_MAX: Duration = Duration::from_secs(4);

/// The most jobs that a page of a list shows.
const PAGE_JOBS: usize = 1_000;

/// Before it reads an index with more entries than `FEW_ENTRIES`, a search reads the `NEWEST` jobs, if matches are
/// frequent enough: one in `DENSE` jobs.
const FEW_ENTRIES: i64 = 10_000;
const NEWEST: usize = 2_000;
const DENSE: i64 = 10;

/// The work of matching the names of queues, in steps and bytes: about 50 ms.
const NAMES_WORK_MAX: u64 = 20_000_000;

/// Numbers read at once from an index with more than [`ENTRIES_MAX`] entries; and how many numbers a search that needs
/// only the index reads beyond its limit of jobs.
const CHUNK: usize = 2_000;
const SPARE: usize = 50;

/// The index that a search reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Index {
    /// The jobs of some queues in some states.
    States,
    Tag,
    Tracked,
    FailureGroup,
    Class,
}

/// What a search reads.
pub struct Plan {
    /// `None`: all jobs.
    index: Option<Index>,
    /// The approximate number of jobs to consider.
    pub considered: i64,
    /// Whether the newest jobs are read first, because many of them may match.
    is_dense: bool,
    /// Index entries that are sorted to find them.
    entries: i64,
    /// The most numbers to read at once.
    chunk: usize,
    parts: Vec<(State, When, Vec<(QueueId,)>)>,
    now: Time,
}

/// The jobs to scan.
pub enum Source {
    /// All jobs, newest first; at most this many.
    All(usize),
    /// The jobs with these numbers, highest first, and whether there are more.
    Numbers(Vec<i64>, bool),
}

impl Plan {
    /// What to scan first; `None` if it is in an index.
    pub fn first(&self) -> Option<Source> {
        match self.index {
            None => Some(Source::All(usize::MAX)),
            Some(_) => self.is_dense.then_some(Source::All(NEWEST)),
        }
    }

    /// Waits until no other search sorts many index entries, so that such searches occupy only one of the readers.
    async fn sort_permit(
        &self,
        sorts: &'static Semaphore,
    ) -> Result<Option<SemaphorePermit<'static>>> {
        if self.entries <= SORTED_AT_ONCE {
            return Ok(None);
        }
        let permit = timeout(SORT_WAIT_MAX, sorts.acquire()).await;
        Ok(permit.map_err(|_| Error::Busy)?.ok())
    }

    /// The statements that read the next numbers from the index.
    fn statements(&self, search: &Search, after: i64) -> Vec<Statement> {
        let limit = Arg::from(self.chunk as i64 + 1);
        let one = |sql, name: Option<&str>| {
            let name = name.unwrap_or_default();
            vec![Statement::new(
                sql,
                [after.into(), name.into(), limit.clone()],
            )]
        };
        match self.index {
            None => Vec::new(),
            Some(Index::Tag) => one(TAGGED, search.tag()),
            Some(Index::Tracked) => vec![Statement::new(TRACKED, [after.into(), limit])],
            Some(Index::FailureGroup) => one(FAILED_WITH, search.failure()),
            Some(Index::Class) => one(OF_CLASS, search.class()),
            Some(Index::States) => {
                let part = |(state, when, queues): &(State, When, Vec<(QueueId,)>)| {
                    let statement = Statement::of_rows(in_state(*state, *when), queues);
                    let statement = statement.with(after).with(limit.clone());
                    match when {
                        When::Any => statement,
                        When::Past | When::Future => statement.with(self.now.0),
                    }
                };
                self.parts.iter().map(part).collect()
            }
        }
    }
}

impl Engine {
    /// Chooses what to read.
    pub(super) async fn plan(
        &self,
        search: &Search,
        queues: &QueuesById,
        limits: SearchLimits,
        now: Time,
    ) -> Result<Plan> {
        let states = states(search);
        // No index covers the last failure of a job that is no longer failed.
        let group = search.failure();
        let group = group.filter(|_| states.len() == 1 && states.contains_key(&State::Failed));
        let names = [
            (Index::Tag, TAG_COUNT, search.tag()),
            (Index::FailureGroup, GROUP_COUNT, group),
        ];
        let named = names
            .into_iter()
            .filter_map(|(index, sql, name)| Some((index, sql, name?)));
        let named: Vec<_> = named.collect();
        let answers = match named.is_empty() {
            true => Vec::new(),
            false => {
                let count = |(_, sql, name): &(Index, &'static str, &str)| {
                    Statement::new(sql, [(*name).into()])
                };
                let batch = named.iter().map(count).collect();
                self.readers().read(batch).await?
            }
        };
        let counts = self.share(
            |it| &it.counted_jobs,
            (),
            |engine| Box::pin(async move { engine.count_jobs().await }),
        );
        let counts = counts.await?;
        let searched = counts
            .iter()
            .filter(|row| searched_state(row, &states).is_some());
        let searched = searched.map(|(queue, ..)| *queue);
        let allowance = self.allowance(NAMES_WORK_MAX);
        let matching = matching_queues(search, queues, searched, allowance).await?;
        let counts = block_in_place_if_many(counts.len(), || {
            StateCounts::count(&counts, &matching, &states)
        });
        // The cost of each index, in entries, and how many jobs it leads to.
        let mut indexes = vec![(counts.entries, counts.matching, Index::States)];
        if search.requires_tracked() {
            let count = i64::try_from(self.known_tracked().count()).unwrap_or(i64::MAX);
            indexes.push((count, count, Index::Tracked));
        }
        for ((index, ..), answer) in named.iter().zip(answers) {
            let count = answer.rows.first().map_or(Ok(0), |row| row.int(0))?;
            indexes.push((count, count, *index));
        }
        let best = indexes.into_iter().min_by_key(|(entries, ..)| *entries);
        Ok(counts.into_plan(best, search, limits, now))
    }

    /// The numbers of jobs in each queue and state.
    async fn count_jobs(&self) -> Result<Vec<CountedJobs>> {
        let rows = self.readers().rows(Statement::new(COUNTS, [])).await?;
        block_in_place_if_many(rows.len(), || {
            let counts = rows.iter().map(counted_jobs);
            Ok(counts.collect::<Result<_, _>>()?)
        })
    }

    /// Reads the next numbers of an index.
    ///
    /// # Errors
    /// [`Error::Busy`], if other searches sort many entries for too long.
    pub(super) async fn numbers(&self, plan: &Plan, search: &Search, after: i64) -> Result<Source> {
        let statements = plan.statements(search, after);
        let mut numbers: Vec<i64> = Vec::new();
        if !statements.is_empty() {
            let sorts = match self.is_for_guests() {
                true => &SORTS_OF_GUESTS,
                false => &SORTS,
            };
            let permit = plan.sort_permit(sorts).await?;
            for answer in holding(permit, self.readers().read(statements)).await? {
                for row in &answer.rows {
                    numbers.push(row.int(0)?);
                }
            }
        }
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        let more = numbers.len() > plan.chunk;
        numbers.truncate(plan.chunk);
        Ok(Source::Numbers(numbers, more))
    }
}

/// Counts of the jobs in the queues and states that may match.
struct StateCounts {
    /// All jobs.
    all: i64,
    /// Jobs that may match.
    matching: i64,
    /// Index entries to read to find their numbers.
    entries: i64,
    /// The matching queues of each state.
    parts: Vec<(State, When, Vec<(QueueId,)>)>,
}

/// A queue, how many jobs it has in a state, and the state.
pub type CountedJobs = (QueueId, i64, Option<State>);

fn counted_jobs(row: &Row) -> Result<CountedJobs, StoreError> {
    Ok((row.int(0)?, row.int(1)?, State::from_code(row.int(2)?)))
}

/// The state, if the search may match jobs in it and there are any.
fn searched_state((_, n, state): &CountedJobs, states: &HashMap<State, When>) -> Option<State> {
    state.filter(|state| *n > 0 && states.contains_key(state))
}

/// The queues of these whose jobs may match: all that cannot be ruled out in a short time.
async fn matching_queues(
    search: &Search,
    queues: &QueuesById,
    ids: impl Iterator<Item = QueueId>,
    mut allowance: Allowance,
) -> Result<HashSet<QueueId>> {
    let mut ids: Vec<QueueId> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    let known = |id: QueueId| Some((id, Arc::clone(queues.get(&id)?)));
    let known: Arc<Vec<_>> = Arc::new(ids.into_iter().filter_map(known).collect());
    let (search, names) = (search.clone(), Arc::clone(&known));
    let matched = allowance.run(move |work| {
        each(&names, |(_, queue)| {
            let key = &queue.key;
            search.may_match_queue(key.protocol.as_str(), &key.namespace, &key.name, work)
        })
    });
    let matched = match matched.await {
        Ok(matched) => matched.value,
        Err(Error::Busy) => Vec::new(),
        Err(error) => return Err(error),
    };
    let matched = matched.into_iter().chain(iter::repeat(true));
    let matching = known.iter().zip(matched).filter(|(_, matches)| *matches);
    Ok(matching.map(|((id, _), _)| *id).collect())
}

impl StateCounts {
    fn count(
        counts: &[CountedJobs],
        matching_queues: &HashSet<QueueId>,
        states: &HashMap<State, When>,
    ) -> StateCounts {
        let (mut all, mut matching, mut complete) = (0, 0, 0);
        let mut of_states: HashMap<State, Vec<(QueueId,)>> = HashMap::new();
        let mut matching_complete = 0;
        for row in counts {
            let (queue, n, state) = row;
            all += n;
            if *state == Some(State::Complete) {
                complete += n;
            }
            let state = searched_state(row, states);
            if let Some(state) = state.filter(|_| matching_queues.contains(queue)) {
                // Maintenance leaves few scheduled jobs that are due.
                let is_few = (state, states.get(&state)) == (State::Scheduled, Some(&When::Past));
                matching += if is_few { 0 } else { *n };
                if state == State::Complete {
                    matching_complete += n;
                }
                of_states.entry(state).or_default().push((*queue,));
            }
        }
        // No index has complete jobs by queue, so the entries of all of them are read.
        let other = if of_states.contains_key(&State::Complete) {
            complete - matching_complete
        } else {
            0
        };
        let part = |(state, queues)| Some((state, *states.get(&state)?, queues));
        StateCounts {
            all,
            matching,
            entries: matching + other,
            parts: of_states.into_iter().filter_map(part).collect(),
        }
    }

    fn into_plan(
        self,
        best: Option<(i64, i64, Index)>,
        search: &Search,
        limits: SearchLimits,
        now: Time,
    ) -> Plan {
        let is_page = limits.jobs <= PAGE_JOBS;
        let entries_max = if is_page {
            PAGE_ENTRIES_MAX
        } else {
            ENTRIES_MAX
        };
        let narrows = |(entries, matching, _): &(i64, i64, Index)| {
            *entries <= entries_max && *matching < self.all && (is_page || *entries < self.all)
        };
        let mut best = best.filter(narrows);
        let is_frequent = |matching: i64| matching.saturating_mul(DENSE) >= self.all;
        // The index of classes has the order of the search, so it needs no sorting. It is used if no other index leaves
        // only a few jobs.
        let is_large = best
            .is_none_or(|(entries, matching, _)| entries > FEW_ENTRIES && is_frequent(matching));
        if search.class().is_some() && is_large {
            best = Some((0, self.matching, Index::Class));
        }
        let (entries, considered) =
            best.map_or((0, self.all), |(entries, matching, _)| (entries, matching));
        let wanted = match search.needs_only_indexes() {
            true => limits.jobs.saturating_add(SPARE).min(limits.scanned),
            false => limits.scanned,
        };
        let chunk = match best {
            // It continues where it has ended.
            Some((.., Index::Class)) => wanted.min(CHUNK),
            Some((.., Index::States)) if search.needs_only_indexes() => wanted,
            Some((entries, ..)) if entries > ENTRIES_MAX => limits.scanned.min(CHUNK),
            _ => limits.scanned,
        };
        Plan {
            index: best.map(|(.., index)| index),
            considered,
            is_dense: is_page && entries > FEW_ENTRIES && is_frequent(considered),
            entries,
            chunk,
            parts: self.parts,
            now,
        }
    }
}

/// The stored states that matching jobs can have; of scheduled and running jobs, which ones.
fn states(search: &Search) -> HashMap<State, When> {
    let matches: HashSet<EffectiveState> = (EffectiveState::ALL.into_iter())
        .filter(|state| search.may_match_state(state.as_str()))
        .collect();
    let is = |state: EffectiveState| matches.contains(&state);
    let split = |past: EffectiveState, future: EffectiveState| match (is(past), is(future)) {
        (true, true) => Some(When::Any),
        (true, false) => Some(When::Past),
        (false, true) => Some(When::Future),
        (false, false) => None,
    };
    let whole = |state: EffectiveState| is(state).then_some(When::Any);
    let mut states: HashMap<State, When> = [
        (State::Waiting, whole(EffectiveState::Waiting)),
        (
            State::Scheduled,
            split(EffectiveState::Waiting, EffectiveState::Scheduled),
        ),
        (State::Depends, whole(EffectiveState::Depends)),
        (
            State::Running,
            split(EffectiveState::Stalled, EffectiveState::Running),
        ),
        (State::TimedOut, whole(EffectiveState::Waiting)),
        (State::Failed, whole(EffectiveState::Failed)),
        (State::Complete, whole(EffectiveState::Complete)),
        (State::Dead, whole(EffectiveState::Dead)),
        (State::Record, whole(EffectiveState::Record)),
    ]
    .into_iter()
    .filter_map(|(state, when)| Some((state, when?)))
    .collect();
    if search.requires_worker() {
        states.retain(|state, _| *state == State::Running);
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::test_support::run_sql;
    use crate::engine::{NewPause, Put, QueueKey, engine_without_tasks};

    #[tokio::test]
    async fn queues_that_cannot_be_ruled_out_in_time_may_match() {
        let engine = engine_without_tasks().await;
        let long = "q".repeat(900);
        let names = (0..1_000).map(|n| QueueKey::qless(format!("{long}{n}")));
        let names: Vec<_> = names.collect();
        let paused = engine.pause_queues(&names, Some(NewPause::default()), None);
        paused.await.unwrap();
        let queues = engine.visible_queues();
        let matching = async |terms: usize| {
            let search = "-queue:*z ".repeat(terms) + "queue:*7";
            let search = Search::parse(&search).unwrap();
            let found = matching_queues(
                &search,
                &queues,
                queues.keys().copied(),
                Allowance::new(NAMES_WORK_MAX),
            )
            .await;
            found.unwrap().len()
        };
        assert_eq!(matching(1).await, 100);
        // 28 million steps.
        let many = matching(30).await;
        assert!((101..1_000).contains(&many), "{many}");
        engine.close().await;
    }

    /// The counts of the jobs decide what is read, not the jobs.
    const COUNT_MANY: &str = "
        UPDATE tallies SET n = CASE queue WHEN (SELECT min(id) FROM queues) THEN 50001 ELSE 1000000 END
        WHERE kind = {kind_state} AND slot = {waiting}";

    #[tokio::test]
    async fn searches_that_sort_over_50_000_entries_wait_for_each_other() {
        let engine = engine_without_tasks().await;
        for queue in ["few", "many"] {
            let job = Put::default();
            let put = engine.put(QueueKey::qless(queue), vec![job], String::new(), None);
            put.await.unwrap();
        }
        let search = Search::parse("queue:few state:waiting").unwrap();
        let plan = async || {
            let (queues, now) = (engine.visible_queues(), engine.now(None));
            let limits = SearchLimits {
                jobs: 10,
                scanned: 1_000,
                time: Duration::from_secs(60),
            };
            engine.plan(&search, &queues, limits, now).await.unwrap()
        };
        let small = plan().await;
        run_sql(&engine, COUNT_MANY).await;
        let large = plan().await;
        let found = engine.numbers(&large, &search, i64::MAX).await.unwrap();
        assert!(matches!(found, Source::Numbers(numbers, false) if numbers.len() == 1));
        tokio::time::pause();
        let _permit = SORTS.acquire().await.unwrap();
        assert!(small.sort_permit(&SORTS).await.unwrap().is_none());
        assert_eq!(large.sort_permit(&SORTS).await.err(), Some(Error::Busy));
        tokio::time::resume();
        engine.close().await;
    }
}

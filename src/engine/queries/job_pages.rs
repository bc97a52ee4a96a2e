//! Pages by key of jobs with shortened texts, and of other rows: a page begins after a row, or ends before one. So each
//! page costs the same as the first, and rows neither repeat nor are skipped when other jobs leave the list or enter
//! it.

use std::cmp::Ordering;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::Result;
use crate::engine::model::job::{EffectiveState, Job, QueueKey, State};
use crate::engine::model::job_columns::job_columns;
use crate::engine::model::job_rows;
use crate::engine::model::page::{Direction, PageOf, PageStart, PageStatements, Position, Range};
use crate::engine::queries::failures::FAILURE_COUNT;
use crate::store::{Arg, Row, Statement};

macro_rules! pages {
    (ascending by $key:literal: $of:literal) => {
        PageStatements {
            direction: Direction::Ascending,
            forward: pages!($key, $of, "", ""),
            backward: pages!($key, $of, " DESC", " DESC"),
        }
    };
    (descending by $key:literal: $of:literal) => {
        PageStatements {
            direction: Direction::Descending,
            forward: pages!($key, $of, " DESC", " DESC"),
            backward: pages!($key, $of, "", ""),
        }
    };
    ($key:literal, $of:literal, $order:literal, $then:literal) => {
        concat!(
            "SELECT ", job_columns!(brief: "1000"), " FROM jobs AS j WHERE ", $of,
            " AND (", $key, ", j.seq) > ($2, $3) AND (", $key, ", j.seq) < ($4, $5) ORDER BY ",
            $key, $order, ", j.seq", $then, " LIMIT $1 + 0"
        )
    };
    // Each part is limited to the page before they are sorted together. The last one is short: due jobs that have not
    // been promoted yet.
    (waiting $order:literal) => {
        concat!(
            "SELECT ", job_columns!(brief: "1000"), " FROM (
                SELECT seq FROM (SELECT t.seq FROM jobs AS t WHERE t.queue = $6 AND t.state = {timed_out}
                    AND (t.since, t.seq) > ($2, $3) AND (t.since, t.seq) < ($4, $5)
                    ORDER BY t.since", $order, ", t.seq", $order, " LIMIT $1 + 0) AS timed_out
                UNION ALL
                SELECT seq FROM (SELECT w.seq FROM jobs AS w WHERE w.queue = $6 AND w.state = {waiting}
                    AND (w.priority, w.ready_at, w.seq) > ($7, $8, $9) AND (w.priority, w.ready_at, w.seq) < ($10, $11, $12)
                    ORDER BY w.priority", $order, ", w.ready_at", $order, ", w.seq", $order, " LIMIT $1 + 0) AS waiting
                UNION ALL
                SELECT seq FROM (SELECT s.seq FROM jobs AS s WHERE s.queue = $6 AND s.state = {scheduled}
                    AND s.ready_at <= $13
                    AND (s.priority, s.ready_at, s.seq) > ($7, $8, $9) AND (s.priority, s.ready_at, s.seq) < ($10, $11, $12)
                    ORDER BY s.priority", $order, ", s.ready_at", $order, ", s.seq", $order, " LIMIT $1 + 0) AS due
            ) AS c CROSS JOIN jobs AS j WHERE j.seq = c.seq
            ORDER BY CASE WHEN j.state = {timed_out} THEN 0 ELSE 1 END", $order, ",
                CASE WHEN j.state = {timed_out} THEN 0 ELSE j.priority END", $order, ",
                CASE WHEN j.state = {timed_out} THEN j.since ELSE j.ready_at END", $order, ", j.seq", $order, " LIMIT $1 + 0"
        )
    };
}

impl Engine {
    /// A page of the jobs in a state, of one queue or (only scheduled ones) of all.
    pub async fn job_page(
        &self,
        state: EffectiveState,
        queue: Option<&QueueKey>,
        place: PageStart,
        limit: usize,
        now: Option<Time>,
    ) -> Result<PageOf<Job>> {
        self.refresh_cache().await?;
        let now = self.now(now);
        let list = match (queue, state) {
            (None, EffectiveState::Scheduled) => SCHEDULED,
            (None, _) => return Ok(PageOf::default()),
            (Some(_), EffectiveState::Waiting) => WAITING_IN,
            (Some(_), EffectiveState::Scheduled) => SCHEDULED_IN,
            (Some(_), EffectiveState::Depends) => DEPENDS_IN,
            (Some(_), EffectiveState::Running | EffectiveState::Stalled) => LEASED_IN,
            (Some(_), EffectiveState::Failed) => FAILED_IN,
            (Some(_), EffectiveState::Complete) => COMPLETE_IN,
            (Some(_), EffectiveState::Dead) => DEAD_IN,
            (Some(_), EffectiveState::Record) => RECORDS_IN,
        };
        let mut of = Vec::new();
        if let Some(queue) = queue {
            let Some(queue) = self.known_queues().get(queue) else {
                return Ok(PageOf::default());
            };
            of.push(queue.id.into());
        }
        let args = |range: Range| match state {
            EffectiveState::Waiting => waiting_args(range, &of, now),
            _ => time_args(within(range, state, now), &of),
        };
        let position = |job: &Job| position(job, state);
        self.page_of(&list, place, limit, args, job, position).await
    }

    /// The number of failed jobs in `group`, and a page of them, newest failure first.
    pub async fn failed_page(
        &self,
        group: &str,
        place: PageStart,
        limit: usize,
    ) -> Result<(i64, PageOf<Job>)> {
        self.refresh_cache().await?;
        let count = Statement::new(FAILURE_COUNT, [group.into()]);
        let rows = self.readers().rows(count).await?;
        let total = rows.first().map_or(Ok(0), |row| row.int(0))?;
        let of = [group.into()];
        let args = |range: Range| time_args(range, &of);
        let position = |job: &Job| position(job, EffectiveState::Failed);
        let page = self.page_of(&FAILED_WITH, place, limit, args, job, position);
        Ok((total, page.await?))
    }

    /// A page of a list. Its statements have the parameter $1 for the number of rows, then those of `args`.
    pub(super) async fn page_of<T>(
        &self,
        list: &PageStatements,
        place: PageStart,
        limit: usize,
        args: impl Fn(Range) -> Vec<Arg>,
        parse: fn(&Row) -> Result<T>,
        position: impl Fn(&T) -> Position,
    ) -> Result<PageOf<T>> {
        // If the read against the order reaches the start of the list, the first page is read.
        for place in [place, PageStart::First] {
            let sql = match place {
                PageStart::Before(_) => list.backward,
                PageStart::First | PageStart::After(_) => list.forward,
            };
            let mut all: Vec<Arg> = vec![(limit as i64).saturating_add(1).into()];
            all.extend(args(Range::of(place, list.direction)));
            let rows = self.readers().rows(Statement::new(sql, all)).await?;
            let rows: Result<Vec<T>> = rows.iter().map(parse).collect();
            let page = PageOf::new(rows?, place, list.direction, limit, &position);
            if let Some(page) = page {
                return Ok(page);
            }
        }
        Ok(PageOf::default())
    }
}

fn job(row: &Row) -> Result<Job> {
    Ok(job_rows::job(row)?.0)
}

/// The position of a job in the list of the jobs in this state.
fn position(job: &Job, state: EffectiveState) -> Position {
    let time = match state {
        EffectiveState::Waiting if job.state == State::TimedOut => {
            return Position {
                priority: f64::NEG_INFINITY,
                ..Position::at(job.since.0, job.seq)
            };
        }
        EffectiveState::Waiting => {
            return Position {
                priority: job.priority,
                ..Position::at(job.ready_at.0, job.seq)
            };
        }
        EffectiveState::Scheduled => job.ready_at,
        EffectiveState::Running | EffectiveState::Stalled => {
            job.lease.as_ref().map_or(job.since, |lease| lease.until)
        }
        EffectiveState::Record => job.updated_at.unwrap_or(job.since),
        EffectiveState::Depends
        | EffectiveState::Failed
        | EffectiveState::Complete
        | EffectiveState::Dead => job.since,
    };
    Position::at(time.0, job.seq)
}

/// The part of the range with jobs in this state: the current time separates running jobs from stalled ones, and due
/// jobs from scheduled ones. One range, because the database searches an index with only one lower limit.
fn within(range: Range, state: EffectiveState, now: Time) -> Range {
    let key = |position: &Position| (position.time, position.seq);
    let now = Position::at(now.0, i64::MAX);
    match state {
        EffectiveState::Scheduled | EffectiveState::Running if key(&now) > key(&range.from) => {
            Range { from: now, ..range }
        }
        EffectiveState::Stalled if key(&now) < key(&range.to) => Range { to: now, ..range },
        _ => range,
    }
}

/// The parameters $2 to $5 for the range, and the others.
pub fn time_args(range: Range, of: &[Arg]) -> Vec<Arg> {
    let Range { from, to } = range;
    let mut args: Vec<Arg> = [from.time, from.seq, to.time, to.seq].map(Arg::from).into();
    args.extend_from_slice(of);
    args
}

fn waiting_args(range: Range, of: &[Arg], now: Time) -> Vec<Arg> {
    let mut args = time_args(timed_out(range), of);
    for at in [range.from, range.to] {
        args.extend([Arg::Real(at.priority), at.time.into(), at.seq.into()]);
    }
    args.push(now.0.into());
    args
}

/// The part of the range with timed-out jobs, which precede all others.
fn timed_out(range: Range) -> Range {
    let is_among = |at: Position| at.priority.total_cmp(&f64::NEG_INFINITY) == Ordering::Equal;
    Range {
        from: if is_among(range.from) {
            range.from
        } else {
            Position::END
        },
        to: if is_among(range.to) {
            range.to
        } else {
            Position::END
        },
    }
}

const WAITING_IN: PageStatements = PageStatements {
    direction: Direction::Ascending,
    forward: pages!(waiting ""),
    backward: pages!(waiting " DESC"),
};

const SCHEDULED_IN: PageStatements =
    pages!(ascending by "j.ready_at": "j.queue = $6 AND j.state = {scheduled}");

const DEPENDS_IN: PageStatements =
    pages!(ascending by "j.since": "j.queue = $6 AND j.state = {depends}");

const LEASED_IN: PageStatements =
    pages!(ascending by "j.lease_until": "j.queue = $6 AND j.state = {running}");

const FAILED_IN: PageStatements =
    pages!(descending by "j.since": "j.queue = $6 AND j.state = {failed}");

const COMPLETE_IN: PageStatements =
    pages!(descending by "j.since": "j.queue = $6 AND j.state = {complete}");

const DEAD_IN: PageStatements = pages!(ascending by "j.since": "j.queue = $6 AND j.state = {dead}");

const RECORDS_IN: PageStatements =
    pages!(ascending by "j.updated_at": "j.queue = $6 AND j.state = {record}");

const SCHEDULED: PageStatements = pages!(ascending by "j.ready_at": "j.state = {scheduled}");

const FAILED_WITH: PageStatements =
    pages!(descending by "j.since": "j.failure_group = $6 AND j.state = {failed}");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::engine_without_tasks;
    use crate::engine::model::recurring;

    /// SQLite's plan of a statement, a line per step.
    async fn plan(engine: &Engine, sql: &str, args: usize) -> Vec<String> {
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let args = (0..args).map(|_| Arg::from(1_i64));
        let explain = Statement::new(Box::leak(sql.into_boxed_str()), args);
        let rows = engine.readers().rows(explain).await.unwrap();
        rows.iter().map(|row| row.text(3).unwrap()).collect()
    }

    /// Among rows with equal keys, SQLite compares the numbers row by row, because `seq` is the rowid.
    #[tokio::test]
    async fn a_page_is_one_range_of_an_index_in_its_order() {
        let engine = engine_without_tasks().await;
        for (list, index, key) in [
            (recurring::ALL_PAGES, "recurring_due", "next_at"),
            (SCHEDULED_IN, "jobs_scheduled", "ready_at"),
            (DEPENDS_IN, "jobs_depending", "since"),
            (LEASED_IN, "jobs_leased", "lease_until"),
            (FAILED_IN, "jobs_failed_in", "since"),
            (COMPLETE_IN, "jobs_complete", "since"),
            (DEAD_IN, "jobs_dead", "since"),
            (RECORDS_IN, "jobs_touched", "updated_at"),
            (FAILED_WITH, "jobs_failed", "since"),
            (SCHEDULED, "jobs_due", "ready_at"),
        ] {
            for sql in [list.forward, list.backward] {
                let of_all_queues = ["jobs_due", "recurring_due"].contains(&index);
                let args = if of_all_queues { 5 } else { 6 };
                let plan = plan(&engine, sql, args).await;
                let search = plan.iter().find(|step| step.starts_with("SEARCH "));
                let search = search.cloned().unwrap_or_default();
                let range = match index {
                    "recurring_due" => "(next_at,seq)>(?,?) AND (next_at,seq)<(?,?)".to_owned(),
                    _ => format!("{key}>? AND {key}<?"),
                };
                assert!(search.contains(&format!("{index} ")), "{plan:?}");
                assert!(search.contains(&range), "{plan:?}");
                let sorts = plan
                    .iter()
                    .any(|step| step.contains("TEMP B-TREE FOR ORDER"));
                assert!(!sorts, "{plan:?}");
            }
        }
        for sql in [WAITING_IN.forward, WAITING_IN.backward] {
            let plan = plan(&engine, sql, 13).await;
            for (alias, range) in [
                ("t", "since>? AND since<?"),
                (
                    "w",
                    "(priority,ready_at)>(?,?) AND (priority,ready_at)<(?,?)",
                ),
            ] {
                let search = format!("SEARCH {alias} ");
                let step = plan.iter().find(|step| step.starts_with(&search));
                assert!(step.is_some_and(|step| step.contains(range)), "{plan:?}");
            }
        }
        engine.close().await;
    }
}

//! The claims of a transaction. They run after the other verbs, and see their changes.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use crate::engine::model::job::QueueId;
use crate::engine::unit_of_work::transaction::WriteRequest;
use crate::engine::unit_of_work::{NextJobs, UnitOfWork, WantedJobs, spawn};
use crate::store::{Connection, Statement, StoreError};

/// Writes the changes of the other verbs, so that claims see them, then runs the claims. Claims whose caller has
/// disconnected get no jobs. Returns the statements to run with the commit; without claims, these are `writes`.
pub async fn run_claims(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    requests: &mut [WriteRequest],
    mut writes: Vec<Statement>,
    recurring_in: &HashSet<QueueId>,
    shared: bool,
) -> Result<Vec<Statement>, StoreError> {
    let counted_max = if shared {
        COUNTED_MAX_SHARED
    } else {
        COUNTED_MAX
    };
    let (wanted, uncounted) = wanted(work, requests, counted_max);
    // If running jobs are limited, servers count and claim one after the other.
    if shared && let Some(lock) = UnitOfWork::lock_limited_queues(&wanted) {
        connection.run(vec![lock]).await?;
    }
    if !wanted.is_empty() {
        // On a full disk, due recurring jobs are not spawned.
        let none = HashSet::new();
        let recurring_in = if connection.is_disk_full() {
            &none
        } else {
            recurring_in
        };
        let before = writes.len();
        writes.extend(work.candidate_statements(&wanted, recurring_in));
        let answers = if before == 0 {
            connection.read(writes).await?
        } else {
            connection.run(writes).await?
        };
        let answers = answers.into_iter().skip(before);
        let mut due = work.take_candidates(&wanted, recurring_in, answers)?;
        uncounted
            .iter()
            .for_each(|queue| work.leave_for_later(*queue));
        let firsts = first_queues(work, requests, &wanted);
        let turn = usize::try_from(work.now.0).unwrap_or_default();
        let start = firsts.get(turn % firsts.len().max(1)).copied();
        let long = work.long_parts_of_candidates(&wanted, start).statements();
        if !long.is_empty() {
            let answers = connection.run(long).await?;
            work.take_long_parts(answers)?;
        }
        // When a job ends, claims of its queue are woken.
        due.retain(|due| work.free_capacity(due.queue) > 0);
        if !due.is_empty() {
            let wanted = work.wanted_children(&wanted);
            let full = wanted.iter().filter(|it| it.count == 0);
            let full: HashSet<QueueId> = full.map(|it| it.queue).collect();
            for due in &due {
                if work.expired_leases(due.queue) > 0 {
                    // They come first, but may yield no job: without retries left, it fails.
                    work.note_more(due.queue);
                }
                if full.contains(&due.queue) {
                    // A long poll that gets none of the other jobs tries again.
                    work.available_at(due.queue, due.next_at);
                }
            }
            let (planned, cut) = spawn::planned(&wanted, &firsts, due, work.now);
            for queue in cut {
                work.note_more_children(queue);
                // A long poll that gets none of them tries again.
                work.available_at(queue, work.now);
            }
            let answers = connection
                .run(UnitOfWork::spawn_statements(&planned))
                .await?;
            work.spawn(&wanted, &planned, &answers)?;
        }
        work.note_cut(&wanted);
        writes = Vec::new();
    }
    for request in requests.iter_mut().filter(|request| claims(request)) {
        request.run(work);
    }
    writes.extend(work.job_writes());
    Ok(writes)
}

/// Whether the request is a claim whose caller waits for it.
fn claims(request: &WriteRequest) -> bool {
    !request.needs.claim.is_empty() && !request.task.is_abandoned()
}

/// The first queue of each claim, if they claim from several queues: one of them has the first turn.
fn first_queues(
    work: &UnitOfWork,
    requests: &[WriteRequest],
    wanted: &[WantedJobs],
) -> Vec<QueueId> {
    if wanted.len() < 2 {
        return Vec::new();
    }
    let waiting = requests.iter().filter(|request| claims(request));
    let firsts = waiting.filter_map(|request| {
        let first = request.needs.claim.first()?;
        Some(work.queue(&first.queue)?.id)
    });
    firsts.collect()
}

/// Running jobs that a transaction counts for the concurrency limits of queues: on SQLite, and on Postgres, which looks
/// up the row of each.
const COUNTED_MAX: usize = 200_000;
const COUNTED_MAX_SHARED: usize = 20_000;

/// The jobs that the claims request per queue. Also the queues whose running jobs would have to be counted beyond
/// `counted_max`, of which the claims get jobs in a later transaction.
fn wanted(
    work: &UnitOfWork,
    requests: &[WriteRequest],
    counted_max: usize,
) -> (Vec<WantedJobs>, HashSet<QueueId>) {
    let mut wanted: Vec<WantedJobs> = Vec::new();
    let (mut uncounted, mut counted) = (HashSet::new(), 0);
    let mut places = HashMap::<QueueId, usize, RandomState>::default();
    let waiting = requests.iter().filter(|request| claims(request));
    let all = waiting.flat_map(|request| &request.needs.claim);
    for NextJobs {
        queue,
        count,
        include_paused,
    } in all
    {
        let Some(queue) = work
            .queue(queue)
            .filter(|queue| *include_paused || !queue.is_paused(work.now))
        else {
            continue;
        };
        if uncounted.contains(&queue.id) {
            continue;
        }
        if let Some(wanted) = places.get(&queue.id).and_then(|it| wanted.get_mut(*it)) {
            wanted.count += count;
            continue;
        }
        let limit = work.config.concurrency_max(&queue.key);
        let running_max = limit.unwrap_or_default();
        if running_max > 0 && counted > 0 && counted + running_max > counted_max {
            uncounted.insert(queue.id);
            continue;
        }
        counted += running_max;
        places.insert(queue.id, wanted.len());
        wanted.push(WantedJobs {
            queue: queue.id,
            count: *count,
            limit,
        });
    }
    (wanted, uncounted)
}

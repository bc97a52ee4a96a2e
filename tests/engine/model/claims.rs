//! The model's claims, for all protocols, and the children of recurring jobs.

use std::collections::{BTreeMap, VecDeque};

use switchyard::engine::{Claim, Order, Protocol, QueueKey, State};

use super::memory::{Key, Model, ModelJob, ModelLease, Outcome, Scope, after, qless};
use super::qless::exhausted;

/// Jobs that one transaction claims.
const CLAIM_MAX: usize = 250;

/// Consecutive transactions of a claim that lease no job.
const EMPTY_MAX: usize = 64;

/// The next jobs of a queue.
#[derive(Debug, Default)]
struct Candidates {
    expired: VecDeque<Key>,
    waiting: VecDeque<Key>,
    free: Option<usize>,
    /// Whether there may be more jobs: as many were found as requested.
    is_cut: bool,
    /// Whether a child is due that another transaction creates: because all possible IDs are in use, or because there
    /// are expired leases, which come first.
    has_more: bool,
    /// Whether all possible IDs of a child are in use.
    has_more_children: bool,
}

impl Candidates {
    fn has_more(&self) -> bool {
        self.has_more && self.has_room()
    }

    fn has_room(&self) -> bool {
        self.free != Some(0)
    }
}

type All = BTreeMap<QueueKey, Candidates>;

/// The result of one transaction.
struct Batch {
    jobs: Vec<Key>,
    has_more: bool,
    /// The queue of the last job, and the queues that continue.
    round: Option<(Option<QueueKey>, Vec<QueueKey>)>,
}

/// Orders numbers, with -0 as 0.
fn rank(number: f64) -> i64 {
    let bits = (number + 0.0).to_bits().cast_signed();
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

fn per_queue(claim: &Claim) -> usize {
    match claim.order {
        Order::Ordered => claim.count,
        Order::RoundRobin => claim.count.min((CLAIM_MAX / claim.queues.len()).max(1)),
    }
}

impl Model {
    /// The IDs of the claimed jobs.
    pub fn claim(&mut self, claim: &Claim) -> Outcome {
        let keys = self.claim_keys(claim);
        let ids: Vec<String> = keys.into_iter().map(|(_, id)| id).collect();
        ids.join(" ")
    }

    fn claim_keys(&mut self, claim: &Claim) -> Vec<Key> {
        let (mut jobs, mut claim) = (Vec::new(), claim.clone());
        let (count, all) = (claim.count, claim.queues.clone());
        let turn = (claim.worker.clone(), all.clone());
        if claim.order == Order::RoundRobin {
            let next = self.turns.get(&turn).copied().unwrap_or_default();
            claim.queues.rotate_left(next % all.len());
        }
        let mut empty = 0;
        while jobs.len() < count && empty < EMPTY_MAX {
            claim.count = (count - jobs.len()).min(CLAIM_MAX);
            let is_last = empty + 1 == EMPTY_MAX;
            let batch = self.claim_batch(&claim, is_last);
            empty = if batch.jobs.is_empty() { empty + 1 } else { 0 };
            let is_all = batch.jobs.len() < claim.count && !batch.has_more;
            jobs.extend(batch.jobs);
            if let Some((last, left)) = batch.round {
                let of_last = last.and_then(|last| all.iter().position(|queue| *queue == last));
                if let Some(place) = of_last {
                    self.turns.insert(turn.clone(), (place + 1) % all.len());
                }
                claim.queues = left;
            }
            if claim.queues.is_empty() || is_all {
                break;
            }
        }
        jobs
    }

    /// Claims jobs in one transaction.
    fn claim_batch(&mut self, claim: &Claim, is_last: bool) -> Batch {
        let mut all = All::new();
        for queue in &claim.queues {
            let known = self.queues.get(queue);
            if known.is_some_and(|known| !known.paused) {
                let found = self.candidates(queue, per_queue(claim));
                all.insert(queue.clone(), found);
            }
        }
        for found in all.values_mut() {
            let count = found.expired.len() + found.waiting.len();
            found.is_cut = count >= per_queue(claim) || found.has_more;
        }
        // The engine does not look at more jobs than the queue has room for, even if a grace period begins for one.
        for found in all.values_mut() {
            let free = found.free.unwrap_or(usize::MAX);
            found.expired.truncate(free);
            found.waiting.truncate(free);
        }
        let mut batch = match claim.order {
            Order::RoundRobin => self.claim_in_turn(claim, &mut all, is_last),
            Order::Ordered => self.claim_in_order(claim, &mut all, is_last),
        };
        batch.has_more |= all.values().any(Candidates::has_more);
        batch
    }

    fn claim_in_order(&mut self, claim: &Claim, all: &mut All, is_last: bool) -> Batch {
        let mut jobs = Vec::new();
        for queue in &claim.queues {
            let rest = claim.count - jobs.len();
            jobs.extend(self.claim_from(claim, queue, rest, all));
            let has_more = all.get(queue).is_some_and(Candidates::has_more);
            if has_more && !(is_last && jobs.is_empty()) {
                break;
            }
        }
        Batch {
            jobs,
            has_more: false,
            round: None,
        }
    }

    fn claim_in_turn(&mut self, claim: &Claim, all: &mut All, is_last: bool) -> Batch {
        let count = claim.queues.len();
        let (mut jobs, mut visits) = (Vec::new(), vec![0; count]);
        let (mut next, mut empty, mut last, mut has_more) = (0, 0, None, false);
        while jobs.len() < claim.count && empty < count {
            let queue = &claim.queues[next];
            let found = all.get(queue);
            let is_cut = found.is_some_and(|found| found.is_cut && found.has_room());
            if visits[next] >= per_queue(claim) && is_cut {
                has_more = true;
                break;
            }
            visits[next] += 1;
            let found = self.claim_from(claim, queue, 1, all);
            let others = all.get(queue).is_some_and(Candidates::has_more);
            if found.is_empty() && others && !(is_last && jobs.is_empty()) {
                has_more = true;
                break;
            }
            if found.is_empty() {
                empty += 1;
            } else {
                (empty, last) = (0, Some(queue.clone()));
            }
            next = (next + 1) % count;
            jobs.extend(found);
        }
        let mut left = claim.queues.clone();
        left.rotate_left(next);
        left.retain(|queue| {
            last.is_none()
                || all.get(queue).is_some_and(|found| {
                    let is_loaded = found.expired.len() + found.waiting.len() > 0;
                    (is_loaded || found.is_cut || found.has_more) && found.has_room()
                })
        });
        Batch {
            jobs,
            has_more,
            round: Some((last, left)),
        }
    }

    /// The next `count` jobs of a queue, and the children of its recurring jobs that are due.
    fn candidates(&mut self, queue: &QueueKey, count: usize) -> Candidates {
        let now = self.now;
        let is_in = |job: &ModelJob| job.queue == *queue && !job.has_ended(now);
        let mut expired = self.keys(
            |_, job| is_in(job) && job.state == State::Running && job.has_expired(now),
            |job| (job.lease.as_ref().map(|lease| lease.until), job.seq),
        );
        expired.truncate(count);
        let by_priority = |job: &ModelJob| (rank(job.priority), job.ready_at, job.seq);
        let mut waiting = Vec::new();
        for state in [State::TimedOut, State::Waiting, State::Scheduled] {
            let is_next = |job: &ModelJob| is_in(job) && job.state == state && job.ready_at <= now;
            let mut some = match state {
                State::TimedOut => self.keys(|_, job| is_next(job), |job| (job.since, job.seq)),
                _ => self.keys(|_, job| is_next(job), by_priority),
            };
            some.truncate(count);
            waiting.extend(some);
        }
        let running = |job: &&ModelJob| {
            job.queue == *queue && job.state == State::Running && !job.has_expired(now)
        };
        let running = self.jobs.values().filter(running).count();
        let free = self.concurrency(queue);
        let free = free.map(|max| max.saturating_sub(running));
        let wanted = count.min(free.unwrap_or(usize::MAX));
        let mut recurring = self.recurring.values();
        let is_due = recurring.any(|it| it.queue == *queue && it.next_at <= now);
        let (children, has_more_children) =
            self.spawn(queue, count, wanted.saturating_sub(expired.len()));
        waiting.extend(children);
        let has_more = has_more_children || is_due && !expired.is_empty();
        Candidates {
            expired: expired.into(),
            waiting: self.in_order(waiting),
            free,
            is_cut: false,
            has_more,
            has_more_children,
        }
    }

    /// Sorts waiting jobs in claim order.
    fn in_order(&self, mut waiting: Vec<Key>) -> VecDeque<Key> {
        waiting.sort_by_key(|key| {
            let job = &self.jobs[key];
            let priority = (job.state != State::TimedOut).then(|| rank(job.priority));
            (priority, job.ready_at, job.seq)
        });
        waiting.into()
    }

    /// Creates up to `left` children that are due in the queue, of up to `count` recurring jobs.
    fn spawn(&mut self, queue: &QueueKey, count: usize, mut left: usize) -> (Vec<Key>, bool) {
        let now = self.now;
        let due = self.recurring.iter();
        let due = due.filter(|(_, it)| it.queue == *queue && it.next_at <= now);
        let mut due: Vec<_> = due
            .map(|(id, it)| (it.next_at, it.seq, id.clone()))
            .collect();
        due.sort();
        due.truncate(count);
        let (mut children, mut planned, mut has_more) = (Vec::new(), left, false);
        for (next_at, _, id) in due {
            let interval = self.recurring[&id].interval;
            let first = self.recurring[&id].first_kept(next_at, now);
            let missed = usize::try_from((now - first) / interval).unwrap_or(usize::MAX);
            let plan = missed.saturating_add(1).min(planned);
            planned -= plan;
            // If no more jobs are wanted, it stays as it is.
            if plan.min(left) > 0 {
                let spawned = self.spawn_of(&id, plan, plan.min(left));
                let is_due = self.recurring[&id].next_at <= now;
                has_more = spawned.len() < plan.min(left) && is_due;
                left -= spawned.len();
                children.extend(spawned);
                if has_more {
                    break;
                }
            }
        }
        (children, has_more)
    }

    /// Creates up to `count` children of one recurring job. `planned` limits how many used IDs are skipped.
    fn spawn_of(&mut self, id: &str, planned: usize, count: usize) -> Vec<Key> {
        let Some(mut it) = self.recurring.remove(id) else {
            return Vec::new();
        };
        it.next_at = it.first_kept(it.next_at, self.now);
        let (first, mut children) = (it.children, Vec::new());
        let tried = |children| 2 * i64::try_from(children).unwrap_or(i64::MAX) + 8;
        let (looked_up, last) = (first + tried(planned), first + tried(count));
        while it.next_at <= self.now && children.len() < count && it.children < last {
            it.children += 1;
            let key = qless(&format!("{id}-{}", it.children));
            assert!(it.children <= looked_up, "the engine looked up these IDs");
            if self.jobs.contains_key(&key) {
                continue;
            }
            let mut job = self.new_job(&it.queue);
            job.priority = it.priority;
            (job.retries, job.remaining) = (it.retries, it.retries);
            job.klass.clone_from(&it.klass);
            job.tags.clone_from(&it.tags);
            job.body.clone_from(&it.body);
            job.spawned_from = Some(id.to_owned());
            (job.created_at, job.since, job.ready_at) = (it.next_at, it.next_at, it.next_at);
            self.jobs.insert(key.clone(), job);
            children.push(key);
            it.next_at += it.interval;
        }
        self.recurring.insert(id.to_owned(), it);
        children
    }

    fn claim_from(
        &mut self,
        claim: &Claim,
        queue: &QueueKey,
        count: usize,
        all: &mut All,
    ) -> Vec<Key> {
        let Some(found) = all.get_mut(queue) else {
            return Vec::new();
        };
        let by_qless = queue.protocol == Protocol::Qless;
        let count = count.min(found.free.unwrap_or(usize::MAX));
        let mut jobs = Vec::new();
        if !by_qless {
            let expired: Vec<Key> = found.expired.drain(..).collect();
            let back = expired.into_iter().filter(|key| self.expire(key));
            let waiting: Vec<Key> = found.waiting.drain(..).chain(back).collect();
            found.waiting = self.in_order(waiting);
        }
        for _ in 0..count {
            let Some(key) = found.expired.pop_front() else {
                break;
            };
            if self.claim_expired(claim, &key) {
                self.lease(claim, &key, found);
                jobs.push(key);
            }
        }
        while jobs.len() < count {
            let Some(key) = found.waiting.pop_front() else {
                break;
            };
            self.lease(claim, &key, found);
            jobs.push(key);
        }
        jobs
    }

    /// Ends an expired lease of qless. Returns whether the job can be leased now.
    fn claim_expired(&mut self, claim: &Claim, key: &Key) -> bool {
        let now = self.now;
        let grace_s = self.option("grace-period").unwrap_or(claim.grace_s);
        let Some(job) = self.jobs.get_mut(key) else {
            return false;
        };
        let Some(lease) = &mut job.lease else {
            return false;
        };
        if grace_s > 0.0 && !lease.in_grace_period {
            (lease.in_grace_period, lease.until) = (true, after(now, grace_s));
            return false;
        }
        let worker = lease.worker.clone();
        job.remaining -= 1;
        if job.remaining < 0 {
            let queue = job.queue.name.clone();
            job.fail(exhausted(&queue, worker, now));
        }
        job.remaining >= 0
    }

    fn lease(&mut self, claim: &Claim, key: &Key, found: &mut Candidates) {
        let (now, number) = (self.now, self.next_lease());
        let queue = self.jobs[key].queue.clone();
        let own = || {
            let heartbeat = self.heartbeat_s(&queue.name);
            let cutoff = self.cutoff_s(&queue.name);
            cutoff.map_or(heartbeat, |cutoff| heartbeat.min(cutoff))
        };
        let by_qless = queue.protocol == Protocol::Qless;
        let lease_s = claim.lease_s.or_else(|| by_qless.then(own));
        if let Some(free) = &mut found.free {
            *free = free.saturating_sub(1);
        }
        if let (Scope::In(queue), id) = key {
            self.runs.insert((queue.clone(), id.clone()), number);
        }
        if let Some(job) = self.jobs.get_mut(key) {
            job.state = State::Running;
            job.since = now;
            job.updated_at = job.updated_at.map(|_| now);
            let lease_s = lease_s.unwrap_or(job.timeout_s.unwrap_or_default() as f64);
            job.lease = Some(ModelLease {
                worker: claim.worker.clone(),
                until: after(now, lease_s),
                in_grace_period: false,
                number,
            });
        }
    }

    /// The IDs of the next jobs.
    pub fn peek(&mut self, queue: &QueueKey, count: usize) -> Outcome {
        let (mut left, mut empty) = (count, 0);
        while left > 0 && empty < EMPTY_MAX && self.has_due_child(queue) {
            let (spawned, has_more) = self.candidates_spawned(queue, left);
            if spawned == 0 && !has_more {
                break;
            }
            empty = if spawned == 0 { empty + 1 } else { 0 };
            left = left.saturating_sub(spawned);
        }
        let now = self.now;
        let stalled = self.keys(
            |_, job| job.queue == *queue && job.state == State::Running && job.has_expired(now),
            |job| (job.lease.as_ref().map(|lease| lease.until), job.seq),
        );
        let is_waiting = |job: &ModelJob| {
            matches!(
                job.state,
                State::TimedOut | State::Waiting | State::Scheduled
            ) && job.ready_at <= now
        };
        let waiting = self.keys(
            |_, job| job.queue == *queue && is_waiting(job),
            |job| job.seq,
        );
        let next = stalled.into_iter().chain(self.in_order(waiting));
        let ids: Vec<String> = next.take(count).map(|(_, id)| id).collect();
        ids.join(" ")
    }

    fn has_due_child(&self, queue: &QueueKey) -> bool {
        let mut all = self.recurring.values();
        all.any(|it| it.queue == *queue && it.next_at <= self.now)
    }

    /// Creates children as a claim of `count` jobs would. Returns how many, and whether there are more.
    fn candidates_spawned(&mut self, queue: &QueueKey, count: usize) -> (usize, bool) {
        let before = self.jobs.len();
        let found = self.candidates(queue, count);
        let has_more = found.has_more_children && found.has_room();
        (self.jobs.len() - before, has_more)
    }
}

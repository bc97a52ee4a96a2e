//! Cancel: deletes jobs, all or none if they fit into one transaction.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::clock::Time;
use crate::engine::error::{Error, Result};
use crate::engine::events::LogEvent;
use crate::engine::model::job::{JobKey, State};
use crate::engine::unit_of_work::{Needs, UnitOfWork};
use crate::engine::verbs::lifecycle::leave_queue;
use crate::engine::verbs::{EACH_MAX, needs_of_jobs};
use crate::memory::{Busy, SMALL_MAX, reserve_loaded};

/// Dependencies among the jobs of one request, which are kept in memory.
const REQUEST_DEPENDENCIES_MAX: usize = 1_000_000;

/// Jobs whose dependents are loaded before these are counted: at most a tenth as many dependents as
/// [`REQUEST_DEPENDENCIES_MAX`].
const CHECKED_MAX: usize = 50;

impl Engine {
    /// Cancels all of the jobs, or none if one cannot be canceled (qless-core's `cancel`). More than [`EACH_MAX`] jobs,
    /// and jobs that are too large for one transaction, are canceled in several: all are checked first, and dependents
    /// are deleted before the jobs they depend on. A crash, or a concurrent change by another client, can then leave
    /// some jobs.
    ///
    /// # Errors
    /// [`AlreadyComplete`, `HasDependents`, `TooMany`, `Busy`](crate::engine::Error).
    pub async fn cancel(&self, keys: Vec<JobKey>, now: Option<Time>) -> Result<()> {
        if keys.len() > EACH_MAX {
            return self.cancel_in_parts(keys, now).await;
        }
        let (mut needs, count, named) = (needs_of_jobs(&keys), keys.len(), keys.clone());
        needs.divisible = keys.len() > 1;
        needs.deletes = true;
        let cancel = move |work: &mut UnitOfWork| cancel(work, &named);
        match self.write(needs, now, count, cancel).await {
            Err(Error::Oversized) => self.cancel_in_parts(keys, now).await,
            outcome => outcome,
        }
    }

    /// Cancels jobs in several transactions.
    async fn cancel_in_parts(&self, mut keys: Vec<JobKey>, now: Option<Time>) -> Result<()> {
        let mut seen = HashSet::new();
        keys.retain(|key| seen.insert(key.id.clone()));
        drop(seen);
        let places = Arc::new(places(&keys));
        let known = Arc::clone(&places);
        // The place of a dependent needs less memory than its ID.
        let check = move |work: &mut UnitOfWork, key: &JobKey| {
            let is_named = |id: &str| known.contains_key(id);
            let dependents = dependents_if_cancellable(work, key, is_named)?;
            let places = dependents.iter().filter_map(|id| known.get(id));
            Ok(places.copied().collect::<Vec<usize>>())
        };
        // The first dependents of each job suffice to refuse most requests. They are loaded with the job.
        let need_first = |needs: &mut Needs, key: &JobKey| {
            needs.job(key);
            needs.skips_long_parts = true;
            needs.keeps_dependencies = true;
        };
        for keys in keys.chunks(EACH_MAX) {
            let checked = self.apply_until_error(keys.to_vec(), now, need_first, check.clone());
            drop(checked.await?);
        }
        let mut checked = Vec::with_capacity(keys.len());
        let (mut dependencies, mut reserved) = (0, 0);
        for keys in keys.chunks(CHECKED_MAX) {
            let dependents = self.apply_until_error(keys.to_vec(), now, Needs::job, check.clone());
            for dependents in dependents.await? {
                dependencies += dependents.len();
                checked.push(dependents.into_boxed_slice());
            }
            check_dependencies(dependencies)?;
            let more = (dependencies - reserved) * size_of::<usize>();
            if more > SMALL_MAX {
                let reserving = reserve_loaded(more).await;
                reserving.map_err(|Busy| Error::Busy)?;
                reserved = dependencies;
            }
        }
        let cancel = |work: &mut UnitOfWork, key: &JobKey| cancel(work, std::slice::from_ref(key));
        let keys = dependents_first(keys, &places, &checked);
        let need = |needs: &mut Needs, key: &JobKey| {
            needs.job(key);
            needs.deletes = true;
        };
        self.apply_until_error(keys, now, need, cancel).await?;
        Ok(())
    }
}

/// Deletes all of these jobs or none, with their history, tags and dependencies. Missing IDs are ignored.
///
/// # Errors
/// [`Error::AlreadyComplete`]; [`Error::HasDependents`] if a job that is not in `keys` depends on one of them.
pub fn cancel(work: &mut UnitOfWork, keys: &[JobKey]) -> Result<()> {
    let ids: HashSet<&str> = keys.iter().map(|key| key.id.as_str()).collect();
    for key in keys {
        dependents_if_cancellable(work, key, |id| ids.contains(id))?;
    }
    for key in keys {
        let Some(job) = work.job(key) else { continue };
        let (queue, lease) = (work.queue_name(job.queue), job.lease.clone());
        leave_queue(work, key);
        work.remove(key);
        let event = LogEvent::Canceled {
            id: &key.id,
            queue: &queue,
            worker: lease.as_ref().map(|lease| lease.worker.as_str()),
        };
        work.events.log(&event);
        if let Some(lease) = &lease {
            work.events.worker(&lease.worker, &event);
        }
        work.publish_tracked("canceled", key);
    }
    Ok(())
}

/// The dependents of a job, if it may be canceled together with the jobs that `is_named` names.
///
/// # Errors
/// [`Error::AlreadyComplete`]; [`Error::HasDependents`] if another job depends on it.
fn dependents_if_cancellable<'a>(
    work: &'a UnitOfWork,
    key: &JobKey,
    is_named: impl Fn(&str) -> bool,
) -> Result<&'a [String]> {
    let Some(job) = work.job(key) else {
        return Ok(&[]);
    };
    if job.state == State::Complete {
        return Err(Error::AlreadyComplete { id: key.id.clone() });
    }
    let others = job.dependents.iter().filter(|id| !is_named(id));
    let others: Vec<String> = others.cloned().collect();
    if others.is_empty() {
        return Ok(&job.dependents);
    }
    Err(Error::HasDependents {
        id: key.id.clone(),
        dependents: others,
    })
}

/// Fails if the jobs of one request have more dependencies among them than [`REQUEST_DEPENDENCIES_MAX`].
fn check_dependencies(count: usize) -> Result<()> {
    if count > REQUEST_DEPENDENCIES_MAX {
        return Err(Error::TooMany {
            what: "dependencies in one request",
            max: REQUEST_DEPENDENCIES_MAX,
        });
    }
    Ok(())
}

/// The place of each ID in the list.
fn places(keys: &[JobKey]) -> HashMap<String, usize> {
    let ids = keys.iter().map(|key| key.id.clone());
    ids.enumerate().map(|(place, id)| (id, place)).collect()
}

/// Orders the jobs so that each comes after its dependents. `dependents` has their places for each job.
fn dependents_first(
    keys: Vec<JobKey>,
    places: &HashMap<String, usize>,
    dependents: &[Box<[usize]>],
) -> Vec<JobKey> {
    let of = |place: usize| dependents.get(place).into_iter().flatten();
    let mut order = Vec::with_capacity(keys.len());
    let mut seen = vec![false; keys.len()];
    for place in places.values() {
        // The flag is set once the job's dependents have been pushed: they are in `order` when it is popped again.
        let mut open = vec![(*place, false)];
        while let Some((place, is_next)) = open.pop() {
            if is_next {
                order.push(place);
                continue;
            }
            let Some(seen) = seen.get_mut(place) else {
                continue;
            };
            if std::mem::replace(seen, true) {
                continue;
            }
            open.push((place, true));
            open.extend(of(place).map(|other| (*other, false)));
        }
    }
    let mut keys: Vec<Option<JobKey>> = keys.into_iter().map(Some).collect();
    let taken = order
        .into_iter()
        .filter_map(|place| keys.get_mut(place)?.take());
    taken.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(dependents: &[(&str, &[&str])]) -> Vec<String> {
        let keys: Vec<_> = dependents
            .iter()
            .map(|(id, _)| JobKey::qless(*id))
            .collect();
        let places = places(&keys);
        let lists = dependents.iter().map(|(_, ids)| ids.iter());
        let lists: Vec<Box<[usize]>> = lists
            .map(|ids| ids.map(|id| places[*id]).collect())
            .collect();
        let keys = dependents_first(keys, &places, &lists);
        keys.into_iter().map(|key| key.id).collect()
    }

    #[test]
    fn each_job_comes_after_those_that_depend_on_it() {
        let jobs: [(&str, &[&str]); 5] = [
            ("a", &["b", "c"]),
            ("b", &["c", "d"]),
            ("c", &["d"]),
            ("d", &[]),
            ("e", &["a"]),
        ];
        let found = order(&jobs);
        assert_eq!(found.len(), jobs.len());
        let place = |id: &str| found.iter().position(|found| found == id);
        for (id, dependents) in jobs {
            for dependent in dependents {
                assert!(place(dependent) < place(id), "{found:?}");
            }
        }
    }

    #[test]
    fn a_chain_of_ten_thousand_is_no_deeper_than_one() {
        let ids: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
        let keys: Vec<_> = ids.iter().map(JobKey::qless).collect();
        let next = |place: usize| Box::from_iter((place < ids.len()).then_some(place));
        let dependents: Vec<Box<[usize]>> = (1..=ids.len()).map(next).collect();
        let places = places(&keys);
        let found = dependents_first(keys, &places, &dependents);
        assert!(found.iter().map(|key| &key.id).eq(ids.iter().rev()));
    }

    #[test]
    fn a_duplicate_job_is_ordered_once_and_too_many_edges_are_rejected() {
        assert_eq!(order(&[("a", &[]), ("a", &[])]), ["a"]);
        assert_eq!(check_dependencies(REQUEST_DEPENDENCIES_MAX), Ok(()));
        assert!(check_dependencies(REQUEST_DEPENDENCIES_MAX + 1).is_err());
    }
}

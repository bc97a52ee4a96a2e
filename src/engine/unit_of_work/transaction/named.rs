//! The verbs of a transaction that name their jobs.

use crate::engine::BYTES_PER_WEIGHT;
use crate::engine::unit_of_work::cycles::{CycleSearch, STEPS_MAX};
use crate::engine::unit_of_work::long_parts::LONG_PARTS_MAX;
use crate::engine::unit_of_work::relations::RELATIONS_MAX;
use crate::engine::unit_of_work::transaction::{WriteRequest, too_large};
use crate::engine::unit_of_work::{UnitOfWork, releases};
use crate::store::{Connection, Statement, StoreError, WEIGHT_MAX};

/// The weight of a request whose cycle check reached its read limit, or whose dependencies have too many dependents.
/// More than half of the maximum of a commit group, so two such requests never share a transaction.
const CYCLE_SEARCH_WEIGHT: usize = 1_100;

/// Loads the named jobs and runs the verbs on them. Returns the statements to write.
pub async fn run_named(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    requests: &mut [WriteRequest],
) -> Result<Vec<Statement>, StoreError> {
    let needs = requests.iter().map(|request| &request.needs);
    let wanted = UnitOfWork::record_ids_needed(needs);
    if !wanted.is_empty() {
        let answers = connection
            .run(vec![UnitOfWork::reserve_record_ids(&wanted)])
            .await?;
        work.take_record_ids(&wanted, answers)?;
    }
    let oldest = requests
        .iter()
        .any(|request| request.needs.oldest.is_some());
    let divisible = requests.len() > 1 || requests.iter().any(|it| it.needs.divisible);
    if divisible {
        check_sizes(connection, work, requests).await?;
    }
    let load = work.load_statements(requests.iter().map(|request| &request.needs));
    if !load.is_empty() {
        let answers = connection.read(load).await?;
        work.take_loaded(answers, oldest)?;
    }
    if divisible {
        count_relations(connection, work, requests).await?;
    }
    let long = work.long_parts(requests.iter().map(|request| &request.needs));
    let relations = work.relations(requests.iter().map(|request| &request.needs));
    let is_large = long.bytes > LONG_PARTS_MAX || relations > RELATIONS_MAX || work.has_uncounted();
    if is_large && divisible {
        return Err(too_large(requests, |request| weight_of(work, request)));
    }
    let long = long.statements();
    if !long.is_empty() {
        let answers = connection.read(long).await?;
        work.take_long_parts(answers)?;
    }
    releases::load_dependents(connection, work, requests, divisible).await?;
    let mut search = CycleSearch::from(work, requests.iter().map(|request| &request.needs));
    while let Some(level) = search.next_level() {
        let answers = connection.read(vec![level]).await?;
        search.loaded(work, &answers)?;
    }
    let searches = |request: &&WriteRequest| !request.needs.dependencies.is_empty();
    if search.reached_limit().is_some() && requests.iter().filter(searches).count() > 1 {
        return Err(too_large(requests, cycle_search_weight));
    }
    if divisible {
        let steps = requests.iter().map(|it| search.steps(work, &it.needs));
        let steps: Vec<usize> = steps.collect();
        if steps.iter().sum::<usize>() > STEPS_MAX {
            let mut weights = steps
                .into_iter()
                .map(|steps| steps * WEIGHT_MAX / STEPS_MAX);
            return Err(too_large(requests, |_| weights.next().unwrap_or_default()));
        }
    }
    work.cycle_search_limit = search.reached_limit();
    work.begin_audit();
    for request in requests
        .iter_mut()
        .filter(|request| request.needs.claim.is_empty())
    {
        request.run(work);
    }
    Ok(work.job_writes())
}

/// Checks the sizes of many named jobs before they are loaded.
async fn check_sizes(
    connection: &mut Connection,
    work: &UnitOfWork,
    requests: &mut [WriteRequest],
) -> Result<(), StoreError> {
    let needs = requests.iter().map(|request| &request.needs);
    let Some(sizes) = work.load_sizes_statement(needs) else {
        return Ok(());
    };
    let sizes = UnitOfWork::load_sizes(&connection.read(vec![sizes]).await?)?;
    if sizes.values().sum::<usize>() <= LONG_PARTS_MAX {
        return Ok(());
    }
    Err(too_large(requests, |request| {
        work.load_size(&request.needs, &sizes) / BYTES_PER_WEIGHT
    }))
}

/// Counts the dependencies that the verbs remove and the dependents that they release, if they were not loaded, so that
/// a transaction is not cut into smaller ones than necessary.
async fn count_relations(
    connection: &mut Connection,
    work: &mut UnitOfWork,
    requests: &mut [WriteRequest],
) -> Result<(), StoreError> {
    let needs = requests.iter().map(|request| &request.needs);
    if let Some(count) = work.count_relations_statement(needs) {
        let answers = connection.read(vec![count]).await?;
        work.take_relations_counted(&answers)?;
    }
    Ok(())
}

/// The weight of what the request loads.
fn weight_of(work: &UnitOfWork, request: &WriteRequest) -> usize {
    let needs = || std::iter::once(&request.needs);
    let (long, relations) = (work.counted_parts(needs()), work.relations(needs()));
    let uncounted = match work.has_uncounted() {
        true => cycle_search_weight(request),
        false => 0,
    };
    (long.bytes / BYTES_PER_WEIGHT)
        .max(relations)
        .max(uncounted)
}

/// The weight of the request's search for cycles, if that reaches its limit.
fn cycle_search_weight(request: &WriteRequest) -> usize {
    match request.needs.dependencies.is_empty() {
        true => 0,
        false => CYCLE_SEARCH_WEIGHT,
    }
}

//! The qless load: add, get, complete.

use std::rc::Rc;

use super::Result;
use super::client::Connection;
use super::drive::{Load, Shared, TRIES};
use super::target::Target;

/// Size of a job's `meta`, in bytes.
const META_BYTES: usize = 256;

/// One connection and its requests.
pub struct Worker {
    connection: Connection,
    shared: Rc<Shared>,
    jobs: usize,
    /// Whether only one server uses the database.
    alone: bool,
    host: String,
    meta: String,
    add: (String, String),
    get: String,
    complete: String,
}

impl Worker {
    pub async fn new(
        target: &Target,
        load: &Load,
        number: usize,
        shared: Rc<Shared>,
    ) -> Result<Worker> {
        let queue = load.queue(number);
        let host = format!("worker-{number}");
        let meta = format!("\"{}\"", "m".repeat(META_BYTES - 2));
        let item = format!("{{\"meta\":{meta}}}");
        let (items, count) = if load.jobs == 1 {
            (item, String::new())
        } else {
            (
                format!("[{}]", vec![item; load.jobs].join(",")),
                format!("/{}", load.jobs),
            )
        };
        Ok(Worker {
            connection: Connection::open(target.address(number)?).await?,
            shared,
            jobs: load.jobs,
            alone: target.is_alone(),
            add: (format!("/add/{queue}"), format!("{{\"data\":{items}}}")),
            get: format!("/get/{queue}{count}?host={host}"),
            complete: format!("/complete/{queue}"),
            host,
            meta,
        })
    }

    pub async fn cycle(&mut self) -> Result<()> {
        let response = self.connection.post(&self.add.0, &self.add.1).await?;
        let added = results(response)?;
        expect(added.len(), self.jobs, response)?;
        for id in added {
            self.shared.ledger.borrow_mut().added(id)?;
        }
        // Every connection adds jobs before it gets some, so there are always enough, possibly of another connection.
        // Several servers skip jobs that another one is claiming, so the request may have to be repeated.
        let mut got: Vec<String> = Vec::new();
        for _ in 0..if self.alone { 1 } else { TRIES } {
            let response = self.connection.get(&self.get).await?;
            got.extend(ids(response).map(str::to_owned));
            if self.alone {
                expect(got.len(), self.jobs, response)?;
            }
            if got.len() >= self.jobs {
                break;
            }
        }
        if got.is_empty() {
            return Ok(());
        }
        let items: Vec<String> = got
            .iter()
            .map(|id| format!("{{\"id\":\"{id}\",\"meta\":{}}}", self.meta))
            .collect();
        let items = if self.jobs == 1 {
            items.concat()
        } else {
            format!("[{}]", items.join(","))
        };
        let body = format!("{{\"host\":\"{}\",\"data\":{items}}}", self.host);
        let response = self.connection.post(&self.complete, &body).await?;
        let completed = results(response)?;
        if completed != got {
            return Err(format!("not all were completed: {response}").into());
        }
        for id in completed {
            self.shared.ledger.borrow_mut().completed(id)?;
        }
        Ok(())
    }
}

fn expect(found: usize, wanted: usize, response: &str) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{found} jobs instead of {wanted}: {response}").into())
}

/// The IDs in `results`, which is an ID or an array of IDs.
fn results(response: &str) -> Result<Vec<&str>> {
    let (_, results) = response.split_once("\"results\":").ok_or("no results")?;
    Ok(match results.strip_prefix('[') {
        Some(array) => array.split(']').next().unwrap_or_default(),
        None => results.split_inclusive('"').nth(1).unwrap_or_default(),
    }
    .split(',')
    .map(|id| id.trim().trim_matches('"'))
    .filter(|id| !id.is_empty())
    .collect())
}

/// The IDs of the jobs in the response to a get.
fn ids(response: &str) -> impl Iterator<Item = &str> {
    response
        .split("\"id\":\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
}

//! The sections: put, claim and complete in each protocol, with single jobs and in batches; a page; a search.

use std::net::Ipv4Addr;

use switchyard::engine::{Engine, EngineSettings};
use switchyard::http::{Settings, serve_engine};
use switchyard::store::Durability;
use tokio::net::TcpListener;

use super::client::Connection;
use super::{Result, boundary};

/// Requests in a section with single jobs.
const SINGLE: usize = 200;

/// Requests in a section with batches.
const BATCHES: usize = 20;
/// Jobs in a batch.
const BATCH: usize = 50;

/// Requests in a section with pages.
const PAGES: usize = 20;

/// Jobs in the queue that the pages show.
const JOBS_SHOWN: usize = 10;

/// Polls of Jobq.
const POLLS: usize = 50;

/// Requests before the first section of each kind, which prepare the statements on each database connection and grow
/// buffers.
const WARM_UP: usize = 50;

/// Size of a job body, in bytes.
const BODY_BYTES: usize = 256;

/// Starts the server in this process and runs all sections.
pub fn run() -> Result<()> {
    // One thread, because the scheduling of several varies between runs.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let settings = Settings {
            engine: EngineSettings {
                database: "sqlite::memory:".to_owned(),
                durability: Durability::Process,
                // No maintenance, which runs by the clock and would count toward random sections.
                without_tasks: true,
                ..EngineSettings::default()
            },
            no_auth: true,
            ..Settings::default()
        };
        let engine = Engine::open(&settings.engine).await?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?.to_string();
        tokio::spawn(async move {
            let served = serve_engine(listener, engine, &settings, std::future::pending());
            served.await.ok();
        });
        let mut driver = Driver {
            connection: Connection::open(&address).await?,
            body: format!("\"{}\"", "b".repeat(BODY_BYTES - 2)),
        };
        // First, while there are few jobs, because a search over many ends by the clock.
        driver.dashboard().await?;
        driver.qless().await?;
        driver.lmstfy().await?;
        driver.relay().await?;
        driver.jobq().await
    })
}

/// A request: method, path, body, and the expected status.
type Request = (&'static str, String, String, u16);

struct Driver {
    connection: Connection,
    /// The body of every job, a JSON string.
    body: String,
}

impl Driver {
    /// Sends `requests` between two boundaries, so that callgrind counts them separately. Without a name, they only
    /// warm up and are not counted.
    async fn section(&mut self, name: &str, requests: Vec<Request>) -> Result<Vec<String>> {
        let mut responses = Vec::with_capacity(requests.len());
        let counted = !name.is_empty();
        if counted {
            println!("{name}\t{}", requests.len());
            boundary();
        }
        for (method, path, body, status) in &requests {
            let response = self.connection.exchange(method, path, body, *status);
            responses.push(response.await?.to_owned());
        }
        if counted {
            boundary();
        }
        Ok(responses)
    }

    async fn qless(&mut self) -> Result<()> {
        let (body, batch) = (
            self.body.clone(),
            vec![format!(r#"{{"meta":{}}}"#, self.body); BATCH],
        );
        let put = |_| {
            (
                "POST",
                "/add/post".into(),
                format!(r#"{{"data":{{"meta":{body}}}}}"#),
                200,
            )
        };
        let claim = |_| ("GET", "/get/post?host=worker-1".into(), String::new(), 200);
        let complete = |id: &String| {
            let data = format!(r#"{{"host":"worker-1","data":{{"id":"{id}","meta":{body}}}}}"#);
            ("POST", "/complete/post".into(), data, 200)
        };
        for (prefix, n) in [("", WARM_UP), ("qless", SINGLE)] {
            let name = |verb: &str| label(prefix, verb);
            let put = (0..n).map(put).collect();
            self.section(&name("put"), put).await?;
            let claim = (0..n).map(claim).collect();
            let jobs = self.section(&name("claim"), claim).await?;
            let ids: Vec<String> = jobs.iter().flat_map(|job| all(job, r#""id":""#)).collect();
            let complete = ids.iter().map(complete).collect();
            self.section(&name("complete"), complete).await?;
        }
        let put = (0..BATCHES).map(|_| {
            let data = format!(r#"{{"data":[{}]}}"#, batch.join(","));
            ("POST", "/add/post".into(), data, 200)
        });
        self.section("qless put 50", put.collect()).await?;
        let path = format!("/get/post/{BATCH}?host=worker-1");
        let claim = vec![("GET", path, String::new(), 200); BATCHES];
        let jobs = self.section("qless claim 50", claim).await?;
        let complete = jobs.iter().map(|jobs| {
            let items =
                all(jobs, r#"{"id":""#).map(|id| format!(r#"{{"id":"{id}","meta":{body}}}"#));
            let items: Vec<String> = items.collect();
            let data = format!(r#"{{"host":"worker-1","data":[{}]}}"#, items.join(","));
            ("POST", "/complete/post".into(), data, 200)
        });
        self.section("qless complete 50", complete.collect())
            .await?;
        Ok(())
    }

    async fn lmstfy(&mut self) -> Result<()> {
        let body = self.body.clone();
        let queue = "/api/default/mail";
        let put = |_| ("PUT", format!("{queue}?tries=3"), body.clone(), 201);
        let claim = |_| ("GET", format!("{queue}?ttr=60"), String::new(), 200);
        let complete = |id: String| ("DELETE", format!("{queue}/job/{id}"), String::new(), 204);
        for (prefix, n) in [("", WARM_UP), ("lmstfy", SINGLE)] {
            let name = |verb: &str| label(prefix, verb);
            let put = (0..n).map(put).collect();
            self.section(&name("publish"), put).await?;
            let claim = (0..n).map(claim).collect();
            let jobs = self.section(&name("consume"), claim).await?;
            let ids = jobs.iter().flat_map(|job| all(job, r#""job_id":""#));
            let complete = ids.map(complete).collect();
            self.section(&name("acknowledge"), complete).await?;
        }
        let jobs = format!("[{}]", vec![body.clone(); BATCH].join(","));
        let put = vec![("PUT", format!("{queue}/bulk"), jobs, 201); BATCHES];
        self.section("lmstfy publish 50", put).await?;
        let path = format!("{queue}?ttr=60&count={BATCH}");
        let claim = vec![("GET", path, String::new(), 200); BATCHES];
        self.section("lmstfy consume 50", claim).await?;
        Ok(())
    }

    async fn relay(&mut self) -> Result<()> {
        let body = self.body.clone();
        let mut next = 0..;
        let mut job = || {
            let id = next.next().unwrap_or(0);
            format!(
                r#"{{"queue":"mail","id":"{id}","timeout":60,"max_retries":3,"payload":{body}}}"#
            )
        };
        let (enqueue, queue) = ("/v2/queues/jobs", "/v2/queues/mail/jobs");
        for (prefix, n) in [("", WARM_UP), ("relay", SINGLE)] {
            let name = |verb: &str| label(prefix, verb);
            let put = (0..n).map(|_| ("POST", enqueue.to_owned(), format!("[{}]", job()), 202));
            self.section(&name("enqueue"), put.collect()).await?;
            let claim = vec![("GET", queue.to_owned(), String::new(), 200); n];
            let jobs = self.section(&name("next"), claim).await?;
            let complete = jobs.iter().flat_map(|job| {
                all(job, r#""id":""#)
                    .zip(all(job, r#""run_id":""#))
                    .map(|(id, run)| {
                        (
                            "DELETE",
                            format!("{queue}/{id}/run-id/{run}"),
                            String::new(),
                            200,
                        )
                    })
            });
            self.section(&name("complete"), complete.collect()).await?;
        }
        let put = (0..BATCHES).map(|_| {
            let jobs: Vec<String> = (0..BATCH).map(|_| job()).collect();
            (
                "POST",
                enqueue.to_owned(),
                format!("[{}]", jobs.join(",")),
                202,
            )
        });
        self.section("relay enqueue 50", put.collect()).await?;
        let claim = vec![
            (
                "GET",
                format!("{queue}?num_jobs={BATCH}"),
                String::new(),
                200
            );
            BATCHES
        ];
        self.section("relay next 50", claim).await?;
        Ok(())
    }

    async fn jobq(&mut self) -> Result<()> {
        let make = (
            "POST",
            "/api/v0/queue".into(),
            r#"{"name":"hosts"}"#.into(),
            200,
        );
        self.section("", vec![make]).await?;
        let queue = "/api/v0/queue/hosts";
        let create = format!(r#"{{"payload":{}}}"#, self.body);
        let mut polls = 0..;
        // Whitespace makes the queries different, so that each poll searches. Polls with the same query would share a
        // search for half a second, and how many do depends on the load of the machine.
        let mut poll = || {
            let space = " ".repeat(polls.next().unwrap_or(0));
            let query = format!(r#"[["IS","j.state",null]{space}]"#);
            let body = format!(r#"{{"query":{query},"state":["ASSIGNED"]}}"#);
            ("POST", format!("{queue}/poll_job"), body, 200)
        };
        for (prefix, n) in [("", WARM_UP), ("jobq", POLLS)] {
            let name = |verb: &str| label(prefix, verb);
            let put = vec![("POST", format!("{queue}/job"), create.clone(), 200); n];
            self.section(&name("create"), put).await?;
            let claim = (0..n).map(|_| poll()).collect();
            let jobs = self.section(&name("poll"), claim).await?;
            let complete = jobs.iter().filter_map(|job| {
                let (_, rest) = job.split_once(r#""id":"#)?;
                let id = rest.split([',', '}']).next()?;
                Some(("DELETE", format!("{queue}/job/{id}"), String::new(), 200))
            });
            self.section(&name("delete"), complete.collect()).await?;
        }
        Ok(())
    }

    async fn dashboard(&mut self) -> Result<()> {
        let job = format!(r#"{{"data":{{"meta":{}}}}}"#, self.body);
        let put = ("POST", "/add/mail".to_owned(), job, 200);
        self.section("", vec![put; JOBS_SHOWN]).await?;
        let pages = [
            ("queue", "/ui/queues/mail"),
            ("search", "/ui/jobs?q=state%3Awaiting%20queue%3Amail"),
        ];
        for (prefix, n) in [("", WARM_UP), ("dashboard", PAGES)] {
            for (name, path) in pages {
                let requests = vec![("GET", path.to_owned(), String::new(), 200); n];
                self.section(&label(prefix, name), requests).await?;
            }
        }
        Ok(())
    }
}

/// The name of a section; empty during warm-up.
fn label(prefix: &str, verb: &str) -> String {
    match prefix {
        "" => String::new(),
        prefix => format!("{prefix} {verb}"),
    }
}

/// The texts between each `start` and the next quotation mark.
fn all<'a>(response: &'a str, start: &'a str) -> impl Iterator<Item = String> + 'a {
    let parts = response.split(start).skip(1);
    parts.filter_map(|part| Some(part.split('"').next()?.to_owned()))
}

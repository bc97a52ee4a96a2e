//! Random calls, one after the other, on the server and on a small model of it. Compares each response with the model,
//! and all jobs at intervals.
//!
//! `SWITCHYARD_SEED` repeats a walk that has failed.

use reqwest::Method;
use serde_json::{Value, json};

use super::{assert_consistent, client, start};
use crate::support::jobq::{self, Job, Jobq, What, path, plain};
use crate::support::random::Random;
use crate::support::settings;

/// `SWITCHYARD_STEPS` sets another number.
const STEPS: u64 = 1_800;
const NAMES: [&str; 3] = ["a", "b", "c/d"];
const TAGS: [&str; 4] = ["CREATED", "ASSIGNED", "FINISHED", "X"];

/// A job in the model.
#[derive(Clone, Debug)]
struct Known {
    id: i64,
    n: i64,
    state: Value,
    log: Vec<What>,
    /// The step of the last change.
    touched: usize,
}

impl Known {
    fn set(&mut self, state: Value, step: usize) {
        let advanced = What::Advanced(plain(&self.state), plain(&state));
        self.log.push(advanced);
        self.state = state;
        self.touched = step;
    }

    /// Checks that the job on the server is the same.
    #[track_caller]
    fn is(&self, job: &Job, log: &[String]) {
        let payload = plain(&json!({"n": self.n}));
        assert_eq!(
            (job.id, &job.payload, &job.state, job.log()),
            (self.id, &payload, &plain(&self.state), self.log.clone()),
            "{log:#?}"
        );
    }
}

/// A queue in the model.
#[derive(Debug)]
struct Queue {
    id: i64,
    name: &'static str,
    next: i64,
    /// Ordered by ID.
    jobs: Vec<Known>,
}

/// Whether a job matches.
type Test = Box<dyn Fn(&Known) -> bool>;

/// A query or a term, and a function that selects the matching jobs.
type Question = (Value, Test);

/// The server, and the model of it.
struct Walk {
    jobq: Jobq,
    /// Ordered by ID.
    queues: Vec<Queue>,
    last_queue: i64,
    random: Random,
    step: usize,
    /// The calls so far, for error messages.
    log: Vec<String>,
}

impl Walk {
    /// A random number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.random.index(end)
    }

    fn number(&mut self, end: usize) -> i64 {
        i64::try_from(self.below(end)).expect("few")
    }

    fn note(&mut self, what: &str) {
        self.log.push(format!("{}: {what}", self.step));
    }

    /// The queue with this name in the model.
    fn queue(&mut self, name: &str) -> Option<&mut Queue> {
        self.queues.iter_mut().find(|queue| queue.name == name)
    }

    fn known(&mut self, name: &str, id: i64) -> Option<&mut Known> {
        let jobs = &mut self.queue(name)?.jobs;
        jobs.iter_mut().find(|job| job.id == id)
    }

    /// The ID of a random job of the queue, or sometimes an unknown one.
    fn some_id(&mut self, name: &str) -> i64 {
        let pick = self.below(1_000);
        let Some(queue) = self.queue(name) else {
            return 1;
        };
        let job = queue.jobs.get(pick % (queue.jobs.len() + 1));
        job.map_or(queue.next + 3, |job| job.id)
    }

    fn some_state(&mut self) -> Value {
        let tag = TAGS[self.below(TAGS.len())];
        match self.below(7) {
            0 | 1 => Value::Null,
            2 | 3 => json!([tag]),
            4 => json!([tag, {"node": self.below(3)}]),
            5 => json!(tag),
            _ => json!({"tag": tag, "n": self.below(3)}),
        }
    }

    /// A random query of up to two terms.
    fn some_question(&mut self) -> Question {
        let mut terms = Vec::new();
        let mut tests: Vec<Test> = Vec::new();
        for _ in 0..self.below(3) {
            let (tag, n) = (TAGS[self.below(TAGS.len())], self.number(6));
            let (term, test): Question = match self.below(7) {
                0 => (
                    json!(["IS", "json_extract(state, '$[0]')", tag]),
                    Box::new(move |job| job.state[0] == tag),
                ),
                1 => (
                    json!(["=", "json_extract(j.state,'$[1].node')", n % 3]),
                    Box::new(move |job| job.state[1]["node"] == n % 3),
                ),
                2 => (
                    json!(["IS", "j.state", null]),
                    Box::new(|job| job.state.is_null()),
                ),
                3 => (
                    json!(["IS NOT", "state", null]),
                    Box::new(|job| !job.state.is_null()),
                ),
                4 => (
                    json!([">", "json_extract(payload,'$.n')", n]),
                    Box::new(move |job| job.n > n),
                ),
                5 => (
                    json!(["=", "id % 3", n % 3]),
                    Box::new(move |job| job.id % 3 == n % 3),
                ),
                _ => (
                    json!(["LIKE", "state", format!("'%{tag}%'")]),
                    Box::new(move |job| plain(&job.state).contains(tag)),
                ),
            };
            terms.push(term);
            tests.push(test);
        }
        let all = move |job: &Known| tests.iter().all(|test| test(job));
        (json!(terms), Box::new(all))
    }

    /// The IDs of the matching jobs, least recently changed first.
    fn matching(&mut self, name: &str, test: &dyn Fn(&Known) -> bool) -> Option<Vec<i64>> {
        let jobs = &self.queue(name)?.jobs;
        let mut jobs: Vec<&Known> = jobs.iter().filter(|job| test(job)).collect();
        jobs.sort_by_key(|job| (job.touched, job.id));
        Some(jobs.iter().map(|job| job.id).collect())
    }

    /// The name or the number of the queue, at random.
    fn called(&mut self, name: &'static str) -> String {
        let by_number = self.below(2) == 0;
        match self.queue(name) {
            Some(queue) if by_number => queue.id.to_string(),
            _ => name.to_owned(),
        }
    }

    async fn step(&mut self) {
        self.step += 1;
        let name = NAMES[self.below(NAMES.len())];
        match self.below(40) {
            0 | 1 => self.create(name).await,
            2 => self.delete_queue(name).await,
            3..12 => self.put(name).await,
            12..15 => self.delete(name).await,
            15..22 => self.advance(name).await,
            22..27 => self.event(name).await,
            27..33 => self.query(name).await,
            _ => self.poll(name).await,
        }
    }

    async fn create(&mut self, name: &'static str) {
        self.note(&format!("create {name}"));
        let reply = self.jobq.post("/queue", &json!({"name": name})).await;
        if self.queue(name).is_some() {
            reply.assert_rejected(409, &[]);
            return;
        }
        let created: jobq::Queue = reply.ok();
        assert!(created.id > self.last_queue, "{:#?}", self.log);
        self.last_queue = created.id;
        self.queues.push(Queue {
            id: created.id,
            name,
            next: 1,
            jobs: Vec::new(),
        });
    }

    async fn delete_queue(&mut self, name: &'static str) {
        let called = self.called(name);
        self.note(&format!("expunge {name} as {called}"));
        let reply = self.jobq.send(Method::DELETE, &jobq::queue(&called)).await;
        if self.queue(name).is_some() {
            reply.done();
        } else {
            reply.assert_rejected(404, &[]);
        }
        self.queues.retain(|queue| queue.name != name);
    }

    async fn put(&mut self, name: &'static str) {
        let (called, n, state) = (self.called(name), self.number(8), self.some_state());
        self.note(&format!("put {n} in {state} into {name} as {called}"));
        let at = format!("{}/job", jobq::queue(&called));
        let body = json!({"payload": {"n": n}, "state": state});
        let created = self.jobq.post(&at, &body).await.maybe_job();
        let (step, log) = (self.step, self.log.clone());
        let Some(queue) = self.queue(name) else {
            assert_eq!(created, None, "{log:#?}");
            return;
        };
        let known = Known {
            id: queue.next,
            n,
            state,
            log: vec![What::Created],
            touched: step,
        };
        known.is(&created.expect("a job"), &log);
        queue.next += 1;
        queue.jobs.push(known);
    }

    async fn delete(&mut self, name: &'static str) {
        let (called, id) = (self.called(name), self.some_id(name));
        self.note(&format!("delete {id} of {name} as {called}"));
        let reply = self.jobq.send(Method::DELETE, &path(&called, id)).await;
        let Some(queue) = self.queue(name) else {
            reply.assert_rejected(404, &[]);
            return;
        };
        reply.done();
        queue.jobs.retain(|job| job.id != id);
    }

    async fn advance(&mut self, name: &'static str) {
        let (called, id, new) = (self.called(name), self.some_id(name), self.some_state());
        let guess = self.some_state();
        let knows = self.below(3) > 0;
        let now = self.known(name, id).map(|job| job.state.clone());
        let old = now.clone().filter(|_| knows).unwrap_or(guess);
        self.note(&format!("advance {id} of {name}: {old} to {new}"));
        let reply = self.jobq.advance(&called, id, &old, &new).await;
        let (step, log) = (self.step, self.log.clone());
        match self.known(name, id) {
            None => reply.assert_rejected(404, &[]),
            Some(job) if now.as_ref() == Some(&old) => {
                job.set(new, step);
                job.is(&reply.job(), &log);
            }
            Some(job) => job.is(&reply.conflict(), &log),
        }
    }

    async fn event(&mut self, name: &'static str) {
        let (called, id, event) = (self.called(name), self.some_id(name), self.some_state());
        self.note(&format!("event {event} of {id} of {name}"));
        let appended = self.jobq.event(&called, id, &event).await.maybe_job();
        let (step, log) = (self.step, self.log.clone());
        let Some(job) = self.known(name, id) else {
            assert_eq!(appended, None, "{log:#?}");
            return;
        };
        job.log.push(What::User(plain(&event)));
        job.touched = step;
        job.is(&appended.expect("a job"), &log);
    }

    async fn query(&mut self, name: &'static str) {
        let (called, (query, test)) = (self.called(name), self.some_question());
        let limit = 1 + self.below(30);
        self.note(&format!("query {query} of {name}, {limit}"));
        let at = format!("{}/query_jobs", jobq::queue(&called));
        let body = json!({"query": query, "limit": limit});
        let reply = self.jobq.post(&at, &body).await;
        let Some(mut expected) = self.matching(name, &test) else {
            reply.assert_rejected(404, &[]);
            return;
        };
        expected.truncate(limit);
        let found = reply.jobs();
        assert_eq!(jobq::ids(&found), expected, "{:#?}", self.log);
        let log = self.log.clone();
        for job in found {
            self.known(name, job.id).expect("it is").is(&job, &log);
        }
    }

    async fn poll(&mut self, name: &'static str) {
        let (called, (query, test)) = (self.called(name), self.some_question());
        let state = self.some_state();
        self.note(&format!("poll {query} of {name} to {state}"));
        let polled = self
            .jobq
            .send_poll(&called, &query, &state)
            .await
            .maybe_job();
        let expected = self.matching(name, &test).unwrap_or_default();
        let (step, log) = (self.step, self.log.clone());
        let id = polled.as_ref().map(|job| job.id);
        assert_eq!(id, expected.first().copied(), "{log:#?}");
        if let Some(polled) = polled {
            let job = self.known(name, polled.id).expect("it is there");
            job.set(state, step);
            job.is(&polled, &log);
        }
    }

    /// Checks that the server has exactly the queues and jobs of the model.
    async fn assert_matches_model(&mut self) {
        let queues = self.jobq.queues().await;
        let queues: Vec<(i64, &str)> = queues.iter().map(|q| (q.id, &*q.name)).collect();
        let known: Vec<(i64, &str)> = self.queues.iter().map(|q| (q.id, q.name)).collect();
        assert_eq!(queues, known, "{:#?}", self.log);
        for queue in &self.queues {
            let jobs = self.jobq.all(queue.name).await;
            assert_eq!(jobs.len(), queue.jobs.len(), "{:#?}", self.log);
            for (job, known) in jobs.iter().zip(&queue.jobs) {
                known.is(job, &self.log);
            }
        }
    }
}

#[tokio::test]
async fn a_random_walk_agrees_with_the_model() {
    let seed = settings::seed();
    let server = start();
    let mut walk = Walk {
        jobq: client(&server),
        queues: Vec::new(),
        last_queue: 0,
        random: Random(seed),
        step: 0,
        log: Vec::new(),
    };
    for step in 1..=settings::number("SWITCHYARD_STEPS", STEPS) {
        walk.step().await;
        if step % 50 == 0 {
            walk.assert_matches_model().await;
        }
    }
    walk.assert_matches_model().await;
    assert_consistent(&server).await;
}

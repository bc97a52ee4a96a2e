//! Random calls, one after the other, on the server and on a small model of it. After each call both must agree.
//!
//! `SWITCHYARD_SEED` repeats a walk that has failed.

use std::collections::{BTreeMap, VecDeque};

use super::{assert_consistent, start};
use crate::support::lmstfy::{Job, Lmstfy};
use crate::support::random::Random;
use crate::support::{Server, settings};

/// `SWITCHYARD_STEPS` sets another number.
const STEPS: u64 = 150;
const QUEUES: [(&str, &str); 4] = [("one", "a"), ("one", "b"), ("other", "a"), ("other", "b")];

/// A job in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    id: String,
    tries: i64,
}

/// A queue in the model. The first job is the next one.
#[derive(Debug, Default)]
struct Queue {
    ready: VecDeque<Known>,
    dead: VecDeque<Known>,
    /// Running, or delayed for longer than the test takes.
    unavailable: VecDeque<Known>,
}

impl Queue {
    fn all(&self) -> impl Iterator<Item = &Known> {
        self.ready.iter().chain(&self.dead).chain(&self.unavailable)
    }

    fn remove(&mut self, id: &str) {
        for jobs in [&mut self.ready, &mut self.dead, &mut self.unavailable] {
            jobs.retain(|job| job.id != id);
        }
    }
}

/// The server, and the model of it.
struct Walk<'a> {
    server: &'a Server,
    queues: BTreeMap<(&'static str, &'static str), Queue>,
    random: Random,
    /// The calls so far, for error messages.
    log: Vec<String>,
}

impl Walk<'_> {
    /// A random number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.random.index(end)
    }

    fn client(&self, namespace: &str) -> Lmstfy {
        Lmstfy::new(self.server, namespace)
    }

    fn queue(&mut self, name: (&'static str, &'static str)) -> &mut Queue {
        self.queues.entry(name).or_default()
    }

    /// The ID of a random job of the queue, or an unknown one.
    fn some_id(&mut self, name: (&'static str, &'static str)) -> String {
        let pick = self.below(1000);
        let queue = self.queue(name);
        let count = queue.all().count();
        let job = queue.all().nth(pick % count.max(1));
        job.map_or_else(|| "nobody".to_owned(), |job| job.id.clone())
    }

    async fn step(&mut self) {
        let name = QUEUES[self.below(QUEUES.len())];
        match self.below(16) {
            0..4 => self.publish(name, None).await,
            4 => self.bulk(name).await,
            5..8 => self.consume(name.0).await,
            8..11 => self.consume_without_ack(name).await,
            11 => self.ack(name).await,
            12 => {
                let old = self.some_id(name);
                self.publish(name, Some(old)).await;
            }
            13 => self.respawn(name).await,
            14 => self.delete_dead(name).await,
            _ => self.destroy(name).await,
        }
        self.assert_matches_model().await;
    }

    /// Publishes a job, or republishes `old`, which deletes the old job first.
    async fn publish(&mut self, name: (&'static str, &'static str), old: Option<String>) {
        let (client, tries) = (self.client(name.0), 1 + self.below(3));
        let delay = [0, 0, 0, 3600][self.below(4)];
        let at = format!("{}?tries={tries}&delay={delay}", name.1);
        self.log.push(format!("publish {name:?} {at} {old:?}"));
        let id = match &old {
            Some(old) => client.republish(&at, old, "x").await,
            None => client.publish(&at, "x").await,
        };
        let queue = self.queue(name);
        if let Some(old) = old {
            queue.remove(&old);
        }
        let tries = i64::try_from(tries).expect("few");
        let jobs = if delay == 0 {
            &mut queue.ready
        } else {
            &mut queue.unavailable
        };
        jobs.push_back(Known { id, tries });
    }

    async fn bulk(&mut self, name: (&'static str, &'static str)) {
        let count = 1 + self.below(6);
        self.log.push(format!("bulk {name:?} {count}"));
        let body = format!("[{}]", vec!["1"; count].join(","));
        let ids = self.client(name.0).bulk(name.1, body).await;
        let jobs = ids.into_iter().map(|id| Known { id, tries: 1 });
        self.queue(name).ready.extend(jobs);
    }

    /// Consumes and acknowledges jobs of one queue or of both.
    async fn consume(&mut self, namespace: &'static str) {
        let (names, count) = (["a", "b", "a,b", "b,a"][self.below(4)], 1 + self.below(4));
        self.log
            .push(format!("consume {namespace} {names} {count}"));
        let client = self.client(namespace);
        let at = format!("{names}?ttr=3600&count={count}");
        let got: Vec<Job> = match count {
            1 => client.consume(&at).await.into_iter().collect(),
            _ => client.consume_many(&at).await,
        };
        let mut expected = Vec::new();
        for name in ["a", "b", "a"]
            .into_iter()
            .skip_while(|name| !names.starts_with(name))
        {
            let queue = self.queue((namespace, name));
            while names.contains(name) && expected.len() < count {
                let Some(mut job) = queue.ready.pop_front() else {
                    break;
                };
                job.tries -= 1;
                queue.unavailable.push_back(job.clone());
                expected.push(job);
            }
        }
        let got = got.into_iter().map(|job| Known {
            id: job.id,
            tries: job.remain_tries,
        });
        assert_eq!(got.collect::<Vec<_>>(), expected, "{:#?}", self.log);
    }

    /// Consumes a job without acknowledging it.
    async fn consume_without_ack(&mut self, name: (&'static str, &'static str)) {
        self.log.push(format!("consume_without_ack {name:?}"));
        let client = self.client(name.0);
        let got = client.consume(&format!("{}?ttr=0", name.1)).await;
        let log = format!("{:#?}", self.log);
        let queue = self.queue(name);
        let expected = queue.ready.pop_front();
        assert_eq!(
            got.map(|job| job.id),
            expected.as_ref().map(|job| job.id.clone()),
            "{log}"
        );
        let Some(mut job) = expected else { return };
        job.tries -= 1;
        if job.tries > 0 {
            queue.ready.push_back(job);
        } else {
            queue.dead.push_back(job);
        }
        let (ready, dead) = (queue.ready.len() as u64, queue.dead.len() as u64);
        client.wait_until_ready(name.1, ready).await;
        client.wait_until_dead(name.1, dead).await;
    }

    /// Acknowledges through the right queue, or another one.
    async fn ack(&mut self, name: (&'static str, &'static str)) {
        let (id, through) = (self.some_id(name), QUEUES[self.below(QUEUES.len())]);
        self.log
            .push(format!("ack {id} of {name:?} through {through:?}"));
        self.client(through.0).ack(through.1, &id).await;
        self.queue(through).remove(&id);
    }

    async fn respawn(&mut self, name: (&'static str, &'static str)) {
        let limit = 1 + self.below(4);
        self.log.push(format!("respawn {name:?} {limit}"));
        let at = format!("{}?limit={limit}", name.1);
        let count = self.client(name.0).respawn(&at).await;
        let queue = self.queue(name);
        let mut back = 0;
        while back < limit as u64 {
            let Some(job) = queue.dead.pop_front() else {
                break;
            };
            queue.ready.push_back(Known { tries: 1, ..job });
            back += 1;
        }
        assert_eq!(count, back, "{:#?}", self.log);
    }

    async fn delete_dead(&mut self, name: (&'static str, &'static str)) {
        let limit = 1 + self.below(3);
        self.log.push(format!("delete dead {name:?} {limit}"));
        let at = format!("{}?limit={limit}", name.1);
        self.client(name.0).delete_dead(&at).await;
        let dead = &mut self.queue(name).dead;
        dead.drain(..limit.min(dead.len()));
    }

    async fn destroy(&mut self, name: (&'static str, &'static str)) {
        self.log.push(format!("destroy {name:?}"));
        self.client(name.0).destroy(name.1).await;
        self.queue(name).ready.clear();
    }

    async fn assert_matches_model(&mut self) {
        for name in QUEUES {
            let (client, log) = (self.client(name.0), format!("{name:?} {:#?}", self.log));
            let queue = self.queue(name);
            assert_eq!(client.size(name.1).await, queue.ready.len() as u64, "{log}");
            let next = client.peek(name.1).await;
            let next = next.map(|job| Known {
                id: job.id,
                tries: job.remain_tries,
            });
            assert_eq!(next.as_ref(), queue.ready.front(), "{log}");
            let head = queue
                .dead
                .front()
                .map_or(String::new(), |job| job.id.clone());
            let dead = client.dead(name.1).await;
            assert_eq!(dead, (queue.dead.len() as u64, head), "{log}");
        }
    }

    /// Checks that the server has exactly the jobs of the model.
    async fn assert_same_jobs(mut self) {
        for name in QUEUES {
            let (client, log) = (self.client(name.0), format!("{:#?}", self.log));
            let queue = self.queue(name);
            for job in queue.all() {
                let stays = client.existing_job(name.1, &job.id).await;
                assert_eq!(stays.remain_tries, job.tries, "{job:?} {log}");
            }
            let ids = |jobs: &VecDeque<Known>| -> Vec<String> {
                jobs.iter().map(|job| job.id.clone()).collect()
            };
            assert_eq!(client.drain(name.1).await, ids(&queue.ready), "{log}");
            for _ in &queue.dead {
                assert_eq!(client.respawn(name.1).await, 1);
            }
            assert_eq!(client.drain(name.1).await, ids(&queue.dead), "{log}");
        }
    }
}

#[tokio::test]
async fn a_random_walk_agrees_with_the_model() {
    let seed = settings::seed();
    let server = start();
    let mut walk = Walk {
        server: &server,
        queues: BTreeMap::new(),
        random: Random(seed),
        log: Vec::new(),
    };
    for _ in 0..settings::number("SWITCHYARD_STEPS", STEPS) {
        walk.step().await;
    }
    walk.assert_same_jobs().await;
    assert_consistent(&server).await;
}

//! Responses of Jobq.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::support::api_client::reply;

/// A queue as the API returns it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    pub id: i64,
    pub name: String,
}

/// A job as the API returns it. Its JSON is in canonical form (see [`canonical`]).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub id: i64,
    #[serde(deserialize_with = "text")]
    pub payload: String,
    pub events: Vec<Event>,
    #[serde(deserialize_with = "text")]
    pub state: String,
    pub modified: i64,
}

/// An entry of the log of a job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "(String, Box<RawValue>)")]
pub struct Event {
    pub what: What,
    /// Seconds since 1970.
    pub time: i64,
}

/// What happened to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Created,
    /// The old and the new state.
    Advanced(String, String),
    User(String),
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(canonical(Box::<RawValue>::deserialize(deserializer)?.get()))
}

/// JSON in a canonical form: without whitespace, with sorted keys and uniform escapes. Numbers are kept as written.
#[track_caller]
pub fn canonical(text: &str) -> String {
    fn read<'a, T: Deserialize<'a>>(text: &'a str) -> T {
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
    let text = text.trim();
    match text.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = read(text);
            let members = members
                .iter()
                .map(|(key, value)| format!("{}:{}", json!(key), canonical(value.get())));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = read(text);
            let items = items.iter().map(|item| canonical(item.get()));
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        Some(b'"') => json!(read::<String>(text)).to_string(),
        _ => text.to_owned(),
    }
}

impl TryFrom<(String, Box<RawValue>)> for Event {
    type Error = String;

    fn try_from((tag, data): (String, Box<RawValue>)) -> Result<Event, String> {
        let error = |error: serde_json::Error| format!("{error}: {tag} {data}");
        let mut data: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(data.get()).map_err(error)?;
        let mut take = |key: &str| {
            let value = data.remove(key);
            value.ok_or_else(|| format!("no {key} in {tag}"))
        };
        // The timestamp is a string of seconds.
        let time: String = serde_json::from_str(take("timestamp")?.get())
            .map_err(|error| format!("the timestamp of {tag}: {error}"))?;
        let time = time.parse().map_err(|error| format!("{time:?}: {error}"))?;
        let what = match &*tag {
            "job_created" => What::Created,
            "job_state_advanced" => {
                let (old, new) = (take("old")?, take("new")?);
                What::Advanced(canonical(old.get()), canonical(new.get()))
            }
            "user_event" => What::User(canonical(take("event")?.get())),
            tag => return Err(format!("an unknown event: {tag}")),
        };
        if data.is_empty() {
            Ok(Event { what, time })
        } else {
            Err(format!("more than expected in {tag}: {data:?}"))
        }
    }
}

impl Job {
    /// The events of the log, without times.
    pub fn log(&self) -> Vec<What> {
        self.events.iter().map(|event| event.what.clone()).collect()
    }

    /// Checks what is true of every job at any time.
    #[track_caller]
    fn check(&self, asked: &str) {
        assert!(self.id >= 1, "{asked}: {self:?}");
        let log = &self.events;
        let first = log.first().unwrap_or_else(|| panic!("{asked}: {self:?}"));
        assert_eq!(first.what, What::Created, "{asked}: {self:?}");
        let created = log.iter().filter(|event| event.what == What::Created);
        assert_eq!(created.count(), 1, "{asked}: {self:?}");
        let in_order = log.windows(2).all(|pair| pair[0].time <= pair[1].time);
        assert!(in_order, "{asked}: {self:?}");
        let last = log.last().expect("at least one event");
        assert_eq!(last.time, self.modified, "{asked}: {self:?}");
        let mut state = None;
        for event in log {
            if let What::Advanced(old, new) = &event.what {
                assert!(state.is_none_or(|state| state == old), "{asked}: {self:?}");
                state = Some(new);
            }
        }
        assert!(
            state.is_none_or(|state| *state == self.state),
            "{asked}: {self:?}"
        );
    }
}

/// The place of an error in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct At {
    #[serde(default)]
    pub term: Option<usize>,
    #[serde(default)]
    pub place: Option<usize>,
    #[serde(default)]
    pub column: Option<usize>,
}

reply!();

impl Reply {
    /// Checks what all responses have in common.
    pub fn checked(self) -> Reply {
        assert_eq!(self.header("x-request-id").len(), 32, "{self:?}");
        assert_ne!(self.status, 500, "{self:?}");
        assert_eq!(self.header("content-type"), "application/json", "{self:?}");
        if self.status >= 400 && !self.asked.starts_with("HEAD ") {
            assert!(!self.error().trim().is_empty(), "{self:?}");
        }
        self
    }

    #[track_caller]
    fn read<T: for<'a> Deserialize<'a>>(&self) -> T {
        let read = serde_json::from_str(&self.text);
        read.unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body of a success.
    #[track_caller]
    pub fn ok<T: for<'a> Deserialize<'a>>(&self) -> T {
        assert_eq!(self.status, 200, "{self:?}");
        self.read()
    }

    /// Checks that the request succeeded with an empty object.
    #[track_caller]
    pub fn done(&self) {
        assert_eq!(self.ok::<Value>(), json!({}), "{self:?}");
    }

    /// The job of a success.
    #[track_caller]
    pub fn job(&self) -> Job {
        let job: Job = self.ok();
        job.check(&self.asked);
        job
    }

    /// The job; `None` if it was not found.
    #[track_caller]
    pub fn maybe_job(&self) -> Option<Job> {
        (self.status != 404).then(|| self.job())
    }

    /// The jobs of a success, and the start of the next page.
    #[track_caller]
    pub fn page(&self) -> (Vec<Job>, Option<i64>) {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Page {
            jobs: Vec<Job>,
            // Can be missing, but not null.
            #[serde(default, deserialize_with = "some")]
            next: Option<i64>,
        }
        fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
            i64::deserialize(deserializer).map(Some)
        }
        let page: Page = self.ok();
        for job in &page.jobs {
            job.check(&self.asked);
        }
        (page.jobs, page.next)
    }

    /// The jobs of a success, which must have no next page.
    #[track_caller]
    pub fn jobs(&self) -> Vec<Job> {
        let (jobs, next) = self.page();
        assert_eq!(next, None, "{self:?}");
        jobs
    }

    /// The message of an error.
    #[track_caller]
    pub fn error(&self) -> String {
        let members: BTreeMap<String, &RawValue> = match serde_json::from_str(&self.text) {
            Ok(members) => members,
            Err(error) => panic!("{error}: {self:?}"),
        };
        let error = members.get("error").map(|error| error.get());
        serde_json::from_str(error.unwrap_or_default())
            .unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that the request failed with this status, and an error that contains these words.
    #[track_caller]
    pub fn assert_rejected(&self, status: u16, words: &[&str]) {
        assert_eq!(self.status, status, "{self:?}");
        let error = self.error();
        for word in words {
            assert!(error.contains(word), "{word:?} is not in {self:?}");
        }
    }

    /// Checks that the query was rejected. Returns the place of its error.
    #[track_caller]
    pub fn bad_query(&self) -> At {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Bad {
            at: At,
            #[serde(rename = "error")]
            _error: String,
        }
        self.assert_rejected(400, &[]);
        let bad: Bad = self.read();
        assert!(bad.at.place.is_none_or(|place| place <= 2), "{self:?}");
        assert!(bad.at.column.is_none_or(|column| column >= 1), "{self:?}");
        bad.at
    }

    /// Checks that the request failed with a conflict. Returns the current job.
    #[track_caller]
    pub fn conflict(&self) -> Job {
        self.assert_rejected(409, &[]);
        let mut members: BTreeMap<String, Box<RawValue>> = self.read();
        members.remove("error");
        let job = serde_json::to_string(&members).expect("it was JSON");
        let job: Job =
            serde_json::from_str(&job).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        job.check(&self.asked);
        job
    }
}

//! Putting a job by hand, anew or like another one.

use super::super::desk::sentence;
use super::super::views::{NewJob, NewJobView, NotPut};
use super::deeds::{check_name, number, only};
use super::queue_names;
use super::recurring::{count, seconds};
use crate::engine::{Engine, JobKey, Put, QueueKey, Result};
use crate::query::minified;

/// Who has put a job by hand.
const BY_HAND: &str = "dashboard";

/// Jobs to wait for, and tags, that a form takes.
const NAMES_MAX: usize = 100;

/// What stands in the form at first: like the job with this id, if it is there.
pub async fn new_job(engine: &Engine, queue: String, like: &str) -> Result<NewJobView> {
    let found = match like {
        "" => None,
        id => engine.job(&JobKey::qless(id)).await?,
    };
    let form = match found {
        Some(job) => NewJob {
            queue: engine.known_queues().name(job.queue),
            id: String::new(),
            klass: job.klass.unwrap_or_default(),
            data: job.body.into(),
            priority: job.priority.to_string(),
            retries: job.retries.to_string(),
            delay: String::new(),
            tags: job.tags.join(", "),
            depends: String::new(),
        },
        None => NewJob {
            queue,
            data: "{}".to_owned(),
            ..NewJob::default()
        },
    };
    Ok(NewJobView {
        form,
        queues: queue_names(engine),
    })
}

/// Puts the job that somebody has typed. Returns its id. One that is there already is left as it is, for a put would
/// take it from its worker.
pub async fn put(engine: &Engine, typed: NewJob) -> Result<String, NotPut> {
    let put = async {
        let job = read(&typed)?;
        if let Some(id) = &job.id {
            let there = engine.job(&JobKey::qless(id)).await;
            if there.map_err(|error| error.to_string())?.is_some() {
                return Err(format!("job “{id}” already exists"));
            }
        }
        let queue = QueueKey::qless(&typed.queue);
        only(engine.put(queue, vec![job], BY_HAND.to_owned(), None).await)
    };
    put.await.map_err(|why: String| NotPut {
        why: sentence(&why),
        typed,
    })
}

fn read(typed: &NewJob) -> Result<Put, String> {
    check_name("the queue name", &typed.queue)?;
    let id = given(&typed.id);
    id.map_or(Ok(()), |id| check_name("the job ID", id))?;
    let body = minified(given(&typed.data).unwrap_or("{}"))
        .map_err(|why| format!("the data is not valid JSON: {why}"))?;
    let delay = given(&typed.delay).map(|typed| seconds("the delay", typed, "1"));
    let priority = given(&typed.priority).map(|typed| number("the priority", typed));
    let retries = given(&typed.retries).map(|typed| count("the number of retries", typed));
    Ok(Put {
        id: id.map(str::to_owned),
        body,
        klass: given(&typed.klass).map(str::to_owned),
        delay: delay.transpose()?,
        priority: priority.transpose()?,
        retries: retries.transpose()?,
        tags: Some(names("each tag", typed.tags.split([',', '\n']))?),
        depends: Some(names("the job ID", typed.depends.split_whitespace())?),
    })
}

/// What somebody has typed into a field that may be left empty.
fn given(typed: &str) -> Option<&str> {
    Some(typed.trim()).filter(|typed| !typed.is_empty())
}

/// Names that somebody has typed, each once.
fn names<'a>(what: &str, typed: impl Iterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    for name in typed.map(str::trim).filter(|name| !name.is_empty()) {
        check_name(what, name)?;
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    if names.len() > NAMES_MAX {
        return Err(format!("a field can have at most {NAMES_MAX} names"));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(change: impl FnOnce(&mut NewJob)) -> Result<Put, String> {
        let mut form = NewJob {
            queue: "mail".to_owned(),
            ..NewJob::default()
        };
        change(&mut form);
        read(&form)
    }

    #[test]
    fn what_is_left_empty_has_its_default() {
        let put = typed(|_| ()).unwrap();
        assert_eq!(put.body, "{}");
        assert_eq!((put.id, put.klass, put.delay), (None, None, None));
        assert_eq!((put.priority, put.retries), (None, None));
        assert_eq!((put.tags, put.depends), (Some(vec![]), Some(vec![])));
    }

    #[test]
    fn what_is_typed_is_read() {
        let put = typed(|form| {
            form.data = "{\n  \"big\": 12345678901234567890, \"one\": 1.0 }".to_owned();
            form.delay = " 1.5 ".to_owned();
            form.priority = "-3".to_owned();
            form.retries = "7".to_owned();
            form.tags = "vip, eu ,\nvip, a b".to_owned();
            form.depends = "one two\n three".to_owned();
        });
        let put = put.unwrap();
        assert_eq!(put.body, r#"{"big":12345678901234567890,"one":1.0}"#);
        assert_eq!(
            (put.delay, put.priority, put.retries),
            (Some(1.5), Some(-3.0), Some(7))
        );
        assert_eq!(put.tags.unwrap(), ["vip", "eu", "a b"]);
        assert_eq!(put.depends.unwrap(), ["one", "two", "three"]);
    }

    #[test]
    fn a_slip_of_the_hand_is_answered_in_words() {
        let slips: [fn(&mut NewJob); 8] = [
            |form| form.queue.clear(),
            |form| form.data = "{".to_owned(),
            |form| form.delay = "soon".to_owned(),
            |form| form.delay = "-1".to_owned(),
            |form| form.priority = "high".to_owned(),
            |form| form.retries = "1.5".to_owned(),
            |form| form.id = "a\u{7}".to_owned(),
            |form| form.tags = (0..=NAMES_MAX).map(|n| format!("t{n},")).collect(),
        ];
        for slip in slips {
            assert!(typed(slip).is_err_and(|why| !why.is_empty()));
        }
    }
}

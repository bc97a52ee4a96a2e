//! Adds a qless job. The form's own page shows errors, so that a long payload is not lost (`http/page_forms.rs`).

use super::input::{check_class, check_name, count, number, only, optional, seconds};
use super::{Action, Target};
use crate::auth::Role;
use crate::engine::{Engine, JobKey, Put, QueueKey};
use crate::query::minified;
use crate::ui::context::sentence;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::pages::put::model::{NewJob, RejectedJob};

/// `POST /ui/put`
pub static PUT: Action = Action::new("put", "/ui/put", Role::Operator, |form| {
    let queue = QueueRef::qless(form.field("queue"));
    match form.field("id").trim() {
        "" => Target::queue(&queue),
        id => Target::job(&queue, id),
    }
});

/// The name of the client in the history of the job.
const CLIENT: &str = "dashboard";

/// Maximum number of names in a field.
const NAMES_MAX: usize = 100;

/// Adds the job of a form and returns its ID. Rejects the ID of an existing job, because a put would take that job from
/// its worker.
pub async fn put(engine: &Engine, form: NewJob) -> Result<String, RejectedJob> {
    let put = async {
        let job = read(&form)?;
        if let Some(id) = &job.id {
            let existing = engine.body_bytes(&JobKey::qless(id)).await;
            if existing.map_err(|error| error.to_string())?.is_some() {
                return Err(format!("job “{id}” already exists"));
            }
        }
        let queue = QueueKey::qless(&form.queue);
        only(engine.put(queue, vec![job], CLIENT.to_owned(), None).await)
    };
    put.await.map_err(|why: String| RejectedJob {
        why: sentence(&why),
        typed: form,
    })
}

fn read(form: &NewJob) -> Result<Put, String> {
    check_name("the queue name", &form.queue)?;
    check_class(optional(&form.klass))?;
    let id = optional(&form.id);
    id.map_or(Ok(()), |id| check_name("the job ID", id))?;
    let body = minified(optional(&form.data).unwrap_or("{}"))
        .map_err(|why| format!("the payload is not valid JSON: {why}"))?;
    let delay = optional(&form.delay).map(|text| seconds("the delay", text, "1"));
    let priority = optional(&form.priority).map(|text| number("the priority", text));
    let retries = optional(&form.retries).map(|text| count("the number of retries", text));
    Ok(Put {
        id: id.map(str::to_owned),
        body,
        klass: optional(&form.klass).map(str::to_owned),
        delay: delay.transpose()?,
        priority: priority.transpose()?,
        retries: retries.transpose()?,
        tags: Some(names("each tag", form.tags.split([',', '\n']))?),
        depends: Some(names("the job ID", form.depends.split_whitespace())?),
    })
}

/// Distinct names from a field.
pub fn names<'a>(field: &str, texts: impl Iterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    let texts = texts.map(str::trim).filter(|name| !name.is_empty());
    for (count, name) in texts.enumerate() {
        // A form can have a million names, and each is compared with all before it.
        if count >= NAMES_MAX {
            return Err(format!("a field can have at most {NAMES_MAX} names"));
        }
        check_name(field, name)?;
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_with(change: impl FnOnce(&mut NewJob)) -> Result<Put, String> {
        let mut form = NewJob {
            queue: "mail".to_owned(),
            ..NewJob::default()
        };
        change(&mut form);
        read(&form)
    }

    #[test]
    fn empty_fields_have_defaults() {
        let put = read_with(|_| ()).unwrap();
        assert_eq!(put.body, "{}");
        assert_eq!((put.id, put.klass, put.delay), (None, None, None));
        assert_eq!((put.priority, put.retries), (None, None));
        assert_eq!((put.tags, put.depends), (Some(vec![]), Some(vec![])));
    }

    #[test]
    fn fields_are_trimmed_and_parsed() {
        let put = read_with(|form| {
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
    fn invalid_fields_are_errors() {
        let invalid: [fn(&mut NewJob); 8] = [
            |form| form.queue.clear(),
            |form| form.data = "{".to_owned(),
            |form| form.delay = "soon".to_owned(),
            |form| form.delay = "-1".to_owned(),
            |form| form.priority = "high".to_owned(),
            |form| form.retries = "1.5".to_owned(),
            |form| form.id = "a\u{7}".to_owned(),
            |form| form.tags = (0..=NAMES_MAX).map(|n| format!("t{n},")).collect(),
        ];
        for change in invalid {
            assert!(read_with(change).is_err_and(|why| !why.is_empty()));
        }
    }

    #[test]
    fn a_form_with_too_many_names_is_not_read_to_its_end() {
        for distinct in [100_000, 3] {
            let texts: Vec<String> = (0..100_000).map(|n| (n % distinct).to_string()).collect();
            let mut read = 0;
            let texts = texts.iter().map(String::as_str).inspect(|_| read += 1);
            assert!(names("each tag", texts).is_err());
            assert_eq!(read, NAMES_MAX + 1);
        }
    }
}

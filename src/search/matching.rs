//! Checks whether a job matches a search.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::json::{self, Number};
use super::{Condition, Fingerprint, MESSAGE_CHARS_MAX, Pattern, Search};
use crate::budget::{Budget, BudgetExceeded};

/// The properties of a job that a search checks. Times are in microseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub struct JobFacts<'a> {
    pub id: &'a str,
    /// A name from [`super::STATES`].
    pub state: &'a str,
    /// A name from [`super::PROTOCOLS`].
    pub api: &'a str,
    pub namespace: &'a str,
    pub queue: &'a str,
    pub class: Option<&'a str>,
    pub tags: &'a [String],
    /// The worker that runs the job.
    pub worker: Option<&'a str>,
    pub is_tracked: bool,
    /// Group and message of the last failure.
    pub failure: Option<(&'a str, &'a str)>,
    /// `None` for Jobq jobs. 0 for lmstfy and Relay jobs, which have no priorities.
    pub priority: Option<f64>,
    pub retries_left: Option<i64>,
    pub created: i64,
    /// When the job entered its state; for a Jobq job, the time of its last change.
    pub updated: i64,
    pub body: Body<'a>,
}

/// A payload. Only JSON can match a path, also if it is encoded in base64.
#[derive(Debug, Clone, Copy)]
pub enum Body<'a> {
    Json(&'a str),
    Base64(&'a str),
}

impl<'a> Body<'a> {
    fn text(self, budget: &mut Budget) -> Result<Cow<'a, str>, BudgetExceeded> {
        Ok(match self {
            Body::Json(text) => Cow::Borrowed(text),
            Body::Base64(text) => {
                budget.spend(text.len())?;
                let bytes = BASE64.decode(text).unwrap_or_default();
                Cow::Owned(String::from_utf8(bytes).unwrap_or_default())
            }
        })
    }
}

impl Search {
    /// Whether the job matches at `now`.
    ///
    /// # Errors
    /// [`BudgetExceeded`], if the check exceeds the budget.
    pub fn matches(
        &self,
        job: &JobFacts<'_>,
        now: i64,
        budget: &mut Budget,
    ) -> Result<bool, BudgetExceeded> {
        // Payloads last, because they take longest.
        match self.matches_without_payload(job, now, budget)? {
            Some(matches) => Ok(matches),
            None => self.matches_with_payload(job, now, budget),
        }
    }

    /// Whether the job matches; `None` if that depends on its payload, which is not read.
    ///
    /// # Errors
    /// [`BudgetExceeded`].
    pub fn matches_without_payload(
        &self,
        job: &JobFacts<'_>,
        now: i64,
        budget: &mut Budget,
    ) -> Result<Option<bool>, BudgetExceeded> {
        self.evaluate(&mut Evaluation::new(job, now, None), budget)
    }

    /// Whether the job with this payload matches. Reads the payload once.
    ///
    /// # Errors
    /// [`BudgetExceeded`].
    pub fn matches_with_payload(
        &self,
        job: &JobFacts<'_>,
        now: i64,
        budget: &mut Budget,
    ) -> Result<bool, BudgetExceeded> {
        let results = self.payload_results(job.body, budget)?;
        self.matches_with_results(job, now, &results, budget)
    }

    /// Which of the conditions on the payload hold. Reads the payload once.
    ///
    /// # Errors
    /// [`BudgetExceeded`].
    pub fn payload_results(
        &self,
        body: Body<'_>,
        budget: &mut Budget,
    ) -> Result<Vec<bool>, BudgetExceeded> {
        let mut conditions = Vec::new();
        self.add_payload_conditions(&mut conditions);
        payload_results(&body.text(budget)?, &conditions, budget)
    }

    /// Whether the job with these results of [`Search::payload_results`] matches.
    ///
    /// # Errors
    /// [`BudgetExceeded`].
    pub fn matches_with_results(
        &self,
        job: &JobFacts<'_>,
        now: i64,
        results: &[bool],
        budget: &mut Budget,
    ) -> Result<bool, BudgetExceeded> {
        let mut evaluation = Evaluation::new(job, now, Some(results));
        Ok(self.evaluate(&mut evaluation, budget)? == Some(true))
    }

    /// Adds the conditions on the payload, in the order in which they are evaluated.
    fn add_payload_conditions<'s>(&'s self, conditions: &mut Vec<&'s Condition>) {
        for term in &self.terms {
            match &term.condition {
                Condition::Any(all) => {
                    (all.iter()).for_each(|search| search.add_payload_conditions(conditions));
                }
                condition if condition.payload_conditions() > 0 => conditions.push(condition),
                _ => {}
            }
        }
    }

    /// Whether all terms hold; `None` if that depends on the payload.
    fn evaluate(
        &self,
        job: &mut Evaluation<'_>,
        budget: &mut Budget,
    ) -> Result<Option<bool>, BudgetExceeded> {
        let mut all = Some(true);
        for term in &self.terms {
            if all == Some(false) {
                job.skip(term.condition.payload_conditions());
                continue;
            }
            budget.spend(1)?;
            let holds = term.condition.holds(job, budget)?;
            match holds.map(|holds| holds != term.is_negated) {
                Some(true) => {}
                other => all = other,
            }
        }
        Ok(all)
    }
}

/// Which of the conditions on a payload hold.
fn payload_results(
    body: &str,
    conditions: &[&Condition],
    budget: &mut Budget,
) -> Result<Vec<bool>, BudgetExceeded> {
    let paths = conditions.iter().filter_map(|condition| match condition {
        Condition::Data(path, condition) => Some((path.as_slice(), condition)),
        _ => None,
    });
    let paths: Vec<json::PathCondition<'_>> = paths.collect();
    let of_paths = match paths.is_empty() {
        true => Vec::new(),
        false => json::matching_paths(body, &paths, budget)?,
    };
    let mut of_paths = of_paths.into_iter();
    let (mut results, mut lower) = (Vec::with_capacity(conditions.len()), None);
    for condition in conditions {
        results.push(match condition {
            Condition::Payload(pattern) => {
                if lower.is_none() {
                    budget.spend(body.len())?;
                }
                let lower = lower.get_or_insert_with(|| body.to_ascii_lowercase());
                pattern.matches_part(lower, budget)?
            }
            _ => of_paths.next().unwrap_or_default(),
        });
    }
    Ok(results)
}

/// A job whose match is evaluated.
struct Evaluation<'a> {
    job: &'a JobFacts<'a>,
    message: Message<'a>,
    now: i64,
    /// Which conditions on the payload hold; `None` if it has not been read.
    payload: Option<&'a [bool]>,
    /// The next of them.
    next: usize,
}

impl<'a> Evaluation<'a> {
    fn new(job: &'a JobFacts<'a>, now: i64, payload: Option<&'a [bool]>) -> Evaluation<'a> {
        Evaluation {
            job,
            message: Message {
                text: job.failure.map_or("", |(_, message)| message),
                ..Message::default()
            },
            now,
            payload,
            next: 0,
        }
    }

    /// Skips conditions on the payload that do not matter.
    fn skip(&mut self, conditions: usize) {
        self.next += conditions;
    }

    /// Whether the next condition on the payload holds.
    fn next_of_payload(&mut self) -> Option<bool> {
        let holds = self.payload?.get(self.next).copied();
        self.next += 1;
        holds
    }
}

/// The message of the last failure, with cached derived texts.
#[derive(Default)]
struct Message<'a> {
    text: &'a str,
    lower: Option<String>,
    hash: Option<String>,
}

impl Message<'_> {
    fn lower(&mut self, budget: &mut Budget) -> Result<&str, BudgetExceeded> {
        if self.lower.is_none() {
            budget.spend(self.text.len())?;
        }
        let lower = || self.text.to_ascii_lowercase();
        Ok(self.lower.get_or_insert_with(lower))
    }

    fn hash(&mut self, budget: &mut Budget) -> Result<&str, BudgetExceeded> {
        if self.hash.is_none() {
            budget.spend(self.text.len().min(4 * MESSAGE_CHARS_MAX))?;
        }
        let hash = || Fingerprint::of(self.text).hash;
        Ok(self.hash.get_or_insert_with(hash))
    }
}

impl Condition {
    /// Whether the condition holds; `None` if that depends on the payload.
    fn holds(
        &self,
        evaluation: &mut Evaluation<'_>,
        budget: &mut Budget,
    ) -> Result<Option<bool>, BudgetExceeded> {
        match self {
            Condition::Payload(_) | Condition::Data(..) => Ok(evaluation.next_of_payload()),
            Condition::Any(all) => {
                let mut any = Some(false);
                for search in all {
                    if any == Some(true) {
                        evaluation.skip(search.payload_conditions());
                        continue;
                    }
                    match search.evaluate(evaluation, budget)? {
                        Some(false) => {}
                        other => any = other,
                    }
                }
                Ok(any)
            }
            _ => self.holds_for(evaluation, budget).map(Some),
        }
    }

    /// Whether a condition holds that does not depend on the payload.
    fn holds_for(
        &self,
        evaluation: &mut Evaluation<'_>,
        budget: &mut Budget,
    ) -> Result<bool, BudgetExceeded> {
        let Evaluation {
            job, message, now, ..
        } = evaluation;
        let now = *now;
        let real = |number: Option<f64>| number.map(Number::Real);
        let whole = |number: Option<i64>| number.map(|number| Number::Whole(number.into()));
        Ok(match self {
            Condition::Word { pattern, .. } => {
                let class = job.class.unwrap_or_default();
                budget.spend(job.id.len() + class.len())?;
                pattern.matches_prefix(&job.id.to_ascii_lowercase(), budget)?
                    || job.class.is_some()
                        && pattern.matches_part(&class.to_ascii_lowercase(), budget)?
            }
            Condition::State(states) => states.contains(&job.state),
            Condition::Api(apis) => apis.contains(&job.api),
            Condition::Namespace(pattern) => pattern.matches(job.namespace, budget)?,
            Condition::Queue(pattern) => pattern.matches(job.queue, budget)?,
            Condition::Class(pattern) => matches_some(pattern, job.class, budget)?,
            Condition::Tag(pattern) => {
                for tag in job.tags {
                    if pattern.matches(tag, budget)? {
                        return Ok(true);
                    }
                }
                false
            }
            Condition::Worker(pattern) => matches_some(pattern, job.worker, budget)?,
            Condition::Tracked(values) => {
                values.contains(&if job.is_tracked { "yes" } else { "no" })
            }
            Condition::FailureGroup(pattern) => {
                matches_some(pattern, job.failure.map(|(group, _)| group), budget)?
            }
            Condition::FailureMessage(pattern) => {
                job.failure.is_some() && pattern.matches_part(message.lower(budget)?, budget)?
            }
            Condition::Fingerprint(hash) => job.failure.is_some() && message.hash(budget)? == hash,
            Condition::Payload(_) | Condition::Any(_) | Condition::Data(..) => false,
            Condition::Priority(compare, than) => {
                real(job.priority).is_some_and(|number| number.satisfies(*compare, than))
            }
            Condition::RetriesLeft(compare, than) => {
                whole(job.retries_left).is_some_and(|number| number.satisfies(*compare, than))
            }
            Condition::Created(time) => time.holds(job.created, now),
            Condition::Updated(time) => time.holds(job.updated, now),
        })
    }
}

/// Whether there is a text, and the pattern matches it.
fn matches_some(
    pattern: &Pattern,
    text: Option<&str>,
    budget: &mut Budget,
) -> Result<bool, BudgetExceeded> {
    text.map_or(Ok(false), |text| pattern.matches(text, budget))
}

//! Tags: which jobs have one, and which are used most. A job's own list has them in the order of
//! tagging; the table `tags` has them by tag, and follows from it (`engine/work/save.rs`).

use std::collections::HashSet;

use crate::engine::Engine;
use crate::engine::error::{Error, Result};
use crate::engine::model::job::{Job, JobKey};
use crate::engine::queries::queues::Page;
use crate::engine::unit_of_work::Work;
use crate::store::{Row, Statement};

/// How many tags a job may have.
const TAGS_MAX: usize = 10_000;

/// Gives a job tags, after those it has. Returns all of them.
///
/// # Errors
/// [`Error::NoSuchJob`], [`Error::TooMany`].
pub fn tag(work: &mut Work, key: &JobKey, tags: &[String]) -> Result<Vec<String>> {
    let all = added(&find(work, key)?.tags, tags)?;
    Ok(set(work, key, all))
}

/// Takes tags off a job; those it does not have are passed over. Returns the others.
///
/// # Errors
/// [`Error::NoSuchJob`].
pub fn untag(work: &mut Work, key: &JobKey, tags: &[String]) -> Result<Vec<String>> {
    let mut left = find(work, key)?.tags.clone();
    remove(&mut left, tags);
    Ok(set(work, key, left))
}

/// Adds to a list of tags those it does not have yet.
pub fn add(list: &mut Vec<String>, tags: &[String]) {
    let mut known: HashSet<String> = list.iter().cloned().collect();
    let new = tags.iter().filter(|tag| known.insert((*tag).clone()));
    list.extend(new.cloned());
}

/// A job's tags with those added that it does not have yet.
///
/// # Errors
/// [`Error::TooMany`].
pub fn added(had: &[String], tags: &[String]) -> Result<Vec<String>> {
    let mut all = had.to_vec();
    add(&mut all, tags);
    if all.len() > TAGS_MAX {
        return Err(Error::TooMany {
            what: "tags on one job",
            max: TAGS_MAX,
        });
    }
    Ok(all)
}

/// Takes tags off a list.
pub fn remove(list: &mut Vec<String>, tags: &[String]) {
    let gone: HashSet<&String> = tags.iter().collect();
    list.retain(|tag| !gone.contains(tag));
}

fn find<'w>(work: &'w Work, key: &JobKey) -> Result<&'w Job> {
    work.job(key)
        .ok_or_else(|| Error::NoSuchJob { id: key.id.clone() })
}

fn set(work: &mut Work, key: &JobKey, tags: Vec<String>) -> Vec<String> {
    if let Some(job) = work.job_mut(key) {
        job.tags.clone_from(&tags);
    }
    tags
}

impl Engine {
    /// How many jobs have the tag, and the ids of some, by the time of tagging, then by id.
    pub async fn tagged(&self, tag: &str, page: Page) -> Result<(i64, Vec<String>)> {
        let (limit, offset) = (page.limit as i64, page.offset as i64);
        let batch = vec![
            Statement::new(COUNT, [tag.into()]),
            Statement::new(TAGGED, [tag.into(), limit.into(), offset.into()]),
        ];
        let mut answers = self.readers().read(batch).await?.into_iter();
        let total = match answers.next().unwrap_or_default().rows.first() {
            Some(row) => row.int(0)?,
            None => 0,
        };
        let rows = answers.next().unwrap_or_default().rows;
        let ids: Result<Vec<_>, _> = rows.iter().map(|row| row.text(0)).collect();
        Ok((total, ids?))
    }

    /// Tags that `least` jobs or more have, most used first, each with how many.
    pub async fn top_tags(&self, least: i64, page: Page) -> Result<Vec<(String, i64)>> {
        let (limit, offset) = (page.limit as i64, page.offset as i64);
        let statement = Statement::new(TOP, [least.into(), limit.into(), offset.into()]);
        let rows = self.readers().rows(statement).await?;
        let tag = |row: &Row| Ok((row.text(0)?, row.int(1)?));
        rows.iter().map(tag).collect()
    }
}

const COUNT: &str = "SELECT CAST(coalesce(sum(n), 0) AS BIGINT) FROM tag_counts WHERE tag = $1";

const TAGGED: &str = "
SELECT id FROM tags WHERE tag = $1 ORDER BY tagged_at, id LIMIT $2 + 0 OFFSET $3 + 0";

const TOP: &str = "
SELECT tag, CAST(sum(n) AS BIGINT) AS jobs FROM tag_counts GROUP BY tag HAVING sum(n) >= $1
ORDER BY jobs DESC, tag LIMIT $2 + 0 OFFSET $3 + 0";

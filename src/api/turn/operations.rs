//! Operations on many jobs: asked for, counted, made, shown.

use super::super::read::PAGE_JOBS;
use super::super::views::{
    ConfirmView, Deed, OperationRow, OperationView, OperationsView, Phase, Seen, SkipRow, Wish,
};
use super::deeds::{check_name, number};
use super::places::{place, queue_names};
use super::rows;
use crate::engine::{
    Action, Engine, NewOperation, Operation, OperationEstimate, Page, Result, Skip, Stage, Subject,
};

/// Above so many jobs their number must be typed.
const TYPED_ABOVE: i64 = 1_000;

/// Skipped jobs of which it is known why.
const SKIPS_KNOWN: i64 = 1_000;

/// What the page says before something is done, or why nothing can be.
pub async fn confirm(engine: &Engine, wish: &Wish) -> Result<Result<ConfirmView, String>> {
    // What must be typed for it is asked for on the page.
    let action = match deed(wish) {
        Ok(deed) => action(deed, wish).unwrap_or_else(|_| stand_in(deed)),
        Err(why) => return Ok(Err(why)),
    };
    let subject = match subject(wish) {
        Ok(subject) => subject,
        Err(why) => return Ok(Err(why)),
    };
    let counted = match engine.estimate_operation(&action, &subject).await? {
        Ok(counted) => counted,
        Err(why) => return Ok(Err(why.to_string())),
    };
    if counted.jobs == 0 && !counted.is_least {
        return Ok(Err(none(wish)));
    }
    Ok(Ok(ConfirmView {
        jobs: counted.jobs,
        is_least: counted.is_least,
        able: counted.able,
        samples: rows(engine, &counted.samples),
        can_be_undone: action.removes() && counted.can_be_kept(),
        must_type: must_type(&counted),
        queues: queue_names(engine),
    }))
}

fn must_type(counted: &OperationEstimate) -> bool {
    counted.jobs > TYPED_ABOVE || counted.is_least
}

/// Makes the operation. Its id, and what to say of it.
pub async fn operate(
    engine: &Engine,
    who: &str,
    wish: &Wish,
    seen: &Seen,
) -> Result<(i64, String), String> {
    let (deed, subject) = (deed(wish)?, subject(wish)?);
    let action = action(deed, wish)?;
    let say = |error: crate::engine::Error| error.to_string();
    let counted = engine
        .estimate_operation(&action, &subject)
        .await
        .map_err(say)?;
    let counted = counted.map_err(|why| why.to_string())?;
    if counted.jobs == 0 && !counted.is_least {
        return Err(none(wish));
    }
    let shown = seen.counted.parse().unwrap_or(0);
    if must_type(&counted) && digits(&seen.typed) != Some(shown) {
        return Err(
            "the number you typed does not match the number of jobs on the page; nothing was changed"
                .to_owned(),
        );
    }
    if must_type(&counted) && counted.jobs > i64::saturating_mul(shown, 2) {
        return Err(format!(
            "there are now {} jobs, more than twice the number shown; review and confirm again",
            counted.jobs
        ));
    }
    let removes = action.removes();
    let can_be_undone = removes && counted.can_be_kept();
    if seen.undo == "yes" && removes && !can_be_undone {
        return Err(
            "there are now too many jobs to undo this; review and confirm again".to_owned(),
        );
    }
    let asked = NewOperation {
        who: who.to_owned(),
        action,
        subject,
        counted,
    };
    let id = engine.start_operation(asked).await.map_err(say)?;
    let id = id.map_err(|why| why.to_string())?;
    let undo = if can_be_undone {
        " You can undo it for 30 s after it ends."
    } else {
        ""
    };
    Ok((id, format!("Operation started.{undo}")))
}

/// A number as a person writes it.
fn digits(typed: &str) -> Option<i64> {
    let separator = |c: char| c == ',' || c.is_whitespace();
    typed.replace(separator, "").parse().ok()
}

fn none(wish: &Wish) -> String {
    if wish.all {
        "no jobs match the search anymore".to_owned()
    } else {
        "the selected jobs no longer exist".to_owned()
    }
}

fn deed(wish: &Wish) -> Result<Deed, String> {
    Deed::parse(&wish.deed).ok_or_else(|| "no action was given".to_owned())
}

fn action(deed: Deed, wish: &Wish) -> Result<Action, String> {
    let arg = wish.arg.trim();
    Ok(match deed {
        Deed::Retry => Action::Retry,
        Deed::Cancel => Action::Cancel,
        Deed::Track => Action::Track,
        Deed::Untrack => Action::Untrack,
        Deed::Priority => Action::Priority {
            priority: number("priority", arg)?,
        },
        Deed::Move => {
            // As it is written: a queue's name may begin with a blank.
            check_name("the queue name", &wish.arg)?;
            Action::Move {
                queue: wish.arg.clone(),
            }
        }
        Deed::Tag | Deed::Untag => {
            check_name("the tag", arg)?;
            let tag = arg.to_owned();
            if deed == Deed::Tag {
                Action::Tag { tag }
            } else {
                Action::Untag { tag }
            }
        }
    })
}

/// An action of that kind, to count what it can be done to.
fn stand_in(deed: Deed) -> Action {
    match deed {
        Deed::Retry => Action::Retry,
        Deed::Cancel => Action::Cancel,
        Deed::Move | Deed::Priority | Deed::Tag | Deed::Untag | Deed::Track | Deed::Untrack => {
            Action::Track
        }
    }
}

fn subject(wish: &Wish) -> Result<Subject, String> {
    if wish.all {
        return Ok(Subject::Search(wish.q.clone()));
    }
    let mut jobs: Vec<i64> = wish
        .jobs
        .iter()
        .filter_map(|job| job.parse().ok())
        .collect();
    jobs.sort_unstable_by(|a, b| b.cmp(a));
    jobs.dedup();
    if jobs.is_empty() {
        return Err("no jobs are selected".to_owned());
    }
    Ok(Subject::Jobs(jobs))
}

/// Ends an operation in the middle.
pub async fn stop(engine: &Engine, id: i64) -> Result<(), String> {
    let done = engine.cancel_operation(id).await;
    let done = done.map_err(|error| error.to_string())?;
    done.map_err(|why| why.to_string())
}

/// Puts back what an operation has removed.
pub async fn undo(engine: &Engine, id: i64) -> Result<(), String> {
    let done = engine.undo_operation(id).await;
    let done = done.map_err(|error| error.to_string())?;
    done.map_err(|why| why.to_string())
}

/// A page of the operations, newest first.
pub async fn operations(engine: &Engine, offset: usize) -> Result<OperationsView> {
    let limit = PAGE_JOBS;
    let (total, found) = engine.operations(Page { offset, limit }).await?;
    let rows = found.iter().map(|operation| row(engine, operation));
    Ok(OperationsView {
        total,
        rows: rows.collect(),
    })
}

/// The operation, and a page of what it skipped.
pub async fn operation(engine: &Engine, id: &str, offset: usize) -> Result<Option<OperationView>> {
    let Ok(id) = id.parse() else {
        return Ok(None);
    };
    let Some(operation) = engine.operation(id).await? else {
        return Ok(None);
    };
    let limit = PAGE_JOBS;
    let skips = engine.skips(id, Page { offset, limit }).await?;
    let skip = |skip: Skip| SkipRow {
        job: skip.job,
        place: skip.place.map(|(queue, id)| (place(&queue), id)),
        why: skip.why,
    };
    Ok(Some(OperationView {
        row: row(engine, &operation),
        skips: skips.into_iter().map(skip).collect(),
        known: (operation.skipped + operation.lost).min(SKIPS_KNOWN),
    }))
}

fn row(engine: &Engine, operation: &Operation) -> OperationRow {
    let now = engine.now(None);
    let (deed, arg) = match &operation.action {
        Action::Retry => (Deed::Retry, String::new()),
        Action::Cancel => (Deed::Cancel, String::new()),
        Action::Move { queue } => (Deed::Move, queue.clone()),
        Action::Priority { priority } => (Deed::Priority, priority.to_string()),
        Action::Tag { tag } => (Deed::Tag, tag.clone()),
        Action::Untag { tag } => (Deed::Untag, tag.clone()),
        Action::Track => (Deed::Track, String::new()),
        Action::Untrack => (Deed::Untrack, String::new()),
    };
    let (all, q, jobs) = match &operation.subject {
        Subject::Search(text) => (true, text.clone(), Vec::new()),
        Subject::Jobs(jobs) => (
            false,
            String::new(),
            jobs.iter().map(ToString::to_string).collect(),
        ),
    };
    let until = operation.undo_until.map(|until| until.0);
    OperationRow {
        id: operation.id,
        who: operation.who.clone(),
        deed,
        wish: Wish {
            deed: deed.as_str().to_owned(),
            all,
            q,
            jobs,
            arg,
        },
        phase: match operation.stage {
            Stage::Running if operation.started_at.is_none() => Phase::Waiting,
            Stage::Running => Phase::Running,
            Stage::Done => Phase::Done,
            Stage::Cancelled => Phase::Stopped,
            Stage::Failed => Phase::Failed,
            Stage::Undoing => Phase::Undoing,
            Stage::Undone => Phase::Undone,
        },
        total: operation.total,
        is_least: operation.is_least,
        done: operation.done,
        skipped: operation.skipped,
        restored: operation.restored,
        lost: operation.lost,
        created: operation.created_at.0,
        started: operation.started_at.map(|at| at.0),
        ended: operation.ended_at.map(|at| at.0),
        undo_until: until.filter(|_| operation.can_be_undone(now)),
        keeps: operation.keeps,
        why: operation.why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_typed_as_people_write_it() {
        assert_eq!(digits(" 12,410 "), Some(12_410));
        assert_eq!(digits("12 410"), Some(12_410));
        for typed in ["", "all", "12.410", "-"] {
            assert_eq!(digits(typed), None, "{typed}");
        }
    }
}

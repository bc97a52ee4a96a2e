//! What can be done with a job on its page.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::super::parts::{Ask, allowed, ask, deed, hidden, hot, may};
use super::super::tables;
use super::super::visit::{Visit, to};
use crate::api::act::{
    AddTag, Cancel, MoveJob, Note, Prioritize, TimeOut, Track, UndependAll, Untrack,
};
use crate::api::views::{JobView, Stand};

/// What can be done with the job as it stands.
pub fn actions(job: &JobView, visit: &Visit) -> AnyView {
    let row = &job.row;
    let retry = (row.stand == Stand::Failed).then(|| tables::retry_one(&row.id, visit));
    let cancel = (row.stand != Stand::Complete).then(|| {
        ask(Ask {
            id: "cancel".to_owned(),
            button: "Cancel…".to_owned(),
            danger: true,
            title: "Cancel this job?".to_owned(),
            text: match &row.worker {
                Some(worker) => format!(
                    "The job and its history are gone then, and {worker}, which works on it, cannot complete it any more. This cannot be undone."
                ),
                None => "The job and its history are gone then. This cannot be undone.".to_owned(),
            },
            action: Cancel::PATH,
            fields: vec![
                ("id", row.id.clone()),
                ("back", visit.here()),
                ("after", to::stand(&row.place, row.list())),
            ],
            yes: "Cancel the job".to_owned(),
            no: "Keep it",
        })
    });
    let track = if job.tracked {
        let fields = vec![("id", row.id.clone()), ("back", visit.here())];
        deed(
            Untrack::PATH,
            fields,
            "Untrack",
            format!("Untrack job {}", row.id),
        )
    } else {
        let fields = vec![("id", row.id.clone()), ("back", visit.here())];
        deed(
            Track::PATH,
            fields,
            "Track",
            format!("Track job {}", row.id),
        )
    };
    let time_out = row
        .worker
        .as_ref()
        .map(|worker| time_out(&row.id, worker, visit));
    let can_wait = row.stand != Stand::Complete && may(Prioritize::PATH);
    let priority = can_wait.then(|| hot("", priority_form(job, visit)));
    let move_form = allowed(MoveJob::PATH, || hot("m", move_form(job, visit)));
    let clone =
        may("/ui/put").then(|| view! { <a class="button" href=to::put_like(&row.id)>"Clone…"</a> });
    let (cancel, track) = (cancel.map(|cancel| hot("c", cancel)), hot("t", track));
    let time_out = time_out.map(|time_out| hot("", time_out));
    view! { {retry} {track} {priority} {move_form} {clone} {time_out} {cancel} }.into_any()
}

fn priority_form(job: &JobView, visit: &Visit) -> AnyView {
    let effect = match job.row.stand {
        _ if job.row.is_taken_away() => {
            "It stays first in line; the priority counts when it waits in its queue again."
        }
        Stand::Waiting => "Its place in the queue changes at once.",
        _ => "It counts once the job waits in its queue.",
    };
    view! {
        <button type="button" class="button" popovertarget="priority">"Priority…"</button>
        <div id="priority" class="ask" popover="auto" role="dialog" aria-labelledby="priority-title">
            <h2 id="priority-title">"Change the priority"</h2>
            <p>{format!("The lowest number runs first. {effect}")}</p>
            <form method="post" action=Prioritize::PATH>
                {hidden(vec![("id", job.row.id.clone()), ("back", visit.here())])}
                <label for="priority-value">"Priority"</label>
                <input
                    id="priority-value"
                    name="priority"
                    type="number"
                    step="any"
                    value=job.row.priority.to_string()
                    required
                    autocomplete="off"
                />
                <div class="row">
                    <button type="submit" class="button strong">"Change it"</button>
                    <button type="button" class="button" popovertarget="priority" popovertargetaction="hide">"Leave it"</button>
                </div>
            </form>
        </div>
    }
    .into_any()
}

fn move_form(job: &JobView, visit: &Visit) -> AnyView {
    let effect = if job.row.stand == Stand::Running {
        "It starts anew there, with all its retries; its worker loses it."
    } else {
        "It starts anew there, with all its retries."
    };
    view! {
        <button type="button" class="button" popovertarget="move">"Move…"</button>
        <div id="move" class="ask" popover="auto" role="dialog" aria-labelledby="move-title">
            <h2 id="move-title">"Move this job"</h2>
            <p>{effect}</p>
            <form method="post" action=MoveJob::PATH>
                {hidden(vec![("id", job.row.id.clone()), ("back", visit.here())])}
                <label for="move-queue">"Queue"</label>
                <input
                    id="move-queue"
                    name="queue"
                    type="text"
                    value=job.row.place.name.clone()
                    required
                    maxlength="255"
                    autocomplete="off"
                />
                <div class="row">
                    <button type="submit" class="button strong">"Move"</button>
                    <button type="button" class="button" popovertarget="move" popovertargetaction="hide">"Leave it"</button>
                </div>
            </form>
        </div>
    }
    .into_any()
}

fn time_out(id: &str, worker: &str, visit: &Visit) -> AnyView {
    ask(Ask {
        id: "time-out".to_owned(),
        button: "Time out…".to_owned(),
        danger: true,
        title: "Take this job from its worker?".to_owned(),
        text: format!(
            "{worker} loses the job and cannot complete it any more. The job is first in line for the next worker that asks; it keeps its retries."
        ),
        action: TimeOut::PATH,
        fields: vec![("id", id.to_owned()), ("back", visit.here())],
        yes: "Take it away".to_owned(),
        no: "Leave it",
    })
}

pub fn take_off_all(job: &JobView, visit: &Visit) -> AnyView {
    ask(Ask {
        id: "take-off-all".to_owned(),
        button: "Take all off…".to_owned(),
        danger: false,
        title: "Wait for none of them?".to_owned(),
        text: "The job can be taken by a worker at once, or when its delay is over, whatever becomes of the others.".to_owned(),
        action: UndependAll::PATH,
        fields: vec![("id", job.row.id.clone()), ("back", visit.here())],
        yes: "Take all off".to_owned(),
        no: "Keep waiting",
    })
}

pub fn tag_form(id: &str, visit: &Visit) -> AnyView {
    if !may(AddTag::PATH) {
        return ().into_any();
    }
    view! {
        <button type="button" class="button small" popovertarget="tag">"Add a tag…"</button>
        <div id="tag" class="ask" popover="auto" role="dialog" aria-labelledby="tag-title">
            <h2 id="tag-title">"Add a tag"</h2>
            <p>"Jobs with the same tag are listed together, whatever their queue."</p>
            <form method="post" action=AddTag::PATH>
                {hidden(vec![("id", id.to_owned()), ("back", visit.here())])}
                <label for="tag-name">"Tag"</label>
                <input id="tag-name" name="tag" type="text" required maxlength="255" autocomplete="off" />
                <div class="row">
                    <button type="submit" class="button strong">"Add"</button>
                    <button type="button" class="button" popovertarget="tag" popovertargetaction="hide">"Leave it"</button>
                </div>
            </form>
        </div>
    }
    .into_any()
}

pub fn note_form(id: &str, visit: &Visit) -> AnyView {
    if !may(Note::PATH) {
        return ().into_any();
    }
    view! {
        <form method="post" action=Note::PATH class="note-form">
            {hidden(vec![("id", id.to_owned()), ("back", visit.here())])}
            <label for="note">"Note for the history"</label>
            <input id="note" name="message" type="text" required maxlength="1000" autocomplete="off" />
            <button type="submit" class="button">"Add the note"</button>
        </form>
    }
    .into_any()
}

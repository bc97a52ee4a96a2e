//! `/ui/workers/{worker}`: one worker and the jobs it holds.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use leptos_meta::Title;

use super::parts::{Ask, ago, ask, loaded, many};
use super::tables::{self, JobList};
use super::visit::{Visit, visit};
use crate::api::act::ForgetWorker;
use crate::api::read;
use crate::api::views::{Pulse, WorkerRow};

#[component]
pub fn WorkerPage() -> impl IntoView {
    let visit = visit();
    loaded(read::worker(visit.name(2)), move |view| {
        let worker = &view.worker;
        view! {
            <Title text=worker.name.clone() />
            <p class="crumb"><a href="/ui/workers">"Workers"</a></p>
            <div class="head-row">
                <h1 class="name">{worker.name.clone()}</h1>
                <div class="row">{(worker.pulse(visit.now) == Pulse::Silent).then(|| forget(worker, &visit))}</div>
            </div>
            <p class="lead row">
                {tables::pulse(worker, visit.now)} <span>"last seen " {ago(worker.last_seen, visit.now)}</span>
                <span>{format!("{} running, {} stalled", many(worker.running, "job", "jobs"), worker.stalled)}</span>
            </p>
            <div class="card">
                {if view.jobs.is_empty() {
                    view! { <p class="empty">"This worker holds no jobs."</p> }.into_any()
                } else {
                    tables::jobs("Jobs of this worker", JobList::Worker, &view.jobs, &visit)
                }}
            </div>
        }
        .into_any()
    })
}

/// For a worker that does not show itself any more; one that does would be back in the same moment.
fn forget(worker: &WorkerRow, visit: &Visit) -> AnyView {
    let held = worker.running + worker.stalled;
    let jobs = match held {
        0 => String::new(),
        n => format!(
            " It keeps the {} it holds until another worker claims {}.",
            many(n, "job", "jobs"),
            if n == 1 { "it" } else { "them" },
        ),
    };
    ask(Ask {
        id: "forget".to_owned(),
        button: "Forget…".to_owned(),
        danger: false,
        title: "Forget this worker?".to_owned(),
        text: format!("Hides the worker from the lists until it asks for jobs again.{jobs}"),
        action: ForgetWorker::PATH,
        fields: vec![
            ("worker", worker.name.clone()),
            ("back", visit.here()),
            ("after", "/ui/workers".to_owned()),
        ],
        yes: "Forget worker".to_owned(),
        no: "Keep worker",
    })
}

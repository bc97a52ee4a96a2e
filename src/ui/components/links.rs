//! Links to queues, jobs, workers and tags.

use leptos::prelude::*;

use crate::ui::access::role_to_read;
use crate::ui::components::state::protocol_badge;
use crate::ui::model::job::JobRow;
use crate::ui::model::queue_ref::QueueRef;
use crate::ui::page_request::page_request;
use crate::ui::urls;

/// A link to a queue.
pub fn queue_link(queue_ref: &QueueRef) -> AnyView {
    let namespace = (!queue_ref.namespace.is_empty())
        .then(|| view! { <span>{queue_ref.namespace.clone()} "/"</span> });
    view! { <a class="name" href=urls::queue(queue_ref)>{namespace} {quoted_if_blank(&queue_ref.name)}</a> }
        .into_any()
}

/// The name, in quotes if it is blank.
pub fn quoted_if_blank(name: &str) -> String {
    if name.trim().is_empty() {
        format!("“{name}”")
    } else {
        name.to_owned()
    }
}

/// A link to the page of a job in a list.
pub fn job_link(job: &JobRow) -> AnyView {
    view! { <a class="id" href=urls::listed_job(job)>{quoted_if_blank(&job.id)}</a> }.into_any()
}

/// A link to a queue, and the badge of its protocol.
pub fn queue_link_with_protocol(queue_ref: &QueueRef) -> AnyView {
    view! { {queue_link(queue_ref)} " " {protocol_badge(queue_ref.protocol)} }.into_any()
}

/// A tag, as a link to its jobs.
pub fn tag_link(tag: &str) -> AnyView {
    view! { <a class="tag" href=urls::tag(tag)>{tag.to_owned()}</a> }.into_any()
}

/// A link to a page; plain text for users who may not open it.
pub fn link_if_allowed(address: String, words: String) -> AnyView {
    if page_request().may(role_to_read(&address)) {
        view! { <a class="name" href=address>{words}</a> }.into_any()
    } else {
        view! { <span class="name">{words}</span> }.into_any()
    }
}

/// A link to a worker.
pub fn worker_link(name: &str) -> AnyView {
    view! { <a class="name" href=urls::worker(name)>{name.to_owned()}</a> }.into_any()
}

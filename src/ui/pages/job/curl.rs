//! The API calls for what the page shows and does.

use leptos::prelude::*;

use crate::ui::components::commands::{api, curl_commands, json_string, shell_quote};
use crate::ui::model::state::EffectiveState;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::job::model::JobView;
use crate::ui::urls::encoding::segment;

pub fn curl(job: &JobView, request: &PageRequest) -> AnyView {
    let row = &job.row;
    let id = json_string(&row.id);
    let job_url = shell_quote(&api(request, &format!("/job/{}", segment(&row.id))));
    let mut lines = vec![("Get the job", format!("curl {job_url}"))];
    let mut post = |what, path: &str, data: String| {
        let address = shell_quote(&api(request, path));
        let data = shell_quote(&format!(r#"{{"data": {data}}}"#));
        lines.push((what, format!("curl {address} -d {data}")));
    };
    if row.state != EffectiveState::Complete {
        let priority = format!(r#"{{"id": {id}, "priority": {}}}"#, row.priority);
        post("Change its priority", "/priority", priority);
        post("Cancel the job", "/cancel", id.clone());
    }
    if let (EffectiveState::Failed, Some(failure)) = (row.state, &row.failure) {
        let path = format!("/unfail/{}", segment(&row.queue_ref.name));
        let oldest = format!(
            r#"{{"group": {}, "count": 1}}"#,
            json_string(&failure.group)
        );
        post("Retry the oldest job of its failure group", &path, oldest);
    }
    if row.worker.is_some() {
        post("Time out the job", "/timeout", id.clone());
    }
    if row.state == EffectiveState::Depends {
        let off = format!(r#"{{"id": {id}, "off": "all"}}"#);
        post("Remove all dependencies", "/depends", off);
    }
    let tags = format!(r#"{{"id": {id}, "tags": ["vip"]}}"#);
    post("Add a tag", "/tag", tags);
    if job.tracked {
        post("Stop tracking the job", "/untrack", id.clone());
    } else {
        post("Track the job", "/track", id.clone());
    }
    let note = format!(r#"{{"id": {id}, "message": "looked at it"}}"#);
    post("Add a note to its history", "/log", note);
    curl_commands(lines)
}

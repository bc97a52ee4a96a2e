//! Muting the group, and the link to a tracker.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use crate::ui::actions::failures::{MuteGroup, UnmuteGroup};
use crate::ui::components::forms::{ConfirmDialog, action_button, confirm_dialog_with, may_post};
use crate::ui::components::icons::icon;
use crate::ui::components::styles::NOTICE;
use crate::ui::components::time::exact;
use crate::ui::http::Dashboard;
use crate::ui::page_request::PageRequest;
use crate::ui::pages::failures::model::FailureGroupView;

/// The durations that the form offers: hours, and label.
const DURATIONS: [(i64, &str); 6] = [
    (1, "1 hour"),
    (4, "4 hours"),
    (24, "1 day"),
    (72, "3 days"),
    (168, "1 week"),
    (720, "30 days"),
];

/// The notice that the group is muted, with the reason and the end.
pub fn notice(view: &FailureGroupView, request: &PageRequest) -> Option<AnyView> {
    let muted = view.group.muted.as_ref()?;
    let fields = vec![
        ("group", view.group.group.clone()),
        ("back", request.here()),
    ];
    Some(
        view! {
            <div class=format!("{NOTICE} flex-wrap items-center text-paused")>
                {icon("paused")}
                <span class="wrap-anywhere">
                    "Muted by " {muted.who.clone()} " until " {exact(muted.until)} ": " {muted.reason.clone()}
                    ". It is hidden from the problems on the overview and raises no alerts."
                </span>
                {action_button(UnmuteGroup::PATH, fields, "Unmute", "Unmute this group".to_owned())}
            </div>
        }
        .into_any(),
    )
}

/// The button that mutes the group.
pub fn button(view: &FailureGroupView, request: &PageRequest) -> AnyView {
    if view.group.muted.is_some() || !may_post(MuteGroup::PATH) {
        return ().into_any();
    }
    let durations = DURATIONS.map(|(hours, label)| {
        view! { <option value=hours.to_string() selected=hours == 24>{label}</option> }
    });
    let inputs = view! {
        <label for="mute-reason">"Reason"</label>
        <input id="mute-reason" name="reason" type="text" required maxlength="200" autocomplete="off" />
        <label for="mute-hours">"For"</label>
        <select id="mute-hours" name="hours">{durations.collect_view()}</select>
    };
    let dialog = ConfirmDialog {
        id: "mute".to_owned(),
        button: "Mute…".to_owned(),
        danger: false,
        title: "Mute this group?".to_owned(),
        text: "Until the mute ends, this group is hidden from the problems on the overview and raises no alerts. You can still retry its jobs."
            .to_owned(),
        action: MuteGroup::PATH,
        fields: vec![
            ("group", view.group.group.clone()),
            ("back", request.here()),
        ],
        confirm_label: "Mute group".to_owned(),
        cancel_label: "Close",
    };
    confirm_dialog_with(dialog, inputs.into_any())
}

/// The link to the tracker (`--failure-link`).
pub fn tracker(view: &FailureGroupView) -> Option<AnyView> {
    let link = use_context::<Dashboard>()?.failure_link?;
    let sample = view.sample.as_ref();
    let message = sample.and_then(|sample| Some(sample.failure.as_ref()?.message.as_str()));
    let queue = sample.map(|sample| sample.queue_ref.name.as_str());
    let address = link.address(
        &view.group.group,
        message.unwrap_or_default(),
        queue.unwrap_or_default(),
    );
    Some(
        view! { <a class="btn" href=address rel="noreferrer noopener">"Issue tracker"</a> }
            .into_any(),
    )
}

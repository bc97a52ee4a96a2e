//! Display settings, stored in cookies. An unknown value selects the default. The audit log does not record them.

use leptos::prelude::*;
use leptos::server_fn::ServerFn;

use super::{Action, Target};
use crate::auth::Role;
use crate::ui::context::ActionContext;
use crate::ui::display::{CLOCK, DENSITY, KEYS, Setting, THEME};
use crate::ui::error::PageError;

const fn setting(name: &'static str, path: &'static str) -> Action {
    Action::new(name, path, Role::Viewer, |_| Target::none())
}

pub static SET_THEME: Action = setting("theme", Theme::PATH);

/// Sets the colors: `auto` (those of the system), `light` or `dark`.
#[server]
pub async fn theme(theme: String, back: String) -> Result<(), PageError> {
    set(&SET_THEME, &THEME, &theme, &back)
}

pub static SET_CLOCK: Action = setting("set_clock", SetClock::PATH);

/// Sets how times are displayed: `relative`, `utc` or `local`.
#[server]
pub async fn set_clock(clock: String, back: String) -> Result<(), PageError> {
    set(&SET_CLOCK, &CLOCK, &clock, &back)
}

pub static SET_DENSITY: Action = setting("set_density", SetDensity::PATH);

/// Sets the height of rows: `comfortable` or `compact`.
#[server]
pub async fn set_density(density: String, back: String) -> Result<(), PageError> {
    set(&SET_DENSITY, &DENSITY, &density, &back)
}

pub static SET_KEYS: Action = setting("set_keys", SetKeys::PATH);

/// Turns single-key shortcuts `on` or `off`.
#[server]
pub async fn set_keys(keys: String, back: String) -> Result<(), PageError> {
    set(&SET_KEYS, &KEYS, &keys, &back)
}

fn set(action: &Action, setting: &Setting, value: &str, back: &str) -> Result<(), PageError> {
    let context = ActionContext::new(action.role)?;
    context.store_setting(setting, value);
    context.redirect(back)
}

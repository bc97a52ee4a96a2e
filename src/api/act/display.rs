//! Server functions that remember how this browser wants its pages; whatever is no choice means the usual one.

use leptos::prelude::*;

use super::super::Trouble;
use super::super::views::Role;

/// Remembers which colours this browser wants: `auto` for the system's, `light` or `dark`.
#[server]
pub async fn theme(theme: String, back: String) -> Result<(), Trouble> {
    let desk = super::super::desk::Desk::here(Role::Viewer)?;
    desk.remember(&crate::app::display::THEME, &theme);
    desk.lead_back(&back)
}

/// Remembers how times are told: `relative`, `utc` or `local`.
#[server]
pub async fn set_clock(clock: String, back: String) -> Result<(), Trouble> {
    let desk = super::super::desk::Desk::here(Role::Viewer)?;
    desk.remember(&crate::app::display::CLOCK, &clock);
    desk.lead_back(&back)
}

/// Remembers how high rows are: `comfortable` or `compact`.
#[server]
pub async fn set_density(density: String, back: String) -> Result<(), Trouble> {
    let desk = super::super::desk::Desk::here(Role::Viewer)?;
    desk.remember(&crate::app::display::DENSITY, &density);
    desk.lead_back(&back)
}

/// Remembers whether single keys are shortcuts: `on` or `off`.
#[server]
pub async fn set_keys(keys: String, back: String) -> Result<(), Trouble> {
    let desk = super::super::desk::Desk::here(Role::Viewer)?;
    desk.remember(&crate::app::display::KEYS, &keys);
    desk.lead_back(&back)
}

//! The keyboard: one key for what is done all day, and a palette that finds everything. A page says itself what a key
//! does on it, by `data-hot` on a button, a link or a field, or on what is around one (`parts::hot`); what a key finds
//! is pressed, focused or followed as by hand. So nothing can be done by a key that could not be done without.

#[cfg(feature = "hydrate")]
mod listen;
#[cfg(feature = "hydrate")]
mod palette;
#[cfg(feature = "hydrate")]
mod rows;
#[cfg(not(feature = "hydrate"))]
mod listen {
    //! The server has no keyboard.
    pub fn start() {}
}

use leptos::prelude::*;

/// Listens for keys.
#[island]
pub fn Keys() -> impl IntoView {
    Effect::new(|_| listen::start());
}

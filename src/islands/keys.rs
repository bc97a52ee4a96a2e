//! The keyboard: shortcuts, and the palette. A page declares a shortcut with `data-shortcut` on a button, a link, a
//! field, or an element around one (`ui/components/forms.rs`). The key presses, follows or focuses that control, so a
//! shortcut can do only what its control can.

#[cfg(feature = "hydrate")]
pub mod listen;
#[cfg(feature = "hydrate")]
mod palette;
#[cfg(feature = "hydrate")]
mod rows;
#[cfg(not(feature = "hydrate"))]
mod listen {
    //! On the server, the islands' functions are empty.
    pub fn start() {}
}

use leptos::prelude::*;

/// The island that handles keys.
#[island]
pub fn Keys() -> impl IntoView {
    Effect::new(|_| listen::start());
}

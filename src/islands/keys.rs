//! The keyboard: shortcuts, and a palette that finds everything. A page declares its shortcuts by `data-shortcut` on a button, a
//! link, a field, or an element around one (`ui/components/forms.rs`). A key presses, focuses or follows that control, so a
//! shortcut can do nothing that its control cannot.

#[cfg(feature = "hydrate")]
mod listen;
#[cfg(feature = "hydrate")]
mod palette;
#[cfg(feature = "hydrate")]
mod rows;
#[cfg(not(feature = "hydrate"))]
mod listen {
    //! Does nothing on the server.
    pub fn start() {}
}

use leptos::prelude::*;

/// The island that handles keys.
#[island]
pub fn Keys() -> impl IntoView {
    Effect::new(|_| listen::start());
}

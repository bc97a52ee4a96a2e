//! What runs in the browser: the two islands of the dashboard, and nothing else. The server renders them like any
//! other component; the WebAssembly build consists of this room, `time` and their types.

#[cfg(feature = "hydrate")]
mod browser;
mod keys;
mod live;

pub use keys::Keys;
pub use live::Live;

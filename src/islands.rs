//! The two islands of the dashboard: the only components that run in the browser. The server renders them like any
//! other component; the WebAssembly build contains only this module, `time` and their types.

#[cfg(feature = "hydrate")]
mod browser;
mod keys;
mod live;

pub use keys::Keys;
pub use live::Live;
#[cfg(test)]
pub use live::patch;

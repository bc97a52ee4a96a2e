//! The dashboard: pages, the actions of their forms, and the HTTP around them.
//!
//! * [`pages`]: one file or folder per page: the component, its view model (`model.rs`), and the server functions that
//!   load it from the engine (`load.rs`)
//! * [`actions`]: what forms change, one file per topic
//! * [`components`]: what several pages show; [`model`] and [`present`]: their view models, and how these are made from
//!   engine types
//! * [`http`]: router, middleware, live feed, exports, downloads
//!
//! The paths of pages and forms are fixed, so that a form on a page from before an upgrade still works.
//!
//! [`pages`]: crate::ui::pages
//! [`actions`]: crate::ui::actions
//! [`components`]: crate::ui::components
//! [`model`]: crate::ui::model
//! [`present`]: crate::ui::present

/// The minimum role for each path.
pub mod access;
/// What forms change.
pub mod actions;
/// Components that several pages show.
pub mod components;
/// The context of server functions.
pub mod context;
/// Cookies.
pub mod cookies;
/// Dates and times that users type.
pub mod dates;
/// Display settings of a browser.
pub mod display;
/// The errors of pages and actions.
pub mod error;
/// Router, middleware, live feed, exports, downloads.
pub mod http;
/// View models that several pages show.
pub mod model;
/// Descriptions of the server's options.
pub mod options;
/// The request for a page.
pub mod page_request;
/// The pages.
pub mod pages;
/// Converts engine types to view models.
pub mod present;
/// URLs of the pages.
pub mod urls;

//! Components that several pages show.

pub mod basics;
pub mod bulk;
pub mod chart;
pub mod commands;
pub mod display_panel;
pub mod error;
pub mod exports;
pub mod forms;
pub mod frame;
pub mod histogram;
pub mod icons;
pub mod keyboard;
pub mod links;
pub mod paging;
pub mod pause;
pub mod payload;
pub mod reschedule;
pub mod state;
pub mod styles;
pub mod tables;
pub mod time;
pub mod timeline;
pub mod worker_results;

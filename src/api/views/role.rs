//! What somebody may do in the dashboard.

use serde::{Deserialize, Serialize};

/// Each may do what those before it may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// Sees everything but secrets, and changes nothing.
    #[default]
    Viewer,
    /// Does everything with jobs, queues and workers.
    Operator,
    /// Also sets options and tokens, deletes queues, and mends the database.
    Admin,
}

//! Who waits for whom.

use serde::{Deserialize, Serialize};

use super::Stand;

/// The jobs that wait for each other around one job, which is the first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    pub nodes: Vec<Node>,
    /// There are more than are shown.
    pub is_cut: bool,
}

/// A job among those that wait for each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    pub id: String,
    pub klass: Option<String>,
    /// `None` if it is not there.
    pub stand: Option<Stand>,
    /// A job stands right of all that it waits for.
    pub layer: usize,
    /// The jobs that it waits for, as places in the list of nodes.
    pub needs: Vec<usize>,
}

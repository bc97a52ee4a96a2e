//! The kinds of problems that the overview shows and that alerts report.

use serde::{Deserialize, Serialize};

/// A kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ProblemKind {
    FullDisk,
    NoWorkers,
    Unclaimed,
    Paused,
    Stalled,
    LongWait,
    Failed,
    FailureRate,
    SlowDatabase,
    Dead,
}

impl ProblemKind {
    pub const ALL: [ProblemKind; 10] = [
        ProblemKind::FullDisk,
        ProblemKind::NoWorkers,
        ProblemKind::Unclaimed,
        ProblemKind::Paused,
        ProblemKind::Stalled,
        ProblemKind::LongWait,
        ProblemKind::Failed,
        ProblemKind::FailureRate,
        ProblemKind::SlowDatabase,
        ProblemKind::Dead,
    ];

    /// The name in rules and deliveries.
    pub fn as_str(self) -> &'static str {
        match self {
            ProblemKind::FullDisk => "full_disk",
            ProblemKind::NoWorkers => "no_workers",
            ProblemKind::Unclaimed => "unclaimed",
            ProblemKind::Paused => "paused",
            ProblemKind::Stalled => "stalled",
            ProblemKind::LongWait => "long_wait",
            ProblemKind::Failed => "failed",
            ProblemKind::FailureRate => "failure_rate",
            ProblemKind::SlowDatabase => "slow_database",
            ProblemKind::Dead => "dead",
        }
    }

    pub fn parse(name: &str) -> Option<ProblemKind> {
        let mut all = ProblemKind::ALL.into_iter();
        all.find(|kind| kind.as_str() == name)
    }

    /// The displayed name.
    pub fn label(self) -> &'static str {
        match self {
            ProblemKind::FullDisk => "Disk full",
            ProblemKind::NoWorkers => "No active qless workers",
            ProblemKind::Unclaimed => "Queue with jobs but no claims",
            ProblemKind::Paused => "Queue paused with jobs waiting",
            ProblemKind::Stalled => "Stalled jobs",
            ProblemKind::LongWait => "Job waiting over 5 min",
            ProblemKind::Failed => "Failed jobs",
            ProblemKind::FailureRate => "Failure rate tripled",
            ProblemKind::SlowDatabase => "Slow database",
            ProblemKind::Dead => "Dead jobs",
        }
    }
}

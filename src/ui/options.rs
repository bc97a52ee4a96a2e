//! Descriptions of the server's options.

/// The unit of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Days,
    Jobs,
    Entries,
    /// Not a number.
    Text,
}

impl Unit {
    pub fn word(self) -> &'static str {
        match self {
            Unit::Seconds => "seconds",
            Unit::Days => "days",
            Unit::Jobs => "jobs",
            Unit::Entries => "entries",
            Unit::Text => "text",
        }
    }
}

/// The description of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionDescription {
    pub name: &'static str,
    pub unit: Unit,
    pub about: &'static str,
    /// The effect of a change on existing jobs.
    pub effect: &'static str,
}

/// The options of the server, most important first.
pub const OF_SERVER: [OptionDescription; 9] = [
    OptionDescription {
        name: "heartbeat",
        unit: Unit::Seconds,
        about: "Duration of a lease. A worker must send a heartbeat within this time.",
        effect: LATER,
    },
    OptionDescription {
        name: "grace-period",
        unit: Unit::Seconds,
        about: "How long a worker can still complete a job after another claim has found its lease expired. Then another worker gets the job. If not set, clients over the Redis protocol get 10 s.",
        effect: "Applies when a claim next finds an expired lease.",
    },
    OptionDescription {
        name: "jobs-history",
        unit: Unit::Seconds,
        about: "How long a complete job is kept.",
        effect: "Older complete jobs are permanently deleted. The deletion begins within 1 s.",
    },
    OptionDescription {
        name: "jobs-history-count",
        unit: Unit::Jobs,
        about: "How many complete jobs are kept, newest first.",
        effect: "Complete jobs beyond this number are permanently deleted. The deletion begins within 1 s.",
    },
    OptionDescription {
        name: "max-job-history",
        unit: Unit::Entries,
        about: "How many history entries are kept per job.",
        effect: "Applies to each job on its next change.",
    },
    OptionDescription {
        name: "stats-history",
        unit: Unit::Days,
        about: "How many days of queue statistics are kept; at least 30 for queues of other protocols.",
        effect: "Older statistics are permanently deleted.",
    },
    OptionDescription {
        name: "histogram-history",
        unit: Unit::Days,
        about: "How many days of histograms are kept; at least 7 for queues of other protocols.",
        effect: "Older histograms are permanently deleted.",
    },
    OptionDescription {
        name: "max-worker-age",
        unit: Unit::Seconds,
        about: "How long an inactive worker stays in the lists.",
        effect: "Workers inactive for longer are hidden until they try to claim a job or send a heartbeat.",
    },
    OptionDescription {
        name: "application",
        unit: Unit::Text,
        about: "Name that the server reports to clients.",
        effect: "Applies to new requests.",
    },
];

/// The options of one queue; set as `<queue>-<name>`.
pub const OF_QUEUE: [OptionDescription; 3] = [
    OptionDescription {
        name: "heartbeat",
        unit: Unit::Seconds,
        about: "Duration of a lease in this queue. A worker must send a heartbeat within this time. Overrides the server option.",
        effect: LATER,
    },
    OptionDescription {
        name: "cutoff",
        unit: Unit::Seconds,
        about: "Maximum duration of a lease in this queue, including heartbeats.",
        effect: LATER,
    },
    OptionDescription {
        name: "max-concurrency",
        unit: Unit::Jobs,
        about: "Maximum number of jobs of this queue that run at the same time. 0 and numbers over 10,000 mean no limit.",
        effect: "Running jobs continue. Workers get the next job when fewer than this number are running.",
    },
];

const LATER: &str = "Applies from the next claim or heartbeat. Current leases do not change.";

/// The server option with this name.
pub fn of_server(name: &str) -> Option<OptionDescription> {
    OF_SERVER.into_iter().find(|option| option.name == name)
}

/// The queue option with this name.
pub fn of_queue(name: &str) -> Option<OptionDescription> {
    OF_QUEUE.into_iter().find(|option| option.name == name)
}

/// Splits the full name of a queue option into the queue and the option.
pub fn split_queue_option(option: &str) -> Option<(&str, OptionDescription)> {
    let new = OF_QUEUE.into_iter().find_map(|meaning| {
        let queue = option.strip_suffix(meaning.name)?.strip_suffix('-')?;
        Some((queue, meaning))
    });
    // The qless documentation names the heartbeat option of a queue this way.
    let old = || option.strip_prefix("heartbeat-").zip(of_queue("heartbeat"));
    new.or_else(old).filter(|(queue, _)| !queue.is_empty())
}

/// The full name of an option of a queue.
pub fn name_of(queue: &str, option: &str) -> String {
    format!("{queue}-{option}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_names_its_queue() {
        let found =
            |option| split_queue_option(option).map(|(queue, meaning)| (queue, meaning.name));
        assert_eq!(found("mail-heartbeat"), Some(("mail", "heartbeat")));
        assert_eq!(found("heartbeat-mail"), Some(("mail", "heartbeat")));
        assert_eq!(
            found("a-b-max-concurrency"),
            Some(("a-b", "max-concurrency"))
        );
        assert_eq!(name_of("-", "cutoff"), "--cutoff");
        assert_eq!(found("--cutoff"), Some(("-", "cutoff")));
        for option in ["heartbeat", "-heartbeat", "heartbeat-", "cutoff", "x"] {
            assert_eq!(found(option), None, "{option}");
        }
    }
}

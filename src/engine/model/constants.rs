//! Names for numbers in SQL: `state = {running}`, `kind = {kind_wait}`, `octet_length(tags) <= {long}`.

use crate::engine::consistency::REPAIR_SERVER;
use crate::engine::model::body::LONG;
use crate::engine::model::job::{CLASS_BYTES_MAX, NAME_BYTES_MAX, QLESS_SCOPE, State};
use crate::engine::operations::OperationState;
use crate::engine::unit_of_work::counters::{Kind, Outcome, SUMMARY_SLOT};
use crate::engine::unit_of_work::time_series;

/// The numbers of states, of kinds and slots of counters, of slots of the time series, of states of operations, and of
/// the scope of qless jobs, the number under which repairs change counters, the size of long texts, and the maximum
/// lengths of a class and of a name, by the names that statements use.
pub static CONSTANTS: [(&str, i64); 31] = [
    ("waiting", State::Waiting as i64),
    ("scheduled", State::Scheduled as i64),
    ("depends", State::Depends as i64),
    ("running", State::Running as i64),
    ("failed", State::Failed as i64),
    ("complete", State::Complete as i64),
    ("timed_out", State::TimedOut as i64),
    ("dead", State::Dead as i64),
    ("record", State::Record as i64),
    ("kind_state", Kind::State as i64),
    ("kind_wait", Kind::Wait as i64),
    ("kind_run", Kind::Run as i64),
    ("kind_outcome", Kind::Outcome as i64),
    ("kind_minute", Kind::Minute as i64),
    ("kind_hour", Kind::Hour as i64),
    ("failures", Outcome::Failures as i64),
    ("still_failed", Outcome::StillFailed as i64),
    ("summary", SUMMARY_SLOT),
    ("series_failed", time_series::FAILED),
    ("series_waiting", time_series::WAITING),
    ("series_samples", time_series::SAMPLES),
    ("series_former_runs", time_series::FORMER_RUNS),
    ("series_waits", time_series::WAITS),
    ("series_runs", time_series::RUNS),
    ("operation_running", OperationState::Running as i64),
    ("operation_undoing", OperationState::Undoing as i64),
    ("qless_scope", QLESS_SCOPE),
    ("repairs", REPAIR_SERVER),
    ("long", LONG as i64),
    ("class", CLASS_BYTES_MAX as i64),
    ("name", NAME_BYTES_MAX as i64),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_know_the_number_of_each_state() {
        for state in State::ALL {
            let name = match state {
                State::TimedOut => "timed_out",
                other => other.as_str(),
            };
            assert!(CONSTANTS.contains(&(name, state.code())), "{name}");
        }
    }
}

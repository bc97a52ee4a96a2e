//! The filter and the messages of the failure groups.

use super::*;

fn group(name: &str, message: &str) -> FailureGroup {
    FailureGroup {
        group: name.to_owned(),
        count: 1,
        first: None,
        last: None,
        message: Some(message.to_owned()),
    }
}

/// The results for three groups of 100, 100 and 13 bytes.
async fn matching(text: &str, bytes_max: u64) -> Vec<bool> {
    let groups = [
        ("Timeout", "x".repeat(93)),
        ("Refused", format!("{}TIME", "x".repeat(89))),
        ("Other", "by timer".to_owned()),
    ];
    let groups = groups.map(|(name, message)| (name.to_owned(), message));
    let mut allowance = Allowance::new(bytes_max);
    matches(groups.to_vec(), &text.into(), &mut allowance)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_filter_compares_names_and_messages_up_to_a_number_of_bytes() {
    for (bytes, expected) in [
        (99, &[][..]),
        (100, &[true][..]),
        (199, &[true]),
        (200, &[true, true]),
        (212, &[true, true]),
        (213, &[true, true, true]),
    ] {
        assert_eq!(matching("time", bytes).await, expected, "{bytes} bytes");
    }
    assert_eq!(matching("refused", 1_000).await, [false, true, false]);
}

#[test]
fn values_are_sorted_by_frequency() {
    assert_eq!(counts(["a", "b", "b"].into_iter()), [("b", 2), ("a", 1)]);
}

#[test]
fn groups_are_sorted_by_their_jobs_then_by_name() {
    let failed = |name: &str, count: i64, last: i64| FailureGroup {
        count,
        last: Some(Time(last)),
        ..group(name, "")
    };
    let groups = [failed("a", 1, 5), failed("b", 2, 4), failed("c", 1, 6)];
    assert_eq!(most_failed_since(&groups, None), [1, 0, 2]);
    assert_eq!(most_failed_since(&groups, Some(Time(5))), [0, 2]);
}

#[test]
fn ranges_end_with_the_span_in_progress() {
    let now = Time(1_793_500_000_000_000);
    for (name, hours) in [
        ("1h", 1),
        ("24h", 24),
        ("7d", 168),
        ("all", 720),
        ("x", 720),
    ] {
        let range = Range::named(name, now);
        assert_eq!(range.name, if name == "x" { ALL } else { name });
        let length = range.width * range.spans as i64;
        assert_eq!(length, hours * HOUR_US);
        assert_eq!(range.since().is_none(), hours == 720);
        let end = range.from.0 + length;
        assert!(end > now.0 && end - range.width <= now.0);
    }
}

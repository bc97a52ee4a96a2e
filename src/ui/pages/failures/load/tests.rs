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

async fn names(text: &str, bytes_max: u64) -> (Vec<String>, usize) {
    let groups = Arc::new(vec![
        group("Timeout", &"x".repeat(93)),
        group("Refused", &format!("{}TIME", "x".repeat(89))),
        group("Other", "by timer"),
    ]);
    let (found, unchecked) = filtered(&groups, vec![0, 1, 2], text, Allowance::new(bytes_max))
        .await
        .unwrap();
    let names = found.into_iter().map(|index| groups[index].group.clone());
    (names.collect(), unchecked)
}

#[tokio::test]
async fn a_filter_compares_names_and_messages_up_to_a_number_of_bytes() {
    let owned = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    for (bytes, expected, unchecked) in [
        (99, &[][..], 3),
        (100, &["Timeout"][..], 2),
        (101, &["Timeout"], 2),
        (199, &["Timeout"], 2),
        (200, &["Timeout", "Refused"], 1),
        (213, &["Timeout", "Refused", "Other"], 0),
    ] {
        let found = names("time", bytes).await;
        assert_eq!(found, (owned(expected), unchecked), "{bytes} bytes");
    }
    assert_eq!(names("refused", 1_000).await, (owned(&["Refused"]), 0));
    assert_eq!(names("", 0).await.0.len(), 3);
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

//! The filter and the messages of the failure groups.

use super::*;

fn group(name: &str, message: &str) -> GroupRow {
    GroupRow {
        message: Some(message.to_owned()),
        ..empty(name)
    }
}

async fn names(text: &str, bytes_max: u64) -> (Vec<String>, usize) {
    let rows = vec![
        group("Timeout", &"x".repeat(93)),
        group("Refused", &format!("{}TIME", "x".repeat(89))),
        group("Other", "by timer"),
    ];
    let (rows, unchecked) = filtered(rows, text, Allowance::new(bytes_max))
        .await
        .unwrap();
    (rows.into_iter().map(|row| row.group).collect(), unchecked)
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
fn kinds_are_sorted_by_frequency_then_by_age() {
    let newest = ["c", "no 1", "b", "no 22", "b 'x'"].map(Fingerprint::of);
    let found: Vec<_> = message_kinds(&[], &newest)
        .into_iter()
        .map(|kind| (kind.text, kind.count))
        .collect();
    let expected = [("no ·", 2), ("c", 1), ("b", 1), ("b ·", 1)];
    assert_eq!(found, expected.map(|(text, n)| (text.to_owned(), n)));
    assert_eq!(counts(["a", "b", "b"].into_iter()), [("b", 2), ("a", 1)]);
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

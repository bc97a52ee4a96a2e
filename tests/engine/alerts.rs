//! The order in which alerts are sent.

use super::*;
use switchyard::engine::AlertRule;

fn rule(id: &str) -> AlertRule {
    AlertRule {
        id: id.to_owned(),
        name: id.to_owned(),
        url: format!("http://{id}.example/"),
        kinds: Vec::new(),
        after_s: 0,
        who: "ada".to_owned(),
        created_at: Time(0),
    }
}

/// Otherwise a webhook that does not answer would delay the alerts of all rules.
#[tokio::test]
async fn rules_alternate() {
    let engine = open(false).await;
    for (id, deliveries) in [("hanging", 20), ("other", 2)] {
        engine.add_alert_rule(rule(id)).await.unwrap();
        for number in 0..deliveries {
            let delivery = format!("{id}-{number}");
            engine.test_alert_rule(rule(id), delivery).await.unwrap();
        }
    }
    let due = engine.due_alert_deliveries(5).await.unwrap();
    let rules: Vec<_> = due.iter().map(|(it, _)| it.rule.as_str()).collect();
    assert_eq!(rules, ["hanging", "other", "hanging", "other", "hanging"]);
}

//! Actions on the alert rules.

use axum::http::Uri;
use leptos::prelude::*;
use leptos::server_fn::ServerFn;
use uuid::Uuid;

use super::{Action, Target, act};
use crate::auth::Role;
use crate::engine::{self, ALERT_RULES_MAX, AlertRule, Engine, Time};
use crate::ui::error::PageError;
use crate::ui::model::problem::ProblemKind;
use crate::ui::urls;

/// Maximum length of the name of a rule, in characters.
pub const NAME_CHARS_MAX: usize = 80;

/// Maximum length of the address of a webhook, in bytes.
pub const URL_BYTES_MAX: usize = 1_000;

/// Maximum number of seconds that a problem must last.
pub const AFTER_S_MAX: i64 = 86_400;

fn target(form: &super::Form) -> Target {
    Target::new(
        format!("alert {}", form.field("name").trim()),
        urls::ALERTS.to_owned(),
    )
}

pub static CREATE_ALERT: Action =
    Action::new("create_alert", CreateAlert::PATH, Role::Admin, target);

/// Creates a rule. `kinds` are names of kinds of problems; an empty list means all kinds. `delay` is how long a problem
/// must last before the alert, in seconds.
#[server]
pub async fn create_alert(
    name: String,
    url: String,
    #[server(default)] kinds: Vec<String>,
    delay: String,
    back: String,
) -> Result<(), PageError> {
    act(&CREATE_ALERT, &back, async |context| {
        let rule = rule(&name, &url, &kinds, &delay, &context.user)?;
        let name = rule.name.clone();
        create(&context.engine, rule).await?;
        Ok(format!("Alert rule “{name}” created.").into())
    })
    .await
}

fn rule(
    name: &str,
    url: &str,
    kinds: &[String],
    after: &str,
    user: &str,
) -> Result<AlertRule, String> {
    let (name, url) = (name.trim(), url.trim());
    let is_name = (1..=NAME_CHARS_MAX).contains(&name.chars().count());
    if !is_name || name.chars().any(char::is_control) {
        return Err(format!(
            "the name must have 1 to {NAME_CHARS_MAX} characters and no control characters"
        ));
    }
    check_url(url)?;
    let after_s = after.trim().parse::<i64>().ok();
    let after_s = after_s.filter(|after_s| (0..=AFTER_S_MAX).contains(after_s));
    let after_s = after_s.ok_or_else(|| format!("the delay must be 0 to {AFTER_S_MAX} seconds"))?;
    let chosen = kinds.iter().map(|kind| {
        let known = ProblemKind::parse(kind);
        known.ok_or_else(|| format!("“{kind}” is not a kind of problem"))
    });
    let chosen = chosen.collect::<Result<Vec<_>, _>>()?;
    let is_chosen = |kind: &ProblemKind| chosen.is_empty() || chosen.contains(kind);
    let kinds = ProblemKind::ALL.into_iter().filter(is_chosen);
    Ok(AlertRule {
        id: Uuid::now_v7().simple().to_string(),
        name: name.to_owned(),
        url: url.to_owned(),
        kinds: kinds.map(|kind| kind.as_str().to_owned()).collect(),
        after_s,
        who: user.to_owned(),
        created_at: Time(0),
    })
}

/// Checks that the server can post to this address. The error does not show the address, which can contain a secret.
fn check_url(url: &str) -> Result<(), String> {
    if url.len() > URL_BYTES_MAX {
        return Err(format!("the address is longer than {URL_BYTES_MAX} bytes"));
    }
    let uri = url.parse::<Uri>().ok();
    let uri = uri.ok_or("the address is not a valid URL")?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("the address must begin with http:// or https://".to_owned());
    }
    let host = uri.authority().map_or("", |authority| authority.as_str());
    if host.is_empty() || host.contains('@') || url.contains('#') {
        return Err("the address must have a host, and neither a user nor a fragment".to_owned());
    }
    Ok(())
}

async fn create(engine: &Engine, rule: AlertRule) -> Result<(), String> {
    let rules = engine.alert_rules().await;
    let rules = rules.map_err(|error| error.to_string())?;
    if rules.len() >= ALERT_RULES_MAX {
        return Err(format!(
            "there are {ALERT_RULES_MAX} alert rules, the maximum"
        ));
    }
    if rules.iter().any(|other| other.name == rule.name) {
        return Err(format!("alert rule “{}” already exists", rule.name));
    }
    let id = rule.id.clone();
    let added = async {
        engine.add_alert_rule(rule).await?;
        let rules = engine.alert_rules().await?;
        Ok(rules.iter().any(|rule| rule.id == id))
    };
    match added
        .await
        .map_err(|error: engine::Error| error.to_string())?
    {
        true => Ok(()),
        false => Err("another alert rule was created at the same time".to_owned()),
    }
}

pub static DELETE_ALERT: Action =
    Action::new("delete_alert", DeleteAlert::PATH, Role::Admin, target);

/// Deletes a rule, and gives up what it has not delivered.
#[server]
pub async fn delete_alert(name: String, back: String) -> Result<(), PageError> {
    act(&DELETE_ALERT, &back, async |context| {
        let rule = find(&context.engine, &name).await?;
        context.engine.delete_alert_rule(rule).await?;
        Ok(format!("Alert rule “{name}” deleted.").into())
    })
    .await
}

pub static TEST_ALERT: Action = Action::new("test_alert", TestAlert::PATH, Role::Admin, target);

/// Sends a test to the webhook of a rule.
#[server]
pub async fn test_alert(name: String, back: String) -> Result<(), PageError> {
    act(&TEST_ALERT, &back, async |context| {
        if !context.sends_alerts {
            return Err("the server has no --alert-secret, so it sends no alerts".into());
        }
        let rule = find(&context.engine, &name).await?;
        let id = Uuid::now_v7().simple().to_string();
        context.engine.test_alert_rule(rule, id).await?;
        Ok(format!("Test of “{name}” queued. See the deliveries below.").into())
    })
    .await
}

async fn find(engine: &Engine, name: &str) -> Result<AlertRule, String> {
    let rules = engine.alert_rules().await;
    let rules = rules.map_err(|error| error.to_string())?;
    let found = rules.into_iter().find(|rule| rule.name == name);
    found.ok_or_else(|| format!("alert rule “{name}” does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::engine_without_tasks;

    fn made(name: &str, url: &str, after: &str) -> Result<AlertRule, String> {
        rule(name, url, &[], after, "ada")
    }

    #[test]
    fn rules_have_limits() {
        const URL: &str = "https://example.com/a";
        for (chars, is_valid) in [(0, false), (1, true), (79, true), (80, true), (81, false)] {
            let name = "é".repeat(chars);
            assert_eq!(made(&name, URL, "0").is_ok(), is_valid, "{chars}");
        }
        for (after, is_valid) in [
            ("0", true),
            ("86399", true),
            ("86400", true),
            ("86401", false),
            ("-1", false),
            ("", false),
            ("soon", false),
        ] {
            assert_eq!(made("a", URL, after).is_ok(), is_valid, "{after}");
        }
        for (bytes, is_valid) in [(999, true), (1_000, true), (1_001, false)] {
            let url = format!("http://a/{}", "x".repeat(bytes - 9));
            assert_eq!(made("a", &url, "0").is_ok(), is_valid, "{bytes}");
        }
    }

    #[test]
    fn a_webhook_is_an_http_address_without_a_user() {
        for url in [
            "http://a",
            "https://a.example:8443/x?y=z",
            "http://[::1]:80/",
        ] {
            assert!(made("a", url, "0").is_ok(), "{url}");
        }
        for url in [
            "",
            "a.example",
            "/path",
            "ftp://a/secret",
            "file:///etc/secret",
            "gopher://a/secret",
            "http://user:secret@a/",
            "http://a/#secret",
            "http://a b/secret",
            "http:///secret",
        ] {
            let why = made("a", url, "0").unwrap_err();
            assert!(!why.contains("secret"), "{url}: {why}");
        }
    }

    #[test]
    fn the_kinds_are_known_and_none_stands_for_all() {
        let made = |kinds: &[&str]| {
            let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            rule("a", "http://a/", &kinds, "0", "ada").map(|rule| rule.kinds)
        };
        assert_eq!(made(&["dead", "paused"]).unwrap(), ["paused", "dead"]);
        assert_eq!(made(&[]).unwrap().len(), ProblemKind::ALL.len());
        assert!(made(&["dead", "alive"]).is_err());
    }

    #[tokio::test]
    async fn there_are_up_to_20_alerts_with_distinct_names() {
        let engine = engine_without_tasks().await;
        for n in 0..21 {
            let rule = made(&format!("a{n}"), "http://a/", "0").unwrap();
            assert_eq!(create(&engine, rule).await.is_ok(), n < 20, "{n}");
        }
        engine
            .delete_alert_rule(find(&engine, "a3").await.unwrap())
            .await
            .unwrap();
        let again = made("a4", "http://a/", "0").unwrap();
        assert!(
            create(&engine, again)
                .await
                .unwrap_err()
                .contains("already exists")
        );
        let other = made("a3", "http://a/", "0").unwrap();
        assert!(create(&engine, other).await.is_ok());
        engine.close().await;
    }
}

//! Commands on channels.

use super::pubsub::pattern::PATTERN_BYTES_MAX;
use super::pubsub::{Kind, SUBSCRIPTIONS_MAX};
use super::resp::{Command, Reply, Version};
use super::session::{Session, texts};

/// Maximum length of the name of a channel, in bytes.
const NAME_BYTES_MAX: usize = 2_048;

/// Whether the command is one that a subscribed client may send.
pub fn is_command(name: &str) -> bool {
    kind(name).is_some() || name == "PING"
}

fn kind(name: &str) -> Option<(Kind, bool)> {
    Some(match name {
        "SUBSCRIBE" => (Kind::Channel, true),
        "UNSUBSCRIBE" => (Kind::Channel, false),
        "PSUBSCRIBE" => (Kind::Pattern, true),
        "PUNSUBSCRIBE" => (Kind::Pattern, false),
        _ => return None,
    })
}

/// Runs a command. `None` if its replies go through the mailbox.
pub async fn run(session: &mut Session, name: &str, command: &Command) -> Option<Reply> {
    let Some(names) = texts(command.clone()) else {
        return Some(Reply::error("ERR the arguments are not valid UTF-8"));
    };
    let Some((kind, subscribes)) = kind(name) else {
        return Some(ping(session, names));
    };
    let (hub, client) = (&session.front.hub, session.client.number);
    if !subscribes {
        // The events of commands before this one are sent before its reply.
        hub.catch_up().await;
        let names = (!names.is_empty()).then_some(names);
        hub.unsubscribe(client, &session.mailbox, kind, names);
        return None;
    }
    if names.is_empty() {
        let words = format!(
            "ERR wrong number of arguments for '{}' command",
            name.to_ascii_lowercase()
        );
        return Some(Reply::Error(words));
    }
    if hub.count(client) + names.len() > SUBSCRIPTIONS_MAX {
        let words = format!("ERR a client can have at most {SUBSCRIPTIONS_MAX} subscriptions");
        return Some(Reply::Error(words));
    }
    let bytes_max = match kind {
        Kind::Channel => NAME_BYTES_MAX,
        Kind::Pattern => PATTERN_BYTES_MAX,
    };
    if names.iter().any(|name| name.len() > bytes_max) {
        let words = format!("ERR the name of a channel must not exceed {bytes_max} bytes");
        return Some(Reply::Error(words));
    }
    let mut has_room = true;
    for name in names {
        has_room &= hub.subscribe(client, &session.mailbox, kind, name);
    }
    hub.be_ready().await;
    (!has_room).then(|| Reply::error("ERR all clients together have too many subscriptions"))
}

fn ping(session: &Session, mut arguments: Vec<String>) -> Reply {
    let text = arguments.pop();
    if session.version == Version::Resp2 && session.is_subscribed() {
        let text = text.unwrap_or_default();
        return Reply::List(vec![Reply::text("pong"), Reply::Text(text)]);
    }
    text.map_or(Reply::Status("PONG"), Reply::Text)
}

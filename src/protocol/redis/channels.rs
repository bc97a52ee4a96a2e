//! Commands on channels.

use super::pubsub::pattern::PATTERN_BYTES_MAX;
use super::pubsub::{Kind, STEPS_PER_CHANGE, SUBSCRIPTIONS_MAX, pace};
use super::resp::{Command, Reply};
use super::session::{Session, texts};

/// Maximum length of the name of a channel, in bytes.
pub const CHANNEL_BYTES_MAX: usize = 2_048;

/// Whether the command subscribes or unsubscribes.
pub fn is_command(name: &str) -> bool {
    kind(name).is_some()
}

/// What the command subscribes to, and whether it subscribes (true) or unsubscribes.
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
pub async fn run(session: &mut Session, name: &str, command: Command) -> Option<Reply> {
    let names = match texts(command) {
        Ok(names) => names,
        Err(refused) => return Some(refused),
    };
    let (kind, subscribes) = kind(name)?;
    let bytes_max = match kind {
        Kind::Channel => CHANNEL_BYTES_MAX,
        Kind::Pattern => PATTERN_BYTES_MAX,
    };
    if names.iter().any(|name| name.len() > bytes_max) {
        let words = format!("ERR the name of a channel must not exceed {bytes_max} bytes");
        return Some(Reply::Error(words));
    }
    let (hub, client) = (&session.api.hub, session.client.number);
    if !subscribes {
        // The events of commands before this one are sent before its reply.
        hub.catch_up().await;
        let named = names.len();
        let names = (!names.is_empty()).then_some(names);
        let left = hub.unsubscribe(client, &session.mailbox, kind, names);
        // A name to which the client is not subscribed has a reply, too.
        let changes = named.max(session.subscriptions().saturating_sub(left));
        pace(changes * STEPS_PER_CHANGE).await;
        session.set_subscriptions(left);
        return None;
    }
    if names.is_empty() {
        return Some(Reply::wrong_arguments(name));
    }
    if session.subscriptions() + names.len() > SUBSCRIPTIONS_MAX {
        let words = format!("ERR a client can have at most {SUBSCRIPTIONS_MAX} subscriptions");
        return Some(Reply::Error(words));
    }
    let steps = names.len() * STEPS_PER_CHANGE;
    let (mut has_room, mut count) = (true, session.subscriptions());
    for name in names {
        match hub.subscribe(client, &session.mailbox, kind, name) {
            Some(subscribed) => count = subscribed,
            None => has_room = false,
        }
    }
    hub.be_ready().await;
    session.set_subscriptions(count);
    pace(steps).await;
    (!has_room).then(|| Reply::error("ERR all clients together have too many subscriptions"))
}

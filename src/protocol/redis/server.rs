//! The commands of a Redis server that clients of qless send besides scripts, and the scripts themselves.

use bytes::Bytes;

use super::NO_MEMORY;
use super::channels::CHANNEL_BYTES_MAX;
use super::outage;
use super::pubsub::pace;
use super::pubsub::pattern::{PATTERN_BYTES_MAX, Pattern};
use super::qless::{self, CommandResult, Puts, keys};
use super::resp::{Reply, Version, repeated};
use super::scripts::{FOREIGN, SCRIPT_BYTES_MAX};
use super::session::Session;
use crate::engine::Error;
use crate::memory::{self, Reserved};
use crate::redis_clients::{ClientInfo, LIBRARY_BYTES_MAX, NAME_BYTES_MAX};

/// The version of Redis whose behavior clients can expect. Some refuse an old one.
const REDIS_VERSION: &str = "7.2.0";

const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

/// Maximum length of a message of `PUBLISH`, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 << 10;

/// Maximum number of clients in `CLIENT LIST`.
const LISTED_MAX: usize = 10_000;

/// The commands, except `QUIT`, `RESET`, and those of transactions and channels. Only these can be part of a
/// transaction.
const COMMANDS: [&str; 26] = [
    "AUTH",
    "CLIENT",
    "COMMAND",
    "CONFIG",
    "DBSIZE",
    "ECHO",
    "EVAL",
    "EVAL_RO",
    "EVALSHA",
    "EVALSHA_RO",
    "FLUSHALL",
    "FLUSHDB",
    "HELLO",
    "INFO",
    "KEYS",
    "PING",
    "PUBLISH",
    "PUBSUB",
    "SCRIPT",
    "SELECT",
    "SLOWLOG",
    "TIME",
    "UNWATCH",
    "WATCH",
    "ZCARD",
    "ZSCORE",
];

pub fn exists(name: &str) -> bool {
    COMMANDS.contains(&name)
}

/// The result of a command.
pub enum Outcome {
    Reply(Reply),
    /// Jobs that have not been passed to the engine yet, because more of them may follow.
    Puts(Puts),
}

impl From<Reply> for Outcome {
    fn from(reply: Reply) -> Outcome {
        Outcome::Reply(reply)
    }
}

/// Runs a command.
pub async fn run(session: &mut Session, name: &str, arguments: Vec<String>) -> Outcome {
    let outcome = match name {
        "EVALSHA" | "EVALSHA_RO" => eval_sha(session, arguments).await,
        "EVAL" | "EVAL_RO" => eval(session, arguments).await,
        _ => {
            let running = run_plain(session, name, arguments);
            match memory::of_request(running).await {
                (Ok((reply, steps)), reserved) => {
                    let steps = steps + reply.size();
                    let reply = fitted(session, reply, reserved).await;
                    // A transaction or a pipeline of them must not keep the thread. Not before the reply is reserved or
                    // dropped.
                    pace(steps).await;
                    Ok(reply.into())
                }
                (Err(error), _) => Err(error),
            }
        }
    };
    outcome.unwrap_or_else(|error| {
        let reply = outage(&error).unwrap_or_else(|| Reply::Error(format!("ERR {error}")));
        reply.into()
    })
}

/// The reply, with memory that stays reserved until it is written, like that of a response over HTTP. Uses `reserved`,
/// and reserves the rest. An error reply if the rest is not free.
async fn fitted(session: &mut Session, reply: Reply, reserved: Reserved) -> Reply {
    match reserved.for_response(reply.size() as u64).await {
        Ok(reserved) => {
            session.reserved.push(reserved);
            reply
        }
        Err(memory::Busy) => Reply::error(NO_MEMORY),
    }
}

/// Runs a command that is not a script. Returns its reply, and what it cost the thread besides.
async fn run_plain(
    session: &mut Session,
    name: &str,
    arguments: Vec<String>,
) -> Result<(Reply, usize), Error> {
    let mut steps = 0;
    let reply = match name {
        "SCRIPT" => script(session, &arguments).await?,
        "ZCARD" | "ZSCORE" | "KEYS" | "DBSIZE" => look_up(session, name, &arguments).await?,
        "FLUSHDB" | "FLUSHALL" => flush(session, name).await?,
        _ => without_database(session, name, &arguments, &mut steps),
    };
    Ok((reply, steps))
}

/// Runs a command that needs no database. Adds what it costs besides its reply to `steps`.
fn without_database(
    session: &mut Session,
    name: &str,
    arguments: &[String],
    steps: &mut usize,
) -> Reply {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match (name, words.as_slice()) {
        ("PING", []) => ping(session, None),
        ("PING", [text]) => ping(session, Some(text)),
        ("ECHO", [text]) => Reply::text(*text),
        ("TIME", []) => time(session),
        ("SELECT", ["0"]) | ("WATCH", [_, ..]) | ("UNWATCH", []) => Reply::OK,
        ("SELECT", [_]) => Reply::error("ERR DB index is out of range"),
        ("AUTH", [token] | [_, token]) => authenticate(session, token),
        ("HELLO", words) => hello(session, words),
        ("INFO", _) => Reply::Text(info(session)),
        ("COMMAND", [word, ..]) if word.eq_ignore_ascii_case("DOCS") => Reply::Map(Vec::new()),
        ("COMMAND", [word]) if word.eq_ignore_ascii_case("COUNT") => Reply::integer(COMMANDS.len()),
        ("COMMAND", _) => Reply::List(Vec::new()),
        ("CONFIG", [word, _, ..]) if word.eq_ignore_ascii_case("GET") => Reply::Map(Vec::new()),
        ("CONFIG", _) => Reply::error(
            "ERR the settings of this server cannot be changed over the Redis protocol",
        ),
        ("SLOWLOG", [word, ..]) => match word.to_ascii_uppercase().as_str() {
            "LEN" => Reply::Integer(0),
            "RESET" => Reply::OK,
            _ => Reply::List(Vec::new()),
        },
        ("CLIENT", [word, rest @ ..]) => client(session, &word.to_ascii_uppercase(), rest),
        ("PUBLISH", [channel, _]) if channel.len() > CHANNEL_BYTES_MAX => Reply::Error(format!(
            "ERR the name of a channel must not exceed {CHANNEL_BYTES_MAX} bytes"
        )),
        ("PUBLISH", [_, message]) if message.len() > MESSAGE_BYTES_MAX => Reply::Error(format!(
            "ERR a message must not exceed {MESSAGE_BYTES_MAX} bytes"
        )),
        ("PUBLISH", [channel, message]) => {
            Reply::integer(session.api.hub.publish(channel, message, steps))
        }
        ("PUBSUB", [word, rest @ ..]) => pubsub(session, &word.to_ascii_uppercase(), rest, steps),
        _ if exists(name) => Reply::wrong_arguments(name),
        _ => {
            let name = repeated(name).to_ascii_lowercase();
            Reply::Error(format!("ERR unknown command '{name}'"))
        }
    }
}

// ---- scripts ----

async fn eval_sha(session: &mut Session, mut arguments: Vec<String>) -> Result<Outcome, Error> {
    if arguments.len() < 2 {
        return Ok(Reply::wrong_arguments("evalsha").into());
    }
    let sha = arguments.remove(0);
    let api = &session.api;
    match api.scripts.dialect(&api.engine, &sha).await? {
        Some(dialect) => Ok(run_script(session, dialect, arguments).await),
        None => Ok(Reply::error(NO_SCRIPT).into()),
    }
}

async fn eval(session: &mut Session, mut arguments: Vec<String>) -> Result<Outcome, Error> {
    if arguments.len() < 2 {
        return Ok(Reply::wrong_arguments("eval").into());
    }
    let script = arguments.remove(0);
    match load(session, &script).await? {
        Some((_, dialect)) => Ok(run_script(session, dialect, arguments).await),
        None => Ok(Reply::error(FOREIGN).into()),
    }
}

/// Runs a command of qless-core. The first argument is the number of keys.
async fn run_script(
    session: &mut Session,
    dialect: qless::Dialect,
    mut arguments: Vec<String>,
) -> Outcome {
    match arguments.remove(0).parse::<usize>() {
        Ok(0) => {}
        Ok(_) => return Reply::script_error("No Keys should be provided").into(),
        Err(_) => return Reply::error("ERR value is not an integer or out of range").into(),
    }
    if let Some(command) = arguments.first() {
        session.client.runs(command);
    }
    session.api.hub.be_ready_soon().await;
    let running = qless::run(&session.api.engine, dialect, arguments);
    let (ran, reserved) = memory::of_request(running).await;
    match ran {
        CommandResult::Puts(puts) => Outcome::Puts(puts),
        CommandResult::Reply { reply, publishes } => {
            session.has_published |= publishes;
            fitted(session, reply, reserved).await.into()
        }
    }
}

/// Whether the command runs a script that puts a job, so that it can wait for the next commands.
pub fn is_put(name: &str, arguments: &[Bytes]) -> bool {
    name.starts_with("EVAL") && arguments.get(2).is_some_and(|command| command == "put")
}

async fn script(session: &mut Session, arguments: &[String]) -> Result<Reply, Error> {
    let Some((word, rest)) = arguments.split_first() else {
        return Ok(Reply::wrong_arguments("script"));
    };
    let api = &session.api;
    match (word.to_ascii_uppercase().as_str(), rest) {
        ("LOAD", [script]) => Ok(match load(session, script).await? {
            Some((sha, _)) => Reply::Text(sha),
            None => Reply::error(FOREIGN),
        }),
        ("EXISTS", shas) => {
            let found = api.scripts.exist(&api.engine, shas).await?;
            let found = found.into_iter().map(|it| Reply::Integer(it.into()));
            Ok(Reply::List(found.collect()))
        }
        ("FLUSH", _) => {
            api.scripts.flush(&api.engine).await?;
            Ok(Reply::OK)
        }
        _ => Ok(Reply::error("ERR unknown subcommand of SCRIPT")),
    }
}

async fn load(session: &Session, script: &str) -> Result<Option<(String, qless::Dialect)>, Error> {
    if script.len() > SCRIPT_BYTES_MAX {
        return Ok(None);
    }
    let api = &session.api;
    let loaded = api.scripts.load(&api.engine, script).await;
    // The script was searched.
    pace(script.len()).await;
    loaded
}

// ---- keys ----

/// Runs a command that reads keys: `ZCARD`, `ZSCORE`, `DBSIZE` or `KEYS`.
async fn look_up(session: &Session, name: &str, arguments: &[String]) -> Result<Reply, Error> {
    let engine = &session.api.engine;
    match (name, arguments) {
        ("ZCARD", [key]) => Ok(Reply::Integer(keys::cardinality(engine, key).await?)),
        ("ZSCORE", [key, id]) => Ok(match keys::score(engine, key, id).await? {
            Some(score) => Reply::Number(score),
            None => Reply::Null,
        }),
        ("DBSIZE", _) => Ok(Reply::integer(keys::count(engine).await?)),
        ("KEYS", _) => {
            let pattern = arguments.first().map_or("*", String::as_str);
            match Pattern::new(pattern) {
                Some(pattern) => Ok(keys::matching(engine, &pattern).await?),
                None => Ok(pattern_too_long()),
            }
        }
        _ => Ok(Reply::wrong_arguments(name)),
    }
}

async fn flush(session: &Session, name: &str) -> Result<Reply, Error> {
    if !session.api.allow_flush {
        let words = format!("ERR {name} is not enabled; start the server with --allow-flush");
        return Ok(Reply::Error(words));
    }
    session.api.engine.flush().await?;
    Ok(Reply::OK)
}

// ---- connections ----

fn ping(session: &Session, text: Option<&str>) -> Reply {
    // A client of RESP2 that is subscribed expects messages.
    if session.version == Version::Resp2 && session.is_subscribed() {
        let text = text.unwrap_or_default();
        return Reply::List(vec![Reply::text("pong"), Reply::text(text)]);
    }
    text.map_or(Reply::Status("PONG"), Reply::text)
}

fn authenticate(session: &mut Session, token: &str) -> Reply {
    match session.authenticate(token) {
        Ok(()) => Reply::OK,
        Err(refused) => refused,
    }
}

fn hello(session: &mut Session, words: &[&str]) -> Reply {
    let (version, mut rest) = match words.split_first() {
        None => (session.version, words),
        Some((&"2", rest)) => (Version::Resp2, rest),
        Some((&"3", rest)) => (Version::Resp3, rest),
        Some(_) => return Reply::error("NOPROTO unsupported protocol version"),
    };
    let mut name = None;
    while let [word, more @ ..] = rest {
        match (word.to_ascii_uppercase().as_str(), more) {
            ("AUTH", [_, token, more @ ..]) => {
                if let Err(refused) = session.authenticate(token) {
                    return refused;
                }
                rest = more;
            }
            ("SETNAME", [given, more @ ..]) => {
                name = Some(*given);
                rest = more;
            }
            _ => return Reply::error("ERR Syntax error in HELLO option"),
        }
    }
    if session.is_anonymous() {
        return Reply::error(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the \
             same time",
        );
    }
    if let Some(refused) = name.and_then(|name| set_name(session, name)) {
        return refused;
    }
    session.set_version(version);
    let number = match version {
        Version::Resp2 => 2,
        Version::Resp3 => 3,
    };
    let id = i64::try_from(session.client.number).unwrap_or_default();
    let entries = [
        ("server", Reply::text("redis")),
        ("version", Reply::text(REDIS_VERSION)),
        ("proto", Reply::Integer(number)),
        ("id", Reply::Integer(id)),
        ("mode", Reply::text("standalone")),
        ("role", Reply::text("master")),
        ("modules", Reply::List(Vec::new())),
    ];
    Reply::Map(entries.map(|(key, value)| (Reply::text(key), value)).into())
}

/// Names the client. Returns the error if the name is not valid.
fn set_name(session: &Session, name: &str) -> Option<Reply> {
    if name.len() > NAME_BYTES_MAX || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
        let words = "ERR Client names cannot contain spaces, newlines or special characters.";
        return Some(Reply::error(words));
    }
    session.client.set_name(name);
    None
}

fn client(session: &Session, word: &str, rest: &[&str]) -> Reply {
    let this = session.client.number;
    match (word, rest) {
        ("SETNAME", [name]) => set_name(session, name).unwrap_or(Reply::OK),
        ("GETNAME", []) => {
            let name = session.client.info().state.name;
            Some(name)
                .filter(|name| !name.is_empty())
                .map_or(Reply::Null, Reply::Text)
        }
        ("SETINFO", [what, value]) => set_info(session, what, value),
        ("ID", []) => Reply::Integer(i64::try_from(this).unwrap_or_default()),
        ("INFO", []) => Reply::Text(line_of(session.client.info())),
        ("LIST", _) => {
            let clients = session.api.clients.list(0, LISTED_MAX);
            Reply::Text(clients.into_iter().map(line_of).collect())
        }
        _ => Reply::error("ERR unknown subcommand of CLIENT"),
    }
}

/// A client in `CLIENT LIST`.
fn line_of(client: ClientInfo) -> String {
    let (number, address, state) = (client.number, client.address, client.state);
    let (age, idle) = (client.age.as_secs(), client.idle.as_secs());
    format!(
        "id={number} addr={address} name={} age={age} idle={idle} flags=N db=0 sub={} cmd={} lib-name={} lib-ver={}\n",
        state.name, state.subscriptions, state.command, state.library, state.library_version
    )
}

/// Stores the name or the version of the client's library.
fn set_info(session: &Session, what: &str, value: &str) -> Reply {
    let what = what.to_ascii_lowercase();
    if value.len() > LIBRARY_BYTES_MAX || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Reply::Error(format!(
            "ERR {what} cannot contain spaces, newlines or special characters, and has at most {LIBRARY_BYTES_MAX} bytes"
        ));
    }
    match what.as_str() {
        "lib-name" => session.client.set_library(value),
        "lib-ver" => session.client.set_library_version(value),
        _ => return Reply::error("ERR CLIENT SETINFO accepts only lib-name and lib-ver"),
    }
    Reply::OK
}

fn pubsub(session: &Session, word: &str, rest: &[&str], steps: &mut usize) -> Reply {
    let hub = &session.api.hub;
    let list = |channels: Vec<String>| {
        let channels = channels.into_iter().map(Reply::Text);
        Reply::List(channels.collect())
    };
    match (word, rest) {
        ("CHANNELS", []) => list(hub.channels(None, steps)),
        ("CHANNELS", [pattern]) => match Pattern::new(pattern) {
            Some(pattern) => list(hub.channels(Some(&pattern), steps)),
            None => pattern_too_long(),
        },
        ("NUMSUB", channels) => {
            let counts = channels.iter();
            let counts = counts.flat_map(|it| [Reply::text(*it), Reply::integer(hub.count_of(it))]);
            Reply::List(counts.collect())
        }
        ("NUMPAT", []) => Reply::integer(hub.count_patterns()),
        _ => Reply::error("ERR unknown subcommand of PUBSUB"),
    }
}

fn pattern_too_long() -> Reply {
    Reply::Error(format!(
        "ERR a pattern must not exceed {PATTERN_BYTES_MAX} bytes"
    ))
}

fn time(session: &Session) -> Reply {
    let now = session.api.engine.now(None).0;
    let parts = [now.div_euclid(1_000_000), now.rem_euclid(1_000_000)];
    Reply::List(parts.map(|part| Reply::Text(part.to_string())).into())
}

fn info(session: &Session) -> String {
    let (version, clients) = (env!("CARGO_PKG_VERSION"), session.api.clients.count());
    format!(
        "# Server\r\nredis_version:{REDIS_VERSION}\r\nserver_name:switchyard\r\nswitchyard_version:{version}\r\n\
         redis_mode:standalone\r\n\r\n# Clients\r\nconnected_clients:{clients}\r\n\r\n# Persistence\r\nloading:0\r\n\
         \r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
    )
}

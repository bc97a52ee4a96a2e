//! A client that reads from a Redis server: the commands that an import needs, over RESP2, and none that writes.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The longest text that is read, in bytes: the limit of a request to the qless API.
pub const TEXT_BYTES_MAX: usize = 16 << 20;

/// Maximum size of all texts of a reply together, in bytes. A text beyond it is discarded, like one that is too long.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// The elements and lines of a reply together, in bytes, without its texts.
const ELEMENTS_BYTES_MAX: usize = 64 << 20;

/// The most elements of a reply.
const ELEMENTS_MAX: usize = 1_000_000;

/// Lists around a reply; those of `SCAN` are two deep.
const DEPTH_MAX: usize = 8;

/// The longest line of a reply that is not a text.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// Elements of a list that are read at once.
pub const PAGE: usize = 200;

/// Keys that the server looks at for one reply to `SCAN`.
const SCANNED: &str = "1000";

/// How long to wait for a connection, and for each reply.
const REDIS_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    #[error(
        "\"{0}\" is not a Redis URL; expected redis://[[USER]:PASSWORD@]HOST[:PORT][/DATABASE]"
    )]
    Address(String),
    #[error(
        "rediss:// is not supported; connect through a tunnel, or replicate the server to one without TLS and import \
         from that"
    )]
    Tls,
    #[error("cannot reach the Redis server: {0}")]
    Io(#[from] std::io::Error),
    #[error("the Redis server does not respond")]
    Timeout,
    #[error("the Redis server answered {0}: {1}")]
    Refused(String, String),
    #[error("the Redis server sent an invalid reply")]
    Protocol,
}

type Result<T> = std::result::Result<T, RedisError>;

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Null,
    Text(Vec<u8>),
    /// A text that is longer than [`TEXT_BYTES_MAX`], or too long for its reply, and was discarded.
    TooLong,
    Int(i64),
    List(Vec<Reply>),
    /// An error; such as `WRONGTYPE …`.
    Error(String),
}

impl Reply {
    /// The text; `None` if it is missing, too long, or not UTF-8. NUL, which Postgres cannot store, is replaced.
    pub fn text(&self) -> Option<String> {
        match self {
            Reply::Text(bytes) => {
                let text = std::str::from_utf8(bytes).ok()?;
                Some(text.replace('\0', "\u{fffd}"))
            }
            _ => None,
        }
    }

    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Reply::Text(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The number, which may be written as text.
    pub fn number(&self) -> Option<f64> {
        match self {
            Reply::Int(number) => Some(*number as f64),
            Reply::Text(_) => self.text()?.trim().parse().ok(),
            _ => None,
        }
    }

    pub fn list(self) -> Vec<Reply> {
        match self {
            Reply::List(list) => list,
            _ => Vec::new(),
        }
    }
}

/// Where a Redis server is.
#[derive(Debug, PartialEq)]
struct Address {
    host: String,
    port: u16,
    user: String,
    password: String,
    database: u32,
}

impl Address {
    fn parse(url: &str) -> Result<Address> {
        if url.starts_with("rediss:") {
            return Err(RedisError::Tls);
        }
        let wrong = || RedisError::Address(crate::store::without_password(url));
        let rest = url.strip_prefix("redis://").ok_or_else(wrong)?;
        let (credentials, place) = rest.rsplit_once('@').unwrap_or(("", rest));
        let (place, database) = place.split_once('/').unwrap_or((place, ""));
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong())?)
            }
            _ => (place, 6379),
        };
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, password),
            None => ("", credentials),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(wrong());
        }
        Ok(Address {
            host: host.to_owned(),
            port,
            user: percent_decoded(user),
            password: percent_decoded(password),
            database: match database {
                "" => 0,
                number => number.parse().map_err(|_| wrong())?,
            },
        })
    }
}

/// A part of an address, in which `%40` means `@`.
fn percent_decoded(text: &str) -> String {
    let literal = text.replace('+', "%2B").replace('&', "%26");
    let key = format!("{}=", literal.replace('=', "%3D"));
    form_urlencoded::parse(key.as_bytes())
        .next()
        .map(|(key, _)| key.into_owned())
        .unwrap_or_default()
}

/// A connection.
pub struct Redis {
    stream: BufReader<TcpStream>,
    /// Bytes that the texts of the reply may still have.
    left: usize,
    /// The bytes of [`ELEMENTS_BYTES_MAX`] that are left for the current reply.
    elements_left: usize,
}

impl Redis {
    /// Connects, authenticates and selects the database.
    ///
    /// # Errors
    /// If the address is invalid, the server cannot be reached, or it is part of a cluster.
    pub async fn connect(url: &str) -> Result<Redis> {
        let address = Address::parse(url)?;
        let connecting = TcpStream::connect((address.host.as_str(), address.port));
        let stream = timeout(REDIS_TIMEOUT, connecting).await;
        let stream = stream.map_err(|_| RedisError::Timeout)??;
        stream.set_nodelay(true)?;
        let mut redis = Redis {
            stream: BufReader::new(stream),
            left: 0,
            elements_left: 0,
        };
        if !address.password.is_empty() {
            match address.user.as_str() {
                "" => redis.call(&["AUTH", &address.password]).await?,
                user => redis.call(&["AUTH", user, &address.password]).await?,
            };
        }
        if address.database > 0 {
            let number = address.database.to_string();
            redis.call(&["SELECT", &number]).await?;
        }
        let info = redis.call(&["INFO", "cluster"]).await?;
        if info
            .text()
            .is_some_and(|it| it.contains("cluster_enabled:1"))
        {
            let why = "it is a node of a Redis Cluster, which import does not support".to_owned();
            return Err(RedisError::Refused("INFO".to_owned(), why));
        }
        Ok(redis)
    }

    /// Runs a command.
    ///
    /// # Errors
    /// If it fails.
    pub async fn call(&mut self, command: &[&str]) -> Result<Reply> {
        self.send(&[command.to_vec()]).await?;
        match self.reply().await? {
            Reply::Error(message) => {
                let name = command.first().copied().unwrap_or_default();
                Err(RedisError::Refused(name.to_owned(), message))
            }
            reply => Ok(reply),
        }
    }

    /// Sends commands, whose replies are then read with [`Redis::reply`], in order.
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn send(&mut self, commands: &[Vec<&str>]) -> Result<()> {
        let mut bytes = Vec::new();
        for command in commands {
            bytes.extend_from_slice(format!("*{}\r\n", command.len()).as_bytes());
            for argument in command {
                bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
                bytes.extend_from_slice(argument.as_bytes());
                bytes.extend_from_slice(b"\r\n");
            }
        }
        let sent = timeout(REDIS_TIMEOUT, self.stream.get_mut().write_all(&bytes)).await;
        Ok(sent.map_err(|_| RedisError::Timeout)??)
    }

    /// Reads a reply.
    ///
    /// # Errors
    /// If there is none.
    pub async fn reply(&mut self) -> Result<Reply> {
        self.left = REPLY_BYTES_MAX;
        self.elements_left = ELEMENTS_BYTES_MAX;
        let reply = timeout(REDIS_TIMEOUT, Box::pin(self.read(0))).await;
        reply.map_err(|_| RedisError::Timeout)?
    }

    /// `depth` is the number of lists around the reply.
    async fn read(&mut self, depth: usize) -> Result<Reply> {
        let line = self.line().await?;
        let size = size_of::<Reply>() + line.len();
        let left = self.elements_left.checked_sub(size);
        self.elements_left = left.ok_or(RedisError::Protocol)?;
        let (kind, rest) = line.split_at_checked(1).ok_or(RedisError::Protocol)?;
        let length = || rest.parse::<i64>().map_err(|_| RedisError::Protocol);
        match kind {
            "+" => Ok(Reply::Text(rest.as_bytes().to_vec())),
            "-" => Ok(Reply::Error(rest.to_owned())),
            ":" => Ok(Reply::Int(length()?)),
            "$" => match usize::try_from(length()?) {
                Err(_) => Ok(Reply::Null),
                Ok(length) => self.bulk(length).await,
            },
            "*" => match usize::try_from(length()?) {
                Err(_) => Ok(Reply::Null),
                Ok(length) if length > ELEMENTS_MAX || depth >= DEPTH_MAX => {
                    Err(RedisError::Protocol)
                }
                Ok(length) => {
                    let mut list = Vec::with_capacity(length.min(PAGE));
                    for _ in 0..length {
                        list.push(Box::pin(self.read(depth + 1)).await?);
                    }
                    Ok(Reply::List(list))
                }
            },
            _ => Err(RedisError::Protocol),
        }
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let mut limited = (&mut self.stream).take(LINE_BYTES_MAX);
        limited.read_line(&mut line).await?;
        let end = line.strip_suffix("\r\n").ok_or(RedisError::Protocol)?.len();
        line.truncate(end);
        Ok(line)
    }

    async fn bulk(&mut self, length: usize) -> Result<Reply> {
        let mut text = Vec::new();
        let is_too_long = length > TEXT_BYTES_MAX.min(self.left);
        if !is_too_long {
            self.left -= length;
        }
        if is_too_long {
            let mut rest = (&mut self.stream).take(length as u64);
            tokio::io::copy_buf(&mut rest, &mut tokio::io::sink()).await?;
        } else {
            text = vec![0; length];
            self.stream.read_exact(&mut text).await?;
        }
        let mut end = [0; 2];
        self.stream.read_exact(&mut end).await?;
        match (&end, is_too_long) {
            (b"\r\n", true) => Ok(Reply::TooLong),
            (b"\r\n", false) => Ok(Reply::Text(text)),
            _ => Err(RedisError::Protocol),
        }
    }

    /// The number in the reply to a command.
    ///
    /// # Errors
    /// If it fails.
    pub async fn count(&mut self, command: &[&str]) -> Result<usize> {
        match self.call(command).await? {
            Reply::Int(count) => usize::try_from(count).map_err(|_| RedisError::Protocol),
            _ => Err(RedisError::Protocol),
        }
    }

    /// Some of all keys, and the cursor with which to continue; at the end `None`. Begins with the cursor `0`.
    ///
    /// # Errors
    /// If it fails.
    pub async fn scan(&mut self, cursor: &str) -> Result<(Vec<Reply>, Option<String>)> {
        let reply = self.call(&["SCAN", cursor, "COUNT", SCANNED]).await?;
        let mut reply = reply.list().into_iter();
        let next = reply.next().and_then(|cursor| cursor.text());
        let next = next.ok_or(RedisError::Protocol)?;
        let keys = reply.next().map(Reply::list).unwrap_or_default();
        Ok((keys, (next != "0").then_some(next)))
    }

    /// A page of the sorted set, from the index `start` on, with scores; with the highest score first if `reversed`.
    ///
    /// # Errors
    /// If it fails.
    pub async fn sorted_page(
        &mut self,
        key: &str,
        start: usize,
        reversed: bool,
    ) -> Result<Vec<(Reply, f64)>> {
        let name = if reversed { "ZREVRANGE" } else { "ZRANGE" };
        let (start, end) = (start.to_string(), (start + PAGE - 1).to_string());
        let reply = self.call(&[name, key, &start, &end, "WITHSCORES"]).await?;
        let replies = reply.list();
        if replies.len() > 2 * PAGE {
            return Err(RedisError::Protocol);
        }
        let mut replies = replies.into_iter();
        let mut page = Vec::new();
        while let (Some(member), Some(score)) = (replies.next(), replies.next()) {
            page.push((member, score.number().ok_or(RedisError::Protocol)?));
        }
        Ok(page)
    }

    /// The fields of a hash.
    ///
    /// # Errors
    /// If it fails.
    pub async fn hash(&mut self, key: &str) -> Result<Vec<(String, String)>> {
        let mut replies = self.call(&["HGETALL", key]).await?.list().into_iter();
        let mut fields = Vec::new();
        while let (Some(name), Some(value)) = (replies.next(), replies.next()) {
            if let (Some(name), Some(value)) = (name.text(), value.text()) {
                fields.push((name, value));
            }
        }
        Ok(fields)
    }

    /// The members of a set.
    ///
    /// # Errors
    /// If it fails.
    pub async fn set(&mut self, key: &str) -> Result<Vec<String>> {
        let members = self.call(&["SMEMBERS", key]).await?.list();
        Ok(members.iter().filter_map(Reply::text).collect())
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn an_address_has_a_host_and_optionally_a_port_credentials_and_a_database() {
        let parse = |url| Address::parse(url).ok();
        let address = |host: &str, port, user: &str, password: &str, database| {
            Some(Address {
                host: host.to_owned(),
                port,
                user: user.to_owned(),
                password: password.to_owned(),
                database,
            })
        };
        assert_eq!(parse("redis://h"), address("h", 6379, "", "", 0));
        assert_eq!(parse("redis://h:1/2"), address("h", 1, "", "", 2));
        assert_eq!(
            parse("redis://:p%40+q@[::1]:7"),
            address("::1", 7, "", "p@+q", 0)
        );
        assert_eq!(parse("redis://u:p@h/15"), address("h", 6379, "u", "p", 15));
        for wrong in [
            "redis://",
            "h:1",
            "redis://h:x",
            "redis://h/x",
            "rediss://h",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        let shown = Address::parse("redis://u:secret@h/x")
            .unwrap_err()
            .to_string();
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[tokio::test]
    async fn the_texts_of_a_reply_have_up_to_64_mib() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let text = "x".repeat(TEXT_BYTES_MAX);
        let server = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            for _ in 0..2 {
                stream.write_all(b"*6\r\n").await.unwrap();
                for text in [&text, &text, &text, &text, "x", ""] {
                    let text = format!("${}\r\n{text}\r\n", text.len());
                    stream.write_all(text.as_bytes()).await.unwrap();
                }
            }
            stream
        };
        let client = async {
            let stream = TcpStream::connect(address).await.unwrap();
            let mut redis = Redis {
                stream: BufReader::new(stream),
                left: 0,
                elements_left: 0,
            };
            // The limit applies to each reply.
            for _ in 0..2 {
                let texts = redis.reply().await.unwrap().list();
                let read: Vec<_> = texts.iter().map(|it| it.bytes().map(<[u8]>::len)).collect();
                let all = Some(TEXT_BYTES_MAX);
                assert_eq!(read, [all, all, all, all, None, Some(0)]);
            }
        };
        tokio::join!(server, client);
    }

    /// The other limits would let them occupy gigabytes.
    #[tokio::test]
    async fn lines_and_lists_count_toward_the_limit_of_a_reply() {
        let line = format!("+{}\r\n", "x".repeat(60_000));
        let list = "*1000\r\n".to_owned() + &"*0\r\n".repeat(1_000);
        for part in [line, list] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let server = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut sent = stream.write_all(b"*1000000\r\n").await;
                while sent.is_ok() {
                    sent = stream.write_all(part.as_bytes()).await;
                }
            };
            let client = async {
                let mut redis = Redis {
                    stream: BufReader::new(TcpStream::connect(address).await.unwrap()),
                    left: 0,
                    elements_left: 0,
                };
                assert!(matches!(redis.reply().await, Err(RedisError::Protocol)));
            };
            tokio::join!(server, client);
        }
    }
}

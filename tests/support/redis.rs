//! A client of the Redis protocol. Replies are JSON: an error is `{"error": …}`, a message of a channel `{"push":
//! […]}`.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use super::Server;

/// Scripts that the server recognizes: the current one of qless-core, and those whose messages do not name the job.
pub const CURRENT: &str = "local QlessAPI = {}";
pub const TERSE: &str = "local QlessAPI = {} error('Complete(): Job does not exist')";
pub const WORKERLESS: &str = "QlessAPI.put = function(now, queue, jid)";

/// The address of the listener, which the server has printed.
pub async fn address(server: &mut Server) -> String {
    while let Some(line) = server.banner.recv().await {
        let address = line.split_once("redis://");
        if let Some((_, address)) = address.or_else(|| line.split_once("rediss://")) {
            return address.split(' ').next().unwrap().to_owned();
        }
    }
    panic!("the server has no listener for the Redis protocol");
}

/// A server with this listener, on a new database.
pub async fn server(options: &[&str]) -> (Server, String) {
    let own = ["--redis-listen", "127.0.0.1:0"];
    let mut server = Server::with(&[&own, options].concat());
    let address = address(&mut server).await;
    (server, address)
}

pub struct Redis {
    stream: BufReader<TcpStream>,
    sha: String,
}

impl Redis {
    pub async fn connect(address: &str) -> Redis {
        let stream = TcpStream::connect(address).await.unwrap();
        Redis {
            stream: BufReader::new(stream),
            sha: String::new(),
        }
    }

    /// A client that has loaded the script.
    pub async fn with(address: &str, script: &str) -> Redis {
        let mut redis = Redis::connect(address).await;
        let sha = redis.call(&["SCRIPT", "LOAD", script]).await;
        redis.sha = sha.as_str().expect("a SHA-1").to_owned();
        redis
    }

    pub async fn send(&mut self, command: &[&str]) {
        let mut bytes = format!("*{}\r\n", command.len());
        for argument in command {
            bytes += &format!("${}\r\n{argument}\r\n", argument.len());
        }
        self.write(bytes.as_bytes()).await;
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        // The server may have closed the connection.
        drop(self.stream.get_mut().write_all(bytes).await);
    }

    /// The first byte of the next reply, which is not taken from it.
    pub async fn first_byte(&mut self) -> u8 {
        let bytes = self.stream.fill_buf().await.unwrap();
        *bytes.first().expect("a reply")
    }

    pub async fn call(&mut self, command: &[&str]) -> Value {
        self.send(command).await;
        self.reply().await
    }

    /// Runs a command of qless-core at this time.
    pub async fn at(&mut self, now: i64, command: &[&str]) -> Value {
        let (sha, now) = (self.sha.clone(), now.to_string());
        let [name, arguments @ ..] = command else {
            panic!("no command");
        };
        self.call(&[&["EVALSHA", &sha, "0", name, &now], arguments].concat())
            .await
    }

    /// Like [`Redis::at`]; the reply is JSON text.
    pub async fn json(&mut self, now: i64, command: &[&str]) -> Value {
        let reply = self.at(now, command).await;
        let text = reply.as_str().unwrap_or_else(|| panic!("{reply}"));
        serde_json::from_str(text).unwrap()
    }

    /// The next reply or message.
    pub async fn reply(&mut self) -> Value {
        self.try_reply().await.expect("a reply")
    }

    /// The next reply or message; `None` if the server has closed the connection.
    pub async fn try_reply(&mut self) -> Option<Value> {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        let (kind, text) = line.split_at(1);
        Some(match kind {
            "+" => json!(text),
            "-" => json!({ "error": text }),
            ":" => json!(text.parse::<i64>().unwrap()),
            "," => json!(text.parse::<f64>().unwrap()),
            "_" => Value::Null,
            "$" if text == "-1" => Value::Null,
            "$" => {
                let mut bytes = vec![0; text.parse::<usize>().unwrap() + 2];
                self.stream.read_exact(&mut bytes).await.ok()?;
                bytes.truncate(bytes.len() - 2);
                json!(String::from_utf8(bytes).unwrap())
            }
            "*" | ">" | "%" => {
                let count: usize = text.parse().unwrap();
                let count = if kind == "%" { 2 * count } else { count };
                let mut items = Vec::new();
                for _ in 0..count {
                    items.push(Box::pin(self.try_reply()).await?);
                }
                match kind {
                    ">" => json!({ "push": items }),
                    _ => Value::Array(items),
                }
            }
            _ => panic!("{line:?}"),
        })
    }
}

//! As little of an HTTP/1.1 client as the load needs, so that the load costs little itself.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Result;

/// A connection that is kept alive.
pub struct Connection {
    stream: TcpStream,
    host: String,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Connection {
    pub async fn open(address: &str) -> Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            host: address.to_owned(),
            request: Vec::with_capacity(64 * 1024),
            answer: Vec::with_capacity(64 * 1024),
        })
    }

    /// The body of the answer, which must be a success.
    pub async fn get(&mut self, path: &str) -> Result<&str> {
        self.request.clear();
        let head = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.host);
        self.request.extend_from_slice(head.as_bytes());
        self.exchange().await
    }

    /// The body of the answer, which must be a success.
    pub async fn post(&mut self, path: &str, body: &str) -> Result<&str> {
        self.request.clear();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        self.request.extend_from_slice(head.as_bytes());
        self.request.extend_from_slice(body.as_bytes());
        self.exchange().await
    }

    async fn exchange(&mut self) -> Result<&str> {
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        let head_end = loop {
            self.read().await?;
            if let Some(end) = find(&self.answer, b"\r\n\r\n") {
                break end + 4;
            }
        };
        let head = std::str::from_utf8(self.answer.get(..head_end).unwrap_or_default())?;
        let length = content_length(head).ok_or_else(|| format!("no length: {head}"))?;
        let is_success = head.starts_with("HTTP/1.1 200 ");
        while self.answer.len() < head_end + length {
            self.read().await?;
        }
        let body = std::str::from_utf8(self.answer.get(head_end..).unwrap_or_default())?;
        if !is_success || body.len() != length {
            let text = String::from_utf8_lossy(&self.answer);
            return Err(format!("an unexpected answer: {text}").into());
        }
        Ok(body)
    }

    async fn read(&mut self) -> Result<()> {
        match self.stream.read_buf(&mut self.answer).await? {
            0 => Err("the server hung up".into()),
            _ => Ok(()),
        }
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

fn content_length(head: &str) -> Option<usize> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
}

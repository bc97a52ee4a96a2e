//! A minimal HTTP/1.1 client, so that the load itself costs little.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::Result;

/// A connection that is kept alive.
pub struct Connection {
    stream: TcpStream,
    host: String,
    request: Vec<u8>,
    response: Vec<u8>,
}

impl Connection {
    pub async fn open(address: &str) -> Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            host: address.to_owned(),
            request: Vec::with_capacity(64 * 1024),
            response: Vec::with_capacity(64 * 1024),
        })
    }

    /// Sends a GET request. Returns the body of the response, whose status must be 200.
    pub async fn get(&mut self, path: &str) -> Result<&str> {
        self.exchange("GET", path, "", 200).await
    }

    /// Sends a POST request. Returns the body of the response, whose status must be 200.
    pub async fn post(&mut self, path: &str, body: &str) -> Result<&str> {
        self.exchange("POST", path, body, 200).await
    }

    /// Sends a request. Returns the body of the response, which must have the expected status.
    pub async fn exchange(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
        status: u16,
    ) -> Result<&str> {
        self.send(method, path, body).await?;
        match self.receive().await? {
            (got, response) if got == status => Ok(response),
            (got, response) => Err(format!("unexpected response: {got} {response}").into()),
        }
    }

    /// Sends a request without reading the response.
    pub async fn send(&mut self, method: &str, path: &str, body: &str) -> Result<()> {
        self.request.clear();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.host);
        self.request.extend_from_slice(head.as_bytes());
        if !body.is_empty() {
            let head = format!(
                "content-type: application/json\r\ncontent-length: {}\r\n",
                body.len()
            );
            self.request.extend_from_slice(head.as_bytes());
        }
        self.request.extend_from_slice(b"\r\n");
        self.request.extend_from_slice(body.as_bytes());
        self.stream.write_all(&self.request).await?;
        Ok(())
    }

    /// Reads the response to the last request. Returns its status and body.
    pub async fn receive(&mut self) -> Result<(u16, &str)> {
        self.response.clear();
        let head_end = loop {
            self.read().await?;
            if let Some(end) = find(&self.response, b"\r\n\r\n") {
                break end + 4;
            }
        };
        let head = std::str::from_utf8(self.response.get(..head_end).unwrap_or_default())?;
        let status = head.split(' ').nth(1).ok_or("no status")?.parse()?;
        let length = match status {
            // Such a response has neither a body nor a length.
            204 => 0,
            // A page. The chunks are returned undecoded, because no caller parses them.
            _ if is_chunked(head) => {
                while !self.response.ends_with(b"\r\n0\r\n\r\n") {
                    self.read().await?;
                }
                self.response.len() - head_end
            }
            _ => content_length(head).ok_or_else(|| format!("no length: {head}"))?,
        };
        while self.response.len() < head_end + length {
            self.read().await?;
        }
        let body = std::str::from_utf8(self.response.get(head_end..).unwrap_or_default())?;
        if body.len() != length {
            return Err(format!("the response is longer than its content-length: {body}").into());
        }
        Ok((status, body))
    }

    async fn read(&mut self) -> Result<()> {
        match self.stream.read_buf(&mut self.response).await? {
            0 => Err("the server closed the connection".into()),
            _ => Ok(()),
        }
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

fn is_chunked(head: &str) -> bool {
    head.lines()
        .any(|line| line.eq_ignore_ascii_case("transfer-encoding: chunked"))
}

fn content_length(head: &str) -> Option<usize> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok())
}

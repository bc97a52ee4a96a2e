//! Raw HTTP, for requests that normal clients do not send, such as paths with dots or incomplete requests.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::Server;

/// A connection on which the test writes every byte.
#[derive(Debug)]
pub struct Connection<S = TcpStream>(pub S);

impl Connection {
    pub async fn to(server: &Server) -> Connection {
        Connection(
            TcpStream::connect(&server.address)
                .await
                .expect("the server listens"),
        )
    }

    /// A connection from this local address.
    pub async fn from_address(server: &Server, address: [u8; 4]) -> Connection {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket
            .bind((address, 0).into())
            .expect("an address of this machine");
        let to = server.address.parse().expect("an address");
        Connection(socket.connect(to).await.expect("the server listens"))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub async fn write(&mut self, text: impl AsRef<[u8]>) {
        self.try_write(text).await.expect("the server reads");
    }

    pub async fn try_write(&mut self, text: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.0.write_all(text.as_ref()).await?;
        // With TLS, the end of a long text may still be in a buffer.
        self.0.flush().await
    }

    /// Reads up to and including `end`.
    pub async fn read_until(&mut self, end: &str) -> String {
        let mut read = Vec::new();
        while !read.ends_with(end.as_bytes()) {
            match self.0.read_u8().await {
                Ok(byte) => read.push(byte),
                Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&read)),
            }
        }
        String::from_utf8(read).expect("text")
    }

    /// Reads until the server closes the connection.
    pub async fn read_to_end(&mut self) -> String {
        let mut read = Vec::new();
        // The response counts even if the connection is reset after it.
        self.0.read_to_end(&mut read).await.ok();
        String::from_utf8(read).expect("text")
    }
}

/// Sends a form, as a browser does, from this local address with these header lines. Returns the response.
pub async fn ask(server: &Server, from: [u8; 4], line: &str, lines: &str, form: &str) -> String {
    let mut connection = Connection::from_address(server, from).await;
    let length = form.len();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: text/html\r\n{lines}\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{form}"
    );
    connection.write(head).await;
    connection.read_to_end().await
}

/// Sends a request. Returns status and body of the response.
pub async fn request(server: &Server, method: &str, path: &str, body: &[u8]) -> (u16, String) {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    exchange(server, &[head.as_bytes(), body].concat()).await
}

/// Sends these bytes, which must include `connection: close`. Returns status and body of the response.
pub async fn exchange(server: &Server, request: &[u8]) -> (u16, String) {
    let mut connection = Connection::to(server).await;
    connection.write(request).await;
    let response = connection.read_to_end().await;
    let (head, body) = response.split_once("\r\n\r\n").expect("an answer");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.expect("a status"), body.to_owned())
}

//! HTTP by hand, for what an orderly client would not send: paths with dots, halves of requests.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::Server;

/// A connection on which every byte is the test's own.
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

    /// A connection from this address of the machine.
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

    /// Reads up to and with `end`.
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
        // A connection that is reset after the answer has been read all the same.
        self.0.read_to_end(&mut read).await.ok();
        String::from_utf8(read).expect("text")
    }
}

/// The status and the body of the answer to one request.
pub async fn request(server: &Server, method: &str, path: &str, body: &[u8]) -> (u16, String) {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    exchange(server, &[head.as_bytes(), body].concat()).await
}

/// The status and the body of the answer to these bytes, which ask the server to close the connection.
pub async fn exchange(server: &Server, request: &[u8]) -> (u16, String) {
    let mut connection = Connection::to(server).await;
    connection.write(request).await;
    let answer = connection.read_to_end().await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.expect("a status"), body.to_owned())
}

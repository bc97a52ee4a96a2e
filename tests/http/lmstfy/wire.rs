//! HTTP details: transfer encodings of bodies, and errors that clients can read.

use tokio::io::AsyncWriteExt;

use super::{client, start};
use crate::support::Server;
use crate::support::lmstfy::{Reply, send_whole_body};
use crate::support::raw::Connection;

/// Writes these pieces one after the other, and reads the response.
async fn exchange(server: &Server, pieces: &[&[u8]]) -> Reply {
    let mut connection = Connection::to(server).await;
    for piece in pieces {
        connection.write(piece).await;
    }
    let response =
        tokio::time::timeout(std::time::Duration::from_secs(30), connection.read_to_end());
    let asked = String::from_utf8_lossy(pieces[0]).into_owned();
    Reply::parse(asked, &response.await.expect("an answer"))
}

/// If a server responds and closes the connection before it has read the whole body, the connection is reset, and the
/// client does not see the response.
#[tokio::test]
async fn a_client_that_sends_too_much_can_read_the_error() {
    let server = start();
    let lmstfy = client(&server);
    let text = |length: usize| vec![b'x'; length];
    let array = |length: usize| [b"[\"", &*text(length), b"\"]"].concat();
    for _ in 0..5 {
        for length in [65536, 100_000, 1_000_000, 4_000_000] {
            for (path, body) in [
                ("/api/ns/q", text(length)),
                ("/api/ns/q/job/x", text(length)),
                ("/api/ns/q/bulk", array(length)),
            ] {
                let reply = send_whole_body(&server, "PUT", path, &body).await;
                reply.assert_rejected(413, "body too large");
            }
        }
    }
    assert_eq!(lmstfy.size("q").await, 0);
}

/// The same for errors that do not concern the body.
#[tokio::test]
async fn the_error_of_a_rejected_large_request_can_be_read() {
    let server = start();
    let body = vec![b'x'; 1_000_000];
    for _ in 0..5 {
        for (method, path, status) in [
            ("PUT", "/api/ns/q?ttl=x", 400),
            ("PUT", "/api/ns/q.q", 400),
            ("PUT", "/api/ns/q/bulk?tries=0", 400),
            ("PUT", "/api/ns/q/unknown", 404),
            ("PUT", "/api/v0/q", 404),
            ("GET", "/api/ns/q", 404),
        ] {
            let reply = send_whole_body(&server, method, path, &body).await;
            assert_eq!(reply.status, status, "{reply:?}");
        }
    }
}

#[tokio::test]
async fn the_error_of_a_large_request_without_a_token_can_be_read() {
    let server = Server::with(&[]);
    for _ in 0..5 {
        for path in ["/api/ns/q", "/api/ns/q/bulk", "/api/ns/q/job/x?token=x"] {
            let reply = send_whole_body(&server, "PUT", path, &[b'x'; 1_000_000]).await;
            assert_eq!(reply.status, 401, "{reply:?}");
        }
    }
}

/// A connection can be reused after an error.
#[tokio::test]
async fn a_connection_can_be_reused_after_an_error() {
    let server = start();
    let too_much = vec![b'x'; 65536];
    let first = b"PUT /api/ns/q HTTP/1.1\r\nhost: localhost\r\ncontent-length: 65536\r\n\r\n";
    let second =
        b"PUT /api/ns/q HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 1\r\n\r\nx";
    let mut connection = Connection::to(&server).await;
    connection.write(first).await;
    connection.write(&too_much).await;
    let refusal = connection.read_until("}").await;
    assert!(refusal.starts_with("HTTP/1.1 413 "), "{refusal}");
    connection.write(second).await;
    let response = connection.read_to_end().await;
    assert!(response.starts_with("HTTP/1.1 201 "), "{response}");
}

/// For an empty job, the PHP client sends neither Content-Length nor Transfer-Encoding.
#[tokio::test]
async fn a_missing_body_is_empty() {
    let server = start();
    let lmstfy = client(&server);
    let head = b"PUT /api/ns/q HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let id = exchange(&server, &[head]).await.published();
    let job = lmstfy.take("q").await;
    assert_eq!((job.id, job.data), (id, Vec::new()));
    let reply = lmstfy.put("/q", "").await;
    reply.published();
    let reply = lmstfy.get("/q/peek").await.json(200);
    assert_eq!(reply["data"], "");
}

#[tokio::test]
async fn a_body_can_be_chunked() {
    let server = start();
    let lmstfy = client(&server);
    let head = b"PUT /api/ns/q HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let id = exchange(
        &server,
        &[head, b"5\r\nhello\r\n", b"6\r\n, neo\0\r\n", b"0\r\n\r\n"],
    )
    .await;
    let job = lmstfy.take("q").await;
    assert_eq!(
        (job.id, job.data),
        (id.published(), b"hello, neo\0".to_vec())
    );
    // The length is known only at the end.
    let chunk = |length: usize| {
        [
            format!("{length:x}\r\n"),
            "x".repeat(length),
            "\r\n".to_owned(),
        ]
        .concat()
    };
    let (most, less) = (chunk(0x4000), chunk(0x3fff));
    let (most, less) = (most.as_bytes(), less.as_bytes());
    let reply = exchange(&server, &[head, most, most, most, most, b"0\r\n\r\n"]).await;
    reply.assert_rejected(413, "body too large");
    let reply = exchange(&server, &[head, most, most, most, less, b"0\r\n\r\n"]).await;
    reply.published();
    assert_eq!(lmstfy.take("q").await.data.len(), 65535);
}

/// curl sends `Expect: 100-continue` with larger bodies.
#[tokio::test]
async fn expect_100_continue_gets_an_interim_response() {
    let server = start();
    let lmstfy = client(&server);
    let mut connection = Connection::to(&server).await;
    let head = "PUT /api/ns/q HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n";
    connection.write(head).await;
    let interim = connection.read_until("\r\n\r\n").await;
    assert!(interim.starts_with("HTTP/1.1 100 "), "{interim}");
    connection.write("hello").await;
    let response = connection.read_to_end().await;
    let id = Reply::parse(head.to_owned(), &response).published();
    assert_eq!(lmstfy.take("q").await.id, id);
}

/// An incomplete request publishes nothing.
#[tokio::test]
async fn an_incomplete_body_publishes_nothing() {
    let server = start();
    let lmstfy = client(&server);
    let old = lmstfy.publish("q", "old").await;
    for path in [
        "/api/ns/q",
        "/api/ns/q/bulk",
        &*format!("/api/ns/q/job/{old}"),
    ] {
        let mut connection = Connection::to(&server).await;
        let head =
            format!("PUT {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n[1, 2");
        connection.write(head).await;
        connection.0.shutdown().await.unwrap();
        // The server closes the connection when it has processed the end of the request.
        connection.read_to_end().await;
    }
    assert_eq!(lmstfy.drain("q").await, [old]);
}

/// Several requests on one connection, as clients with keep-alive send them.
#[tokio::test]
async fn a_connection_can_have_several_requests() {
    let server = start();
    let lmstfy = client(&server);
    let mut connection = Connection::to(&server).await;
    for round in 0..20 {
        let body = round.to_string();
        let head = format!(
            "PUT /api/ns/q HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        connection.write(head).await;
        let response = connection.read_until("}").await;
        let id = Reply::parse(String::new(), &response).published();
        connection
            .write("GET /api/ns/q HTTP/1.1\r\nhost: localhost\r\n\r\n")
            .await;
        let response = connection.read_until("}").await;
        let job = Reply::parse(String::new(), &response)
            .consumed("ns")
            .expect("a job");
        assert_eq!((&job.id, job.text()), (&id, body.as_str()));
        let ack = format!("DELETE /api/ns/q/job/{id} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        connection.write(ack).await;
        let response = connection.read_until("\r\n\r\n").await;
        Reply::parse(String::new(), &response).nothing();
    }
    assert_eq!(lmstfy.size("q").await, 0);
}

//! Limits of the dashboard: sizes of forms, and what lists show of a job.

use reqwest::StatusCode;
use serde_json::json;

use crate::support::Server;
use crate::support::jobq::Jobq;
use crate::support::raw::Connection;

const FORM: &str = "application/x-www-form-urlencoded";

/// The beginning of a form. Its last field is long.
const FIELDS: &str = "queue=q&id=j&data=";

/// The status of the response to a form of this size, which is sent completely.
async fn whole(server: &Server, path: &str, bytes: usize) -> StatusCode {
    let form = format!("{FIELDS}{}", "y".repeat(bytes - FIELDS.len()));
    let request = server.http.post(format!("http://{}{path}", server.address));
    let request = request.header("content-type", FORM);
    let request = request.header("sec-fetch-site", "same-origin");
    request.body(form).send().await.unwrap().status()
}

/// The status line of the response to a form of this size, of which at most 128 KiB are sent.
async fn begun(server: &Server, path: &str, bytes: usize) -> String {
    let mut connection = Connection::to(server).await;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nsec-fetch-site: same-origin\r\n\
         content-type: {FORM}\r\ncontent-length: {bytes}\r\n\r\n"
    );
    connection.write(head).await;
    connection.write(FIELDS).await;
    let sent = bytes.min(128 << 10) - FIELDS.len();
    connection.write(vec![b'x'; sent]).await;
    connection.read_until("\r\n").await
}

#[tokio::test]
async fn forms_have_at_most_64_kib_and_with_a_payload_8_mib() {
    let server = Server::with(&[]);
    for (path, limit) in [
        ("/ui/namespaces", 64 << 10),
        ("/ui/put", 8 << 20),
        ("/ui/edit", 8 << 20),
    ] {
        for bytes in [limit - 1, limit] {
            let status = whole(&server, path, bytes).await;
            assert_ne!(status, 413, "{path}: {bytes} bytes");
        }
        let line = begun(&server, path, limit + 1).await;
        assert!(line.starts_with("HTTP/1.1 413 "), "{path}: {line}");
    }
}

/// The page that answers a form.
async fn answer(server: &Server, path: &str, form: &[(&str, &str)]) -> String {
    let request = server.http.post(format!("http://{}{path}", server.address));
    let request = request.header("sec-fetch-site", "same-origin").form(form);
    request.send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn a_text_in_a_form_of_jobq_is_limited_like_a_jobq_request() {
    let server = Server::with(&["--jobq-body-max", "200"]);
    let jobq = Jobq::new(&server);
    jobq.create("q").await;
    jobq.put("q", &json!(1)).await;
    let (queue, job) = ("/ui/jobq/q", "/ui/jobq/q/job/1");
    for (bytes, fits) in [(199, true), (200, true), (201, false)] {
        let text = format!("\"{}\"", "x".repeat(bytes - 2));
        let text = text.as_str();
        for (path, form, field) in [
            (queue, &[("payload", text), ("state", "")][..], "payload"),
            (queue, &[("payload", "1"), ("state", text)], "state"),
            (
                job,
                &[("do", "state"), ("old", text), ("new", "1")],
                "expected state",
            ),
            (
                job,
                &[("do", "state"), ("old", "null"), ("new", text)],
                "new state",
            ),
            (job, &[("do", "event"), ("event", text)], "event"),
        ] {
            let page = answer(&server, path, form).await;
            let why = format!("The {field} must not exceed 200 bytes.");
            assert_eq!(page.contains(&why), !fits, "{field} of {bytes} bytes");
        }
    }
    // Two payloads and two states of each size that fits, and the first job.
    assert_eq!(jobq.all("q").await.len(), 5);
}

#[tokio::test]
async fn token_forms_have_at_most_16_kib() {
    let server = Server::with(&[]);
    for (bytes, status) in [(16_383, 400), (16_384, 400), (16_385, 413)] {
        let answer = whole(&server, "/token/ns", bytes).await;
        assert_eq!(answer, status, "{bytes} bytes");
    }
}

#[tokio::test]
async fn a_list_shows_at_most_20_tags_per_job() {
    let server = Server::with(&[]);
    for (count, shown) in [(19, 19), (20, 20), (21, 20)] {
        let tags: Vec<String> = (0..count).map(|n| format!("t{n}")).collect();
        let id = format!("with-{count}");
        let job = json!({"id": id, "meta": 1, "tags": tags});
        server.client().add("work", job).await;
        let url = format!("http://{}/ui/jobs?q={id}+api:qless", server.address);
        let answer = server.http.get(url).send().await.unwrap();
        let page = answer.text().await.unwrap();
        assert_eq!(page.matches("href=\"/ui/tags/t").count(), shown, "{count}");
    }
}

/// Postgres cannot store or search text with NUL.
#[tokio::test]
async fn a_form_with_a_nul_is_refused() {
    let server = Server::with(&[]);
    for (path, form) in [
        ("/ui/fn/set_option", "option=a%00b&value=1&back=/ui"),
        ("/ui/fn/forget_search", "name=a%00b&back=/ui"),
        ("/ui/fn/set_option", "option=a\0b&value=1&back=/ui"),
    ] {
        let request = server.http.post(format!("http://{}{path}", server.address));
        let request = request.header("content-type", FORM);
        let request = request.header("sec-fetch-site", "same-origin").body(form);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 400, "{path}");
        let page = response.text().await.unwrap();
        assert!(page.contains("contains a NUL character"), "{page}");
    }
}

#[tokio::test]
async fn pages_and_server_functions_read_200000_bytes_of_a_payload() {
    let server = Server::with(&[]);
    for (bytes, shown) in [(199_999, 199_999), (200_000, 200_000), (200_001, 200_000)] {
        let (id, meta) = (format!("of-{bytes}"), "m".repeat(bytes - 2));
        let job = json!({"id": id, "meta": meta});
        server.client().add("work", job).await;
        let url = format!("http://{}/ui/fn/job", server.address);
        let request = server.http.post(url).header("content-type", FORM);
        let request = request.header("accept", "application/json");
        let request = request.header("sec-fetch-site", "same-origin");
        let response = request.body(format!("id={id}")).send().await.unwrap();
        let job: serde_json::Value = response.json().await.unwrap();
        assert_eq!(job["body"].as_str().unwrap().len(), shown, "{bytes}");
        assert_eq!(job["bytes"], bytes);
        let url = format!("http://{}/ui/jobs/{id}", server.address);
        let page = server.http.get(url).send().await.unwrap();
        let page = page.text().await.unwrap();
        let note = format!("Showing the first {shown} of {bytes} bytes.");
        assert_eq!(page.contains(&note), shown < bytes, "{bytes}");
    }
}

#[tokio::test]
async fn a_payload_of_up_to_1_mib_is_copied_into_a_form() {
    let server = Server::with(&[]);
    for (bytes, is_copied) in [
        ((1 << 20) - 1, true),
        (1 << 20, true),
        ((1 << 20) + 1, false),
    ] {
        let meta = "m".repeat(bytes - 2);
        let id = format!("of-{bytes}");
        server
            .client()
            .add("work", json!({"id": id, "meta": meta}))
            .await;
        let url = format!("http://{}/ui/put?like={id}", server.address);
        let page = server.http.get(url).send().await.unwrap();
        let page = page.text().await.unwrap();
        assert_eq!(page.contains(&meta), is_copied, "{bytes} bytes");
        let says_why = page.contains("was not copied, because it is larger than 1 MiB");
        assert_eq!(says_why, !is_copied, "{bytes} bytes");
    }
}

#[tokio::test]
async fn a_rejected_form_shows_1_mib_of_its_text() {
    let server = Server::with(&[]);
    let job = json!({"id": "a", "meta": 1});
    server.client().add("work", job).await;
    for (path, field) in [("/ui/put", "queue=q"), ("/ui/edit", "id=a")] {
        // The other field has one byte.
        for (bytes, shown) in [
            ((1 << 20) - 2, (1 << 20) - 2),
            ((1 << 20) - 1, (1 << 20) - 1),
            (1 << 20, (1 << 20) - 1),
            (2 << 20, (1 << 20) - 1),
        ] {
            let form = format!("{field}&data={}", "%3C".repeat(bytes));
            let url = format!("http://{}{path}", server.address);
            let request = server.http.post(url).header("content-type", FORM);
            let request = request.header("sec-fetch-site", "same-origin").body(form);
            let page = request.send().await.unwrap().text().await.unwrap();
            assert_eq!(page.matches("&lt;").count(), shown, "{path}: {bytes} bytes");
            assert!(page.contains("role=\"alert\""), "{path}: {bytes} bytes");
            let says_so = page.contains("The form shows only the first 1 MiB");
            assert_eq!(says_so, shown < bytes, "{path}: {bytes} bytes");
        }
    }
}

#[tokio::test]
async fn the_page_of_the_options_shows_200_of_each_kind_and_200_characters_of_a_value() {
    let server = Server::with(&[]);
    let client = server.by("w");
    let long = "&".repeat(4_000);
    for n in 0..201 {
        for name in [format!("own-{n:03}"), format!("queue-{n:03}-heartbeat")] {
            let value = match name.starts_with("own") {
                true => json!(long),
                false => json!(n),
            };
            client.set(&name, value).await.ok();
        }
    }
    let url = format!("http://{}/ui/config", server.address);
    let page = server.http.get(url).header("accept", "text/html");
    let page = page.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Showing 200 of 201 options."), "{page}");
    assert!(page.contains("own-000") && !page.contains("own-200"));
    assert!(page.len() < 2 << 20, "{} bytes", page.len());
}

/// The router of the pages compares the name of each parameter with all before it.
#[tokio::test]
async fn an_address_has_a_limited_number_of_parameters() {
    let server = Server::with(&[]);
    for (path, max, status) in [
        ("/ui", 1_100, 414),
        ("/queues", 10_100, 400),
        ("/v2/queues/q/jobs", 100, 400),
        ("/api/v0/queue", 100, 400),
        ("/token/default", 100, 400),
    ] {
        for (count, fits) in [(max, true), (max + 1, false)] {
            let parameters = vec!["a="; count].join("&");
            let url = format!("http://{}{path}?{parameters}", server.address);
            let found = server.http.get(url).send().await.unwrap().status();
            assert_eq!(found != status, fits, "{path}, {count}: {found}");
        }
    }
}

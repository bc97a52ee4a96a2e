//! Alerts: what a webhook receives, when, and how often.

use hmac::{Hmac, KeyInit, Mac};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::{ADMIN, ADMIN_KEY, Browser, OPERATOR_KEY, with_keys};
use crate::support::Server;
use crate::support::eventually;
use crate::support::pair::Pair;

const SECRET: &str = "the-secret-that-signs";

const ON: [&str; 2] = ["--alert-secret", SECRET];

/// A receiver of alerts.
struct Receiver {
    address: String,
    received: UnboundedReceiver<(String, Vec<u8>)>,
}

impl Receiver {
    /// Responds with these heads, and with the last one from then on.
    async fn start(heads: &'static [&'static str]) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, received) = unbounded_channel();
        tokio::spawn(async move {
            for n in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read(&mut stream).await;
                let head = heads.get(n).or(heads.last()).unwrap();
                let response = format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n");
                stream.write_all(response.as_bytes()).await.unwrap();
                drop(sender.send(request));
            }
        });
        Receiver { address, received }
    }

    /// The address of the webhook, whose path contains a secret.
    fn url(&self) -> String {
        format!("http://{}/concealed-path?token=concealed", self.address)
    }

    /// The next body, whose signature must be valid.
    async fn next(&mut self) -> Value {
        let request = self.received.recv().await.unwrap();
        Receiver::body(request)
    }

    /// The body of a request, whose signature must be valid.
    fn body((head, body): (String, Vec<u8>)) -> Value {
        assert!(
            head.starts_with("POST /concealed-path?token=concealed HTTP/1.1\r\n"),
            "{head}"
        );
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
        mac.update(&body);
        let bytes = mac.finalize().into_bytes();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let line = format!("switchyard-signature: sha256={hex}\r\n");
        assert!(head.to_lowercase().contains(&line), "{head}");
        assert!(
            head.to_lowercase()
                .contains("content-type: application/json\r\n"),
            "{head}"
        );
        serde_json::from_slice(&body).unwrap()
    }
}

/// The head and the body of a request.
async fn read(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4_096];
        let length = stream.read(&mut part).await.unwrap();
        bytes.extend_from_slice(&part[..length]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = format!("{head}\r\n");
            let line = head.to_lowercase();
            let line = line
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if line.unwrap().parse() == Ok(body.len()) {
                return (head, body.as_bytes().to_vec());
            }
        }
    }
}

/// Creates a rule without a delay.
async fn create(browser: &Browser, url: &str, kind: &str) {
    let form = [
        ("name", "Night"),
        ("url", url),
        ("kinds[]", kind),
        ("delay", "0"),
    ];
    browser.act("create_alert", &form).await;
}

async fn view(browser: &Browser) -> Value {
    let request = browser.request(Method::POST, "/ui/fn/alerts");
    let response = request.header("accept", "application/json").send().await;
    response.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn a_test_is_signed_and_repeated_until_it_is_accepted() {
    let mut receiver = Receiver::start(&["500 Oops", "204 No Content"]).await;
    let server = Server::with(&with_keys(&ON));
    let anna = Browser::at(&server).with_key(ADMIN_KEY);
    create(&anna, &receiver.url(), "dead").await;
    anna.act("test_alert", &[("name", "Night")]).await;
    let (first, second) = (receiver.next().await, receiver.next().await);
    assert_eq!(first["id"], second["id"]);
    for (body, attempt) in [(&first, 1), (&second, 2)] {
        assert_eq!(body["event"], "test");
        assert_eq!(body["rule"], "Night");
        assert_eq!(body["attempt"], attempt);
        assert_eq!(body["problem"], Value::Null);
    }
    assert!(first["sent_at"].as_str() < second["sent_at"].as_str());
    eventually("the delivery has ended", async || {
        view(&anna).await["deliveries"][0]["outcome"] == "HTTP 204"
    })
    .await;
    let seen = view(&anna).await;
    assert_eq!(seen["deliveries"][0]["attempts"], 2);
    assert_eq!(seen["deliveries"][0]["is_delivered"], true);
    let page = anna.page("/ui/alerts").await;
    for text in ["Night", "delivered", "HTTP 204", &*receiver.address] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let audit = anna.open("/ui/audit.json").await.text().await.unwrap();
    for text in [&page, &seen.to_string(), &audit] {
        assert!(
            !text.contains("concealed") && !text.contains(SECRET),
            "{text}"
        );
    }
}

/// Pauses a queue with a waiting job and resumes it; the receiver must get one report of each.
async fn report_once(browser: &Browser, server: &Server, name: &str) {
    let mut receiver = Receiver::start(&["200 OK"]).await;
    create(browser, &receiver.url(), "paused").await;
    server.client().add_ids(name, &[name]).await;
    let queue = [("protocol", "qless"), ("namespace", ""), ("queue", name)];
    browser.act("pause_queue", &queue).await;
    let raised = receiver.next().await;
    assert_eq!(raised["event"], "raised");
    let problem = json!({
        "kind": "paused",
        "queue": {"api": "qless", "namespace": "", "name": name},
        "group": null,
        "text": format!("{name} is paused with 1 job waiting"),
        "path": format!("/ui/queues/{name}/waiting"),
    });
    assert_eq!(raised["problem"], problem);
    let seen = view(browser).await;
    assert_eq!(seen["reported"][0]["text"], problem["text"]);
    assert_eq!(seen["rules"][0]["reported"], 1);
    browser.act("unpause_queue", &queue).await;
    let is_repeated = |body: &Value, first: &Value| {
        // The server repeats a delivery whose response comes too late.
        body["id"] == first["id"] && body["attempt"].as_i64() > Some(1)
    };
    let mut ended = receiver.next().await;
    while is_repeated(&ended, &raised) {
        ended = receiver.next().await;
    }
    assert_eq!(ended["event"], "ended");
    assert_eq!(ended["problem_id"], raised["problem_id"]);
    assert_eq!(ended["problem"], problem);
    eventually("the report has ended", async || {
        view(browser).await["reported"] == json!([])
    })
    .await;
    while let Ok(request) = receiver.received.try_recv() {
        let more = Receiver::body(request);
        let is_known = is_repeated(&more, &ended) || is_repeated(&more, &raised);
        assert!(is_known, "each is sent once: {more}");
    }
    browser.act("delete_alert", &[("name", "Night")]).await;
}

#[tokio::test]
async fn a_problem_is_reported_once_and_so_is_its_end() {
    let server = Server::with(&with_keys(&ON));
    let anna = Browser::at(&server).with_key(ADMIN_KEY);
    report_once(&anna, &server, "mail").await;
}

#[tokio::test]
async fn only_one_of_two_servers_reports_a_problem() {
    let Some(pair) = Pair::start(&with_keys(&ON)) else {
        return;
    };
    for ((server, other), name) in pair.both().into_iter().zip(["mail", "post"]) {
        let anna = Browser::at(server).with_key(ADMIN_KEY);
        report_once(&anna, other, name).await;
    }
}

#[tokio::test]
async fn redirects_are_not_followed_and_their_target_is_not_called() {
    let target = Receiver::start(&["200 OK"]).await;
    let head = format!("302 Found\r\nLocation: http://{}/", target.address);
    let head: &'static [&'static str] = vec![&*head.leak()].leak();
    let receiver = Receiver::start(head).await;
    let server = Server::with(&with_keys(&ON));
    let anna = Browser::at(&server).with_key(ADMIN_KEY);
    create(&anna, &receiver.url(), "dead").await;
    anna.act("test_alert", &[("name", "Night")]).await;
    eventually("the redirect is noted", async || {
        view(&anna).await["deliveries"][0]["outcome"] == "HTTP 302: redirects are not followed"
    })
    .await;
    assert_eq!(view(&anna).await["deliveries"][0]["is_delivered"], false);
    assert!(target.received.is_empty());
    anna.act("delete_alert", &[("name", "Night")]).await;
    let seen = view(&anna).await;
    assert_eq!(seen["deliveries"][0]["outcome"], "the rule was deleted");
    assert_eq!(seen["rules"], json!([]));
}

#[tokio::test]
async fn an_endless_response_ends_the_delivery() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            read(&mut stream).await;
            let lines = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000);
            while stream.write_all(lines.as_bytes()).await.is_ok() {}
        }
    });
    let server = Server::with(&with_keys(&ON));
    let anna = Browser::at(&server).with_key(ADMIN_KEY);
    create(&anna, &url, "dead").await;
    anna.act("test_alert", &[("name", "Night")]).await;
    eventually("the failure is noted", async || {
        view(&anna).await["deliveries"][0]["outcome"] == "the connection failed"
    })
    .await;
}

#[tokio::test]
async fn alerts_need_a_secret_and_an_admin() {
    let server = Server::with(&with_keys(&[]));
    let anna = Browser::at(&server).with_key(ADMIN_KEY);
    create(&anna, "http://127.0.0.1:9/concealed", "dead").await;
    assert!(anna.page("/ui/alerts").await.contains("sends no alerts"));
    anna.act("test_alert", &[("name", "Night")]).await;
    assert_eq!(view(&anna).await["deliveries"], json!([]));
    let refused = anna.audit("?action=test_alert").await;
    assert_eq!(refused[0]["outcome"], "refused");
    let created = anna.audit("?action=create_alert").await;
    let rule = json!([{
        "alert": "Night",
        "webhook": "http://127.0.0.1:9",
        "problems": "dead",
        "after": 0,
    }]);
    assert_eq!(created[0]["after"], rule);
    let olga = Browser::at(&server).with_key(OPERATOR_KEY);
    let form = [("name", "Night"), ("back", "/ui")];
    for action in ["create_alert", "delete_alert", "test_alert"] {
        let response = olga.post(&format!("/ui/fn/{action}"), &form).await;
        assert_eq!(response.status(), 403, "{action}");
    }
    assert_eq!(olga.open("/ui/alerts").await.status(), 403);
    let admin = Browser::at(&server).with_key(ADMIN);
    assert_eq!(admin.open("/ui/alerts").await.status(), 200);
}

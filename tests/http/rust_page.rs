//! The program in `docs/clients/rust.md` completes a job.

// The program, as on the page.
#[rustfmt::skip]
mod program {
use serde_json::{Value, json};

async fn call(server: &str, path: &str, body: Value) -> Result<Value, reqwest::Error> {
    let request = reqwest::Client::new().post(format!("{server}{path}")).json(&body);
    let mut response: Value = request.send().await?.error_for_status()?.json().await?;
    Ok(response["results"].take())
}

pub async fn work(server: &str) -> Result<(), reqwest::Error> {
    call(server, "/add/mail", json!({"data": {"meta": {"to": "ada@example.com"}}})).await?;
    let claim = json!({"data": {"queues": ["mail"], "wait": 1}, "host": "worker-1"});
    loop {
        let job = call(server, "/get", claim.clone()).await?;
        if job.is_null() {
            return Ok(());
        }
        println!("sending to {}", job["meta"]["to"]);
        let done = json!({"host": "worker-1", "data": {"id": job["id"], "meta": job["meta"]}});
        call(server, "/complete/mail", done).await?;
    }
}
}

use crate::support::Server;

#[tokio::test]
async fn the_program_of_the_page_completes_its_job() {
    let page = include_str!("../../docs/clients/rust.md");
    let shown = page.split("```rust\n").nth(1).unwrap();
    let shown = shown.split("```").next().unwrap();
    let shown = shown.replace("async fn work", "pub async fn work");
    let here = include_str!("rust_page.rs");
    assert!(here.contains(&shown), "the page shows another program");
    let server = Server::with(&[]);
    let address = format!("http://{}", server.address);
    program::work(&address).await.unwrap();
    let complete = server.client().get("/jobs/complete").await.ok();
    assert_eq!(complete.as_array().unwrap().len(), 1);
}

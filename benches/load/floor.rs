//! The reference server ("floor"): the same routes and responses of the same size, from memory. The cost of the real
//! server beyond this one is the cost of durability and correctness.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::routing::{delete, get, post, put};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::Result;

type Queues = Arc<Mutex<HashMap<String, VecDeque<(String, String)>>>>;

/// Serves until it is killed.
pub fn serve() -> Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            println!("listening on http://{}", listener.local_addr()?);
            let listener = listener.tap_io(|connection| {
                connection.set_nodelay(true).ok();
            });
            let router = Router::new()
                .route("/add/{queue}", post(add))
                .route("/get/{queue}", get(take_one))
                .route("/get/{queue}/{count}", get(take))
                .route("/complete/{queue}", post(complete))
                .route("/api/v0/queue", post(async || Json(json!({}))))
                .route("/api/v0/queue/{queue}/job", post(create))
                .route("/api/v0/queue/{queue}/poll_job", post(poll))
                .route(
                    "/api/v0/queue/{queue}/job/{id}",
                    delete(async |_: Path<(String, String)>| Json(json!({}))),
                )
                .route("/v2/queues/jobs", post(enqueue))
                .route("/v2/queues/{queue}/jobs", get(next))
                .route(
                    "/v2/queues/{queue}/jobs/{id}/run-id/{run}",
                    delete(async |_: Path<(String, String, String)>| StatusCode::OK),
                )
                .route("/api/{namespace}/{queue}", put(publish).get(consume))
                .route("/api/{namespace}/{queue}/job/{id}", delete(acknowledge))
                .with_state(Queues::default());
            axum::serve(listener, router).await?;
            Ok(())
        })
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct Item<'a> {
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    meta: &'a RawValue,
}

#[derive(Deserialize)]
struct ClaimQuery {
    host: String,
}

type Response = Result<(StatusCode, [(HeaderName, &'static str); 2], String), StatusCode>;

const HEADERS: [(HeaderName, &str); 2] = [
    (header::CONTENT_TYPE, "application/json"),
    (header::CACHE_CONTROL, "no-store"),
];

async fn add(State(queues): State<Queues>, Path(queue): Path<String>, body: Bytes) -> Response {
    let (items, array) = items(&body)?;
    let mut ids = Vec::with_capacity(items.len());
    let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
    let queue = queues.entry(queue).or_default();
    for item in items {
        let id = match item.id {
            Some(id) => id.into_owned(),
            None => uuid::Uuid::new_v4().simple().to_string(),
        };
        queue.push_back((id.clone(), item.meta.get().to_owned()));
        ids.push(id);
    }
    Ok(response(&list(&ids, array)))
}

async fn take_one(
    queues: State<Queues>,
    Path(queue): Path<String>,
    query: Query<ClaimQuery>,
) -> Response {
    take(queues, Path((queue, 1)), query).await
}

async fn take(
    State(queues): State<Queues>,
    Path((name, count)): Path<(String, usize)>,
    Query(ClaimQuery { host }): Query<ClaimQuery>,
) -> Response {
    let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
    let queue = queues.entry(name.clone()).or_default();
    let there = queue.len().min(count);
    let jobs = queue.drain(..there).map(|(id, meta)| {
        format!(
            r#"{{"id":"{id}","queue":"{name}","meta":{meta},"klass":null,"state":"running","worker":"{host}","expires":1352375209.512345,"priority":0,"retries":5,"remaining":5,"tags":[],"tracked":false,"dependencies":[],"dependents":[],"failure":null,"history":[{{"what":"put","when":1352375149,"q":"{name}"}},{{"what":"popped","when":1352375149,"worker":"{host}"}}],"spawned_from":null,"heartbeat":60}}"#
        )
    });
    let jobs: Vec<String> = jobs.collect();
    Ok(match jobs.as_slice() {
        [] if count == 1 => response("null"),
        [job] if count == 1 => response(job),
        jobs => response(&format!("[{}]", jobs.join(","))),
    })
}

async fn complete(Path(_): Path<String>, body: Bytes) -> Response {
    let (items, array) = items(&body)?;
    let ids: Vec<String> = items
        .into_iter()
        .filter_map(|item| Some(item.id?.into_owned()))
        .collect();
    let mut text = list(&ids, array);
    // The states of the completed jobs, as in the server's response.
    if array {
        let states = vec![r#""complete""#; ids.len()].join(",");
        write!(text, r#","states":[{states}]"#).ok();
    } else {
        text.push_str(r#","state":"complete""#);
    }
    Ok(response(&text))
}

async fn publish(
    State(queues): State<Queues>,
    Path((_, queue)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let body = std::str::from_utf8(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let id = uuid::Uuid::new_v4().simple().to_string();
    let response = format!(r#"{{"msg":"published","job_id":"{id}"}}"#);
    let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
    let queue = queues.entry(queue).or_default();
    queue.push_back((id, body.to_owned()));
    Ok((StatusCode::CREATED, HEADERS, response))
}

async fn consume(
    State(queues): State<Queues>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response {
    let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
    let queue = queues.entry(name.clone()).or_default();
    let (id, body) = queue.pop_front().ok_or(StatusCode::NOT_FOUND)?;
    let data = STANDARD.encode(body);
    Ok((
        StatusCode::OK,
        HEADERS,
        format!(
            r#"{{"msg":"new job","namespace":"{namespace}","queue":"{name}","job_id":"{id}","data":"{data}","ttl":86400,"elapsed_ms":1,"remain_tries":0,"attributes":null}}"#
        ),
    ))
}

async fn acknowledge(Path(_): Path<(String, String, String)>) -> StatusCode {
    StatusCode::NO_CONTENT
}

#[derive(Deserialize)]
struct Enqueued<'a> {
    queue: &'a str,
    id: &'a str,
    #[serde(borrow)]
    payload: &'a RawValue,
}

async fn enqueue(State(queues): State<Queues>, body: Bytes) -> Result<StatusCode, StatusCode> {
    let jobs: Vec<Enqueued<'_>> =
        serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
    for Enqueued { queue, id, payload } in jobs {
        let queue = queues.entry(queue.to_owned()).or_default();
        queue.push_back((id.to_owned(), payload.get().to_owned()));
    }
    Ok(StatusCode::ACCEPTED)
}

async fn next(State(queues): State<Queues>, Path(name): Path<String>) -> Response {
    let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
    let queue = queues.entry(name.clone()).or_default();
    let (id, payload) = queue.pop_front().ok_or(StatusCode::NOT_FOUND)?;
    let run = uuid::Uuid::new_v4();
    Ok((
        StatusCode::OK,
        HEADERS,
        format!(
            r#"[{{"id":"{id}","queue":"{name}","payload":{payload},"timeout":3600,"max_retries":3,"run_id":"{run}","state":null}}]"#
        ),
    ))
}

#[derive(Deserialize)]
struct NewJob<'a> {
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Deserialize)]
struct PollBody<'a> {
    #[serde(borrow)]
    state: &'a RawValue,
}

async fn create(State(queues): State<Queues>, Path(queue): Path<String>, body: Bytes) -> Response {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let NewJob { payload } = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let (id, payload) = (
        LAST.fetch_add(1, Ordering::Relaxed) + 1,
        payload.get().to_owned(),
    );
    let response = format!(
        r#"{{"id":{id},"payload":{payload},"events":[["job_created",{{"timestamp":"1352375149"}}]],"state":null,"modified":1352375149}}"#
    );
    let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
    let queue = queues.entry(queue).or_default();
    queue.push_back((id.to_string(), payload));
    Ok((StatusCode::OK, HEADERS, response))
}

async fn poll(State(queues): State<Queues>, Path(queue): Path<String>, body: Bytes) -> Response {
    let PollBody { state } = serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST)?;
    let mut queues = queues.lock().unwrap_or_else(PoisonError::into_inner);
    let queue = queues.entry(queue).or_default();
    let (id, payload) = queue.pop_front().ok_or(StatusCode::NOT_FOUND)?;
    let response = format!(
        r#"{{"id":{id},"payload":{payload},"events":[["job_created",{{"timestamp":"1352375149"}}],["job_state_advanced",{{"old":null,"new":{state},"timestamp":"1352375149"}}]],"state":{state},"modified":1352375149}}"#
    );
    Ok((StatusCode::OK, HEADERS, response))
}

fn items(body: &[u8]) -> Result<(Vec<Item<'_>>, bool), StatusCode> {
    let read = || {
        let envelope: Envelope<'_> = serde_json::from_slice(body)?;
        let data = envelope.data.get();
        if data.starts_with('[') {
            return Ok((serde_json::from_str(data)?, true));
        }
        Ok((vec![serde_json::from_str(data)?], false))
    };
    read().map_err(|_: serde_json::Error| StatusCode::BAD_REQUEST)
}

fn list(ids: &[String], array: bool) -> String {
    match ids {
        [id] if !array => format!("\"{id}\""),
        ids => format!("[\"{}\"]", ids.join("\",\"")),
    }
}

fn response(results: &str) -> (StatusCode, [(HeaderName, &'static str); 2], String) {
    let text = format!(r#"{{"results":{results},"time":{{"total":0.042}}}}"#);
    (StatusCode::OK, HEADERS, text)
}

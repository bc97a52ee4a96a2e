//! The descriptions of the APIs agree with the router in both directions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use reqwest::Method;
use serde_json::Value;

use crate::support::Server;

/// The descriptions, and the protections of the routes in each: the third column of `auth/routes.txt`.
const FILES: [(&str, &[&str]); 5] = [
    ("qless", &["qless"]),
    ("lmstfy", &["namespace"]),
    ("relay", &["relay"]),
    ("jobq", &["jobq"]),
    ("admin", &["token", "nothing"]),
];

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

async fn description(server: &Server, api: &str) -> Value {
    let url = format!("http://{}/openapi/{api}.json", server.address);
    let response = server.http.get(url).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/json");
    response.json().await.unwrap()
}

/// A path with values for its parameters, as in the list of routes.
fn filled(path: &str) -> String {
    let parts = path.split('/').map(|part| match part {
        "{count}" => "1",
        "{state}" => "running",
        part if part.starts_with('{') => "x",
        part => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

/// The described methods of each path.
fn described(description: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let paths = description["paths"].as_object().unwrap().iter();
    let methods = |item: &Value| {
        let keys = item.as_object().unwrap().keys();
        keys.filter(|key| METHODS.contains(&key.as_str()))
            .map(|key| key.to_uppercase())
            .collect()
    };
    paths
        .map(|(path, item)| (filled(path), methods(item)))
        .collect()
}

/// The routes of the server that are not the dashboard's. A test of `auth::rows` compares the list with the router.
fn routes(protections: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/http/auth/routes.txt");
    let text = fs::read_to_string(file).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.filter_map(|line| {
        let [path, methods, needs] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("not a row: {line}");
        };
        let is_described = !path.starts_with("/ui") && !path.starts_with("/openapi");
        let methods = methods.split(',').map(str::to_owned).collect();
        (is_described && protections.contains(&needs)).then(|| (path.to_owned(), methods))
    });
    rows.collect()
}

#[tokio::test]
async fn the_descriptions_and_the_router_have_the_same_routes() {
    let server = Server::with(&[]);
    for (api, protections) in FILES {
        let description = description(&server, api).await;
        assert_eq!(described(&description), routes(protections), "{api}");
        assert_eq!(description["openapi"], "3.1.0");
        assert_eq!(description["info"]["version"], env!("CARGO_PKG_VERSION"));
    }
    let url = format!("http://{}/openapi/other.json", server.address);
    assert_eq!(server.http.get(url).send().await.unwrap().status(), 404);
}

/// Each described operation reaches a handler: neither 405 nor a 404 for an unknown path.
#[tokio::test]
async fn each_operation_exists() {
    let server = Server::with(&["--no-auth"]);
    let mut seen = 0;
    for (api, _) in FILES {
        let description = description(&server, api).await;
        for (path, methods) in described(&description) {
            for method in methods {
                let method = Method::from_bytes(method.as_bytes()).unwrap();
                let query = required(&description, &path, method.as_str());
                let url = format!("http://{}{path}?{query}", server.address);
                let request = server.http.request(method.clone(), url);
                let response = request.body("{}").send().await.unwrap();
                let status = response.status();
                assert!(
                    status != 405 && status.as_u16() < 500,
                    "{method} {path}: {status}"
                );
                seen += 1;
                if path == "/events" {
                    continue;
                }
                let text = response.text().await.unwrap();
                for missing in ["no_such_endpoint", "api not found"] {
                    assert!(!text.contains(missing), "{method} {path}: {text}");
                }
            }
        }
    }
    assert!(seen > 95, "{seen}");
}

/// A query with the required parameters of an operation.
fn required(description: &Value, path: &str, method: &str) -> String {
    let mut paths = description["paths"].as_object().unwrap().iter();
    let (_, item) = paths
        .find(|(described, _)| filled(described) == path)
        .unwrap();
    let parameters = item[method.to_lowercase()]["parameters"].as_array();
    let parameters = parameters.into_iter().flatten();
    let required = parameters.filter(|it| it["in"] == "query" && it["required"] == true);
    let pairs = required.map(|it| format!("{}=x", it["name"].as_str().unwrap()));
    pairs.collect::<Vec<_>>().join("&")
}

/// Calls `visit` with each object in the value.
fn walk(value: &Value, visit: &mut impl FnMut(&serde_json::Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(object);
            object.values().for_each(|inner| walk(inner, visit));
        }
        Value::Array(values) => values.iter().for_each(|inner| walk(inner, visit)),
        _ => {}
    }
}

#[tokio::test]
async fn references_parameters_and_ids_are_complete() {
    let server = Server::with(&[]);
    for (api, _) in FILES {
        let description = description(&server, api).await;
        walk(&description, &mut |object| {
            let Some(Value::String(reference)) = object.get("$ref") else {
                return;
            };
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(description.pointer(pointer).is_some(), "{api}: {reference}");
        });
        let mut ids = BTreeSet::new();
        for (path, item) in description["paths"].as_object().unwrap() {
            let named: Vec<&str> = path.split(['{', '}']).skip(1).step_by(2).collect();
            let parameters = item["parameters"].as_array().map_or(&[][..], Vec::as_slice);
            let listed: Vec<&str> = parameters
                .iter()
                .map(|it| it["name"].as_str().unwrap())
                .collect();
            assert_eq!(listed, named, "{path}");
            for method in METHODS {
                let Some(operation) = item.get(method) else {
                    continue;
                };
                let id = operation["operationId"].as_str().unwrap();
                assert!(ids.insert(id.to_owned()), "{api}: {id}");
                assert!(!operation["summary"].as_str().unwrap().is_empty(), "{id}");
                assert!(
                    !operation["responses"].as_object().unwrap().is_empty(),
                    "{id}"
                );
            }
        }
    }
}

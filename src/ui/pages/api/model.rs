//! The view model of the API reference, read from the OpenAPI descriptions.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::schema::{self, at};
use crate::openapi;

/// The methods of an OpenAPI path, in the order in which the page lists them.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

static APIS: LazyLock<Vec<ApiView>> = LazyLock::new(|| {
    let all = openapi::all();
    all.filter_map(|(name, text)| ApiView::parse(name, text))
        .collect()
});

/// All APIs, parsed once.
pub fn apis() -> &'static [ApiView] {
    &APIS
}

/// An API.
#[derive(Debug)]
pub struct ApiView {
    /// As in the address of the page and of the description.
    pub name: &'static str,
    pub title: String,
    pub about: String,
    pub operations: Vec<EndpointView>,
    /// The named types, each with its definition.
    pub types: Vec<(String, String)>,
}

/// A method of a path.
#[derive(Debug)]
pub struct EndpointView {
    pub id: String,
    pub method: String,
    /// With parameters in braces.
    pub path: String,
    pub summary: String,
    /// Can be empty.
    pub about: String,
    pub parameters: Vec<ParameterView>,
    pub body: Option<ContentView>,
    pub responses: Vec<ResponseView>,
}

/// A parameter in the path, the query or a header.
#[derive(Debug)]
pub struct ParameterView {
    pub name: String,
    /// `path`, `query` or `header`.
    pub place: String,
    pub is_required: bool,
    pub kind: String,
    pub about: String,
}

/// The content of a request or a response.
#[derive(Debug)]
pub struct ContentView {
    pub media_type: String,
    /// Whether a request must contain it; false for responses.
    pub is_required: bool,
    pub schema: String,
}

/// A response to an operation.
#[derive(Debug)]
pub struct ResponseView {
    /// A status, or `default`.
    pub status: String,
    pub about: String,
    pub content: Option<ContentView>,
}

impl ApiView {
    fn parse(name: &'static str, text: &str) -> Option<ApiView> {
        let whole: Value = serde_json::from_str(text).ok()?;
        let whole = &whole;
        let title = string(at(whole, "info"), "title");
        let types = object(at(at(whole, "components"), "schemas"))
            .map(|(name, schema)| (name.clone(), schema::text(schema)));
        let paths = object(at(whole, "paths"));
        Some(ApiView {
            name,
            title: title
                .strip_prefix("Switchyard: ")
                .unwrap_or(&title)
                .to_owned(),
            about: string(at(whole, "info"), "description"),
            operations: paths
                .flat_map(|(path, item)| operations(whole, path, item))
                .collect(),
            types: types.collect(),
        })
    }
}

fn operations(whole: &Value, path: &str, item: &Value) -> Vec<EndpointView> {
    let methods = METHODS.iter();
    let methods = methods.filter_map(|method| Some((method, item.get(method)?)));
    let operation = |(method, operation): (&&str, &Value)| EndpointView {
        id: string(operation, "operationId"),
        method: method.to_uppercase(),
        path: path.to_owned(),
        summary: string(operation, "summary"),
        about: string(operation, "description"),
        parameters: parameters(whole, item, operation),
        body: operation
            .get("requestBody")
            .and_then(|body| content(resolve(whole, body))),
        responses: object(at(operation, "responses"))
            .map(|(status, response)| {
                let response = resolve(whole, response);
                ResponseView {
                    status: status.clone(),
                    about: string(response, "description"),
                    content: content(response),
                }
            })
            .collect(),
    };
    methods.map(operation).collect()
}

/// The parameters of a path and of an operation. One of the operation replaces that of the path with the same name.
fn parameters(whole: &Value, item: &Value, operation: &Value) -> Vec<ParameterView> {
    let views = |of: &Value| {
        let all = at(of, "parameters").as_array().into_iter().flatten();
        let views = all.map(|parameter| parameter_view(resolve(whole, parameter)));
        views.collect::<Vec<_>>()
    };
    let is_same = |one: &ParameterView, other: &ParameterView| {
        (&one.name, &one.place) == (&other.name, &other.place)
    };
    let mut parameters = views(item);
    for view in views(operation) {
        match parameters.iter_mut().find(|it| is_same(it, &view)) {
            Some(of_path) => *of_path = view,
            None => parameters.push(view),
        }
    }
    parameters
}

fn parameter_view(parameter: &Value) -> ParameterView {
    ParameterView {
        name: string(parameter, "name"),
        place: string(parameter, "in"),
        is_required: at(parameter, "required") == true,
        kind: schema::text(at(parameter, "schema")),
        about: string(parameter, "description"),
    }
}

/// The first content of a request body or a response.
fn content(of: &Value) -> Option<ContentView> {
    let (media_type, content) = object(at(of, "content")).next()?;
    Some(ContentView {
        media_type: media_type.clone(),
        is_required: at(of, "required") == true,
        schema: schema::text(at(content, "schema")),
    })
}

/// What a reference within the description refers to.
fn resolve<'a>(whole: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = at(value, "$ref")
        .as_str()
        .and_then(|it| it.strip_prefix('#'));
    let found = pointer.and_then(|pointer| whole.pointer(pointer));
    found.unwrap_or(value)
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn string(of: &Value, key: &str) -> String {
    at(of, key).as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operation_of_every_description_is_shown() {
        let names: Vec<_> = apis().iter().map(|api| api.name).collect();
        assert_eq!(names, ["qless", "lmstfy", "relay", "jobq", "admin"]);
        for (api, (_, text)) in apis().iter().zip(openapi::all()) {
            let whole: Value = serde_json::from_str(text).unwrap();
            let paths = whole["paths"].as_object().unwrap().values();
            let methods = paths.map(|item| {
                let keys = item.as_object().unwrap().keys();
                keys.filter(|key| METHODS.contains(&key.as_str())).count()
            });
            assert_eq!(api.operations.len(), methods.sum::<usize>(), "{}", api.name);
            let ids: BTreeSet<_> = api.operations.iter().map(|its| &its.id).collect();
            assert_eq!(ids.len(), api.operations.len(), "{}", api.name);
            assert!(!api.title.is_empty() && !api.about.is_empty());
            for operation in &api.operations {
                let what = format!("{} {}", operation.method, operation.path);
                assert!(
                    !operation.id.is_empty() && !operation.summary.is_empty(),
                    "{what}"
                );
                assert!(!operation.responses.is_empty(), "{what}");
                let in_path = operation.path.matches('{').count();
                let of_path = operation.parameters.iter().filter(|it| it.place == "path");
                assert_eq!(of_path.count(), in_path, "{what}");
                let texts = operation.responses.iter().map(|response| &response.about);
                assert!(texts.into_iter().all(|about| !about.is_empty()), "{what}");
            }
        }
    }
}

//! The admin API of lmstfy for tokens: create, list, revoke. It requires admin credentials.
//!
//! lmstfy lists the tokens themselves. This server stores only hashes, so it lists token IDs, and a token can be
//! revoked by its token ID too.

use axum::Json;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get};
use serde_json::{Map, Value, json};
use tower_http::set_header::SetResponseHeaderLayer;

use super::request::{self, BodyError, PARAMETERS_MAX, UriError};
use crate::auth::{BASIC, Rejected};
use crate::engine::{Engine, Error, Expiry, Time, Token, TokenError};
use crate::time;

/// Maximum size of a form, in bytes.
const FORM_BYTES_MAX: usize = 16 << 10;

/// The content type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

/// The routes below `/token`.
pub fn router(engine: Engine) -> Router {
    Router::new()
        .route("/token/{namespace}", get(list).post(create))
        .route("/token/{namespace}/{token}", delete(revoke))
        .method_not_allowed_fallback(async || {
            error_response(
                StatusCode::METHOD_NOT_ALLOWED,
                "this method is not allowed here",
            )
        })
        .layer(SetResponseHeaderLayer::overriding(
            header::CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ))
        .with_state(engine)
}

/// The response to a request without valid credentials.
pub fn unauthorized() -> Response {
    let why = "admin credentials are required";
    let challenge = [(header::WWW_AUTHENTICATE, BASIC)];
    (challenge, error_response(StatusCode::UNAUTHORIZED, why)).into_response()
}

/// The response to a request that is rejected before it is read.
pub fn rejected(why: Rejected) -> Response {
    error_response(why.status(), why.message())
}

/// Path parameters. A path that is not valid UTF-8 yields empty ones, which match no namespace and no token.
type PathParameters<T> = Result<Path<T>, PathRejection>;

async fn list(State(engine): State<Engine>, path: PathParameters<String>, uri: Uri) -> Response {
    let namespace = path.map(|Path(namespace)| namespace).unwrap_or_default();
    let parameters = match parameters_of(uri.query().unwrap_or_default().as_bytes()) {
        Ok(parameters) => parameters,
        Err(why) => return error_response(StatusCode::BAD_REQUEST, why),
    };
    let with_details = parameters.contains(&("details".to_owned(), "true".to_owned()));
    let tokens = match engine.tokens_of(&namespace).await {
        Ok(tokens) => tokens,
        Err(error) => return of_engine(&error),
    };
    let description = |it: &Token| (it.token_id.clone(), it.description.as_str().into());
    let named: Map<String, Value> = tokens.iter().map(description).collect();
    // An extension of lmstfy's response, so it is returned only on request.
    if !with_details {
        return Json(json!({ "tokens": named })).into_response();
    }
    let details = tokens.iter().map(|it| (it.token_id.clone(), detail(it)));
    let details: Map<String, Value> = details.collect();
    Json(json!({ "tokens": named, "details": details })).into_response()
}

/// The details of a token other than its description. The last use is rounded down to the hour.
fn detail(token: &Token) -> Value {
    let iso = |at: Option<Time>| at.map(|at| time::iso(at.0));
    json!({
        "created_at": time::iso(token.created_at.0),
        "expires_at": iso(token.expires_at),
        "expired": token.is_expired,
        "last_used_at": iso(token.last_used_at),
    })
}

async fn create(
    State(engine): State<Engine>,
    path: PathParameters<String>,
    request: Request,
) -> Response {
    let namespace = path.map(|Path(namespace)| namespace).unwrap_or_default();
    let parameters = match parameters(request).await {
        Ok(parameters) => parameters,
        Err(response) => return response,
    };
    let parameter = |name: &str| {
        let mut found = parameters.iter().filter(|(key, _)| key == name);
        let found = found.find(|(_, value)| !value.is_empty());
        found.map(|(_, value)| value.as_str())
    };
    let Some(description) = parameter("description") else {
        return error_response(StatusCode::BAD_REQUEST, INVALID_DESCRIPTION);
    };
    let given = parameter("token").map(str::to_owned);
    let expires = parameter("expires").map(str::parse::<Expiry>).transpose();
    let expires = match expires {
        Ok(expires) => expires,
        Err(flaw) => return of_engine(&flaw.into()),
    };
    let created = engine.create_token_until(&namespace, description, given, expires);
    match created.await {
        Ok(token) => (StatusCode::CREATED, Json(json!({ "token": token }))).into_response(),
        Err(error) => of_engine(&error),
    }
}

async fn revoke(State(engine): State<Engine>, path: PathParameters<(String, String)>) -> Response {
    let (namespace, token) = path.map(|Path(path)| path).unwrap_or_default();
    match engine.revoke_token(&namespace, &token).await {
        // As in lmstfy, the response does not reveal whether the token existed.
        Ok(_) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => of_engine(&error),
    }
}

/// The parameters of the query, followed by those of the form.
async fn parameters(request: Request) -> Result<Vec<(String, String)>, Response> {
    let bad = |why: &str| error_response(StatusCode::BAD_REQUEST, why);
    let query = request.uri().query().unwrap_or_default();
    let mut parameters = parameters_of(query.as_bytes()).map_err(bad)?;
    let kind = request.headers().get(header::CONTENT_TYPE);
    let is_form = kind.is_some_and(|kind| kind.as_bytes().starts_with(FORM.as_bytes()));
    let form = request::body(request.into_body(), FORM_BYTES_MAX).await;
    let form = form.map_err(|why| match why {
        BodyError::TooLarge => error_response(StatusCode::PAYLOAD_TOO_LARGE, "body too large"),
        BodyError::Busy => rejected(Rejected::Busy),
        BodyError::Incomplete | BodyError::TimedOut => {
            error_response(StatusCode::BAD_REQUEST, "failed to read body")
        }
    })?;
    if is_form {
        parameters.extend(parameters_of(&form).map_err(bad)?);
    }
    Ok(parameters)
}

/// The parameters of a query or a form.
///
/// # Errors
/// The error message.
fn parameters_of(text: &[u8]) -> Result<Vec<(String, String)>, &'static str> {
    let text = std::str::from_utf8(text).map_err(|_| UriError::Query);
    let parameters = text.and_then(|text| request::pairs(text, PARAMETERS_MAX));
    parameters.map_err(|why| match why {
        UriError::TooManyParameters => "there are too many parameters",
        UriError::Path | UriError::Query => "the parameters are not valid UTF-8",
    })
}

const INVALID_DESCRIPTION: &str = "invalid description";

/// The response to an error of the engine, with lmstfy's message if lmstfy has one.
fn of_engine(error: &Error) -> Response {
    let bad = |why: &str| error_response(StatusCode::BAD_REQUEST, why);
    match error {
        Error::BadToken(TokenError::Description) => bad(INVALID_DESCRIPTION),
        Error::BadToken(TokenError::TooShort) => bad("the user token was too short"),
        Error::BadToken(TokenError::Exists) => bad("the token has already existed"),
        Error::BadToken(_) | Error::TooMany { .. } => bad(&error.to_string()),
        Error::Unavailable | Error::Busy | Error::Full => {
            let soon = [(header::RETRY_AFTER, "1")];
            let why = error_response(StatusCode::SERVICE_UNAVAILABLE, &error.to_string());
            (soon, why).into_response()
        }
        error => {
            tracing::error!(%error, "a token request failed");
            let why = "internal error; see the server log";
            error_response(StatusCode::INTERNAL_SERVER_ERROR, why)
        }
    }
}

fn error_response(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

//! `switchyard token remote`: tokens of lmstfy namespaces, through a running server.

use hyper::header;
use serde_json::{Value, json};

use super::{Result, Session};
use crate::cli::exit::{Code, Failure};
use crate::cli::output::{Table, json_line, printable};
use crate::cli::{Outcome, print, print_notice};
use crate::config::RemoteToken;
use crate::time::{self, utc};
use crate::ui::actions::tokens::RevokeToken;
use crate::ui::pages::namespaces::load::{Namespace, Namespaces};
use crate::ui::pages::namespaces::model::TokenRow;

use super::rows::{ago, iso};

pub async fn run(command: &RemoteToken) -> Outcome {
    match command {
        RemoteToken::Create {
            remote,
            namespace,
            description,
            expires,
        } => {
            let session = Session::new(remote)?;
            let mut form = form_urlencoded::Serializer::new(String::new());
            form.append_pair("description", description);
            if let Some(expires) = expires {
                form.append_pair("expires", expires);
            }
            let request = session.client.post(["token", namespace.as_str()]);
            let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
            let response = request
                .bytes(form.finish())
                .send()
                .await
                .map_err(Failure::from)?;
            let created: Value = response.json().map_err(Failure::from)?;
            let token = created.get("token").and_then(Value::as_str);
            let token =
                token.ok_or_else(|| Failure::new(Code::Error, "the server sent no token"))?;
            if session.json {
                print(&json_line(
                    &json!({ "namespace": namespace, "token": token }),
                ));
                return Ok(());
            }
            print_notice("token (it is not shown again, because only its hash is stored):");
            print(&format!("{}\n", printable(token)));
            Ok(())
        }
        RemoteToken::List { remote, namespace } => {
            let session = Session::new(remote)?;
            let rows = list(&session, namespace.as_deref()).await?;
            print(&session.format_rows(&rows, json, table));
            Ok(())
        }
        RemoteToken::Revoke {
            remote,
            namespace,
            name,
        } => {
            let session = Session::new(remote)?;
            let known = list(&session, Some(namespace)).await?;
            if !known.iter().any(|(_, token)| token.name == *name) {
                let why = format!("namespace {namespace} has no token {name}");
                return Err(Failure::new(Code::NotFound, why).into());
            }
            let call = RevokeToken {
                namespace: namespace.clone(),
                name: name.clone(),
                back: "/ui/namespaces".to_owned(),
            };
            let done = session.act(call).await?;
            session.report(name, &done);
            Ok(())
        }
    }
}

/// The tokens of one namespace, or of all, each with its namespace.
async fn list(session: &Session, namespace: Option<&str>) -> Result<Vec<(String, TokenRow)>> {
    let names = match namespace {
        Some(name) => vec![name.to_owned()],
        None => {
            let all = session.read(Namespaces {}).await?.rows;
            let with_tokens = all.into_iter().filter(|row| row.tokens > 0);
            with_tokens.map(|row| row.name).collect()
        }
    };
    let mut rows = Vec::new();
    for name in names {
        let view = session.read(Namespace { name: name.clone() }).await?;
        rows.extend(view.tokens.into_iter().map(|token| (name.clone(), token)));
    }
    Ok(rows)
}

fn json((namespace, token): &(String, TokenRow)) -> Value {
    json!({
        "namespace": namespace, "name": token.name, "description": token.description,
        "created": time::iso(token.created), "expires": iso(token.expires), "expired": token.expired,
        "last_used": iso(token.last_used),
    })
}

fn table(rows: &[(String, TokenRow)]) -> String {
    let mut table = Table::new(&[
        "NAMESPACE",
        "TOKEN ID",
        "DESCRIPTION",
        "CREATED",
        "EXPIRES",
        "LAST USED",
    ]);
    for (namespace, token) in rows {
        let expires = match (token.expires, token.expired) {
            (Some(at), true) => format!("expired {}", utc(at)),
            (Some(at), false) => utc(at),
            (None, _) => "never".to_owned(),
        };
        table.row([
            namespace.clone(),
            token.name.clone(),
            token.description.clone(),
            utc(token.created),
            expires,
            ago(token.last_used),
        ]);
    }
    table.render()
}

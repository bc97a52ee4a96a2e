//! `/ui/api`: the APIs; `/ui/api/{name}`: the reference of an API, from its OpenAPI description.

pub mod model;
pub mod schema;

use leptos::prelude::*;
use leptos_meta::Title;

use crate::ui::components::basics::{element_id, number_of, plural};
use crate::ui::components::commands::curl;
use crate::ui::components::error::{NO_PAGE, error_view};
use crate::ui::components::styles::{CARD, CARD_PADDED, CRUMB, PAYLOAD};
use crate::ui::components::tables;
use crate::ui::error::PageError;
use crate::ui::page_request::{PageRequest, page_request};
use crate::ui::pages::api::model::{
    ApiView, ContentView, EndpointView, ParameterView, ResponseView, apis,
};
use crate::ui::urls;

#[component]
pub fn ApisPage() -> impl IntoView {
    let rows = apis().iter().map(|api| {
        let operations = number_of(api.operations.len());
        view! {
            <tr>
                <th scope="row"><a href=urls::api_reference(api.name)>{api.title.clone()}</a></th>
                <td>{plural(operations, "endpoint", "endpoints")}</td>
                <td><a href=urls::openapi(api.name)>{format!("{}.json", api.name)}</a></td>
            </tr>
        }
    });
    let columns = [("API", ""), ("Endpoints", ""), ("OpenAPI 3.1", "")];
    view! {
        <Title text="APIs" />
        <p class=CRUMB><a href="/ui/about">"About"</a></p>
        <h1>"APIs"</h1>
        <p class="text-muted wrap-anywhere">"What programs can call on this server. Tools and client generators read the OpenAPI files."</p>
        <div class=CARD>
            {tables::table("APIs", tables::head(&columns), rows.collect_view().into_any())}
        </div>
    }
}

#[component]
pub fn ApiPage() -> impl IntoView {
    let request = page_request();
    let name = request.name(2);
    match apis().iter().find(|api| api.name == name) {
        Some(api) => page(api, &request),
        None => error_view(&PageError::Missing(NO_PAGE.to_owned())),
    }
}

fn page(api: &'static ApiView, request: &PageRequest) -> AnyView {
    let operations = api.operations.iter().map(|its| operation(its, request));
    let types = api.types.iter().map(|(name, definition)| {
        view! {
            <div id=element_id("type-", name)>
                <dt class="mt-3 mb-1 font-medium"><code>{name.clone()}</code></dt>
                <dd>{definition_view(definition)}</dd>
            </div>
        }
    });
    view! {
        <Title text=format!("API: {}", api.title) />
        <p class=CRUMB><a href="/ui/about">"About"</a> <span aria-hidden="true">" › "</span> <a href="/ui/api">"APIs"</a></p>
        <h1>{api.title.clone()}</h1>
        <p class="text-muted wrap-anywhere">
            {api.about.clone()} " " <a href=urls::openapi(api.name)>{format!("OpenAPI file: {}.json", api.name)}</a>
        </p>
        <section class=CARD_PADDED aria-labelledby="endpoints">
            <h2 id="endpoints">"Endpoints"</h2>
            {operations.collect_view()}
        </section>
        {(!api.types.is_empty()).then(|| view! {
            <section class=CARD_PADDED aria-labelledby="types">
                <h2 id="types">"Types"</h2>
                <dl>{types.collect_view()}</dl>
            </section>
        })}
    }
    .into_any()
}

fn operation(operation: &'static EndpointView, request: &PageRequest) -> AnyView {
    view! {
        <details id=operation.id.clone() class="border-t border-line py-1">
            <summary class="wrap-anywhere">
                <code>{operation.method.clone()} " " {operation.path.clone()}</code> " " {operation.summary.clone()}
            </summary>
            <div class="flex flex-col gap-3 pb-2">
                {(!operation.about.is_empty()).then(|| view! { <p class="wrap-anywhere">{operation.about.clone()}</p> })}
                {parameters(operation)}
                {operation.body.as_ref().map(body)}
                {operation.responses.iter().map(response).collect_view()}
                <p class="text-sm text-muted">"Request with curl"</p>
                {definition_view(&command(operation, request))}
            </div>
        </details>
    }
    .into_any()
}

/// The curl command of an operation, with its body from a file.
fn command(operation: &EndpointView, request: &PageRequest) -> String {
    let command = curl(request, &operation.method, &operation.path);
    match &operation.body {
        Some(body) => format!(
            "{command} -H 'Content-Type: {}' --data-binary @body",
            body.media_type
        ),
        None => command,
    }
}

fn parameters(operation: &'static EndpointView) -> AnyView {
    if operation.parameters.is_empty() {
        return ().into_any();
    }
    let columns = [
        ("Parameter", ""),
        ("In", ""),
        ("Type", ""),
        ("Description", ""),
    ];
    let rows = operation.parameters.iter().map(parameter);
    let caption = format!("Parameters of {}", operation.id);
    tables::table(
        &caption,
        tables::head(&columns),
        rows.collect_view().into_any(),
    )
}

fn parameter(parameter: &'static ParameterView) -> AnyView {
    let required = if parameter.is_required {
        ""
    } else {
        "Optional. "
    };
    view! {
        <tr>
            <th scope="row"><code>{parameter.name.clone()}</code></th>
            <td>{parameter.place.clone()}</td>
            <td><code>{parameter.kind.clone()}</code></td>
            <td class="wrap-anywhere">{required} {parameter.about.clone()}</td>
        </tr>
    }
    .into_any()
}

fn body(content: &'static ContentView) -> AnyView {
    let optional = if content.is_required {
        ""
    } else {
        ", optional"
    };
    view! {
        <div>
            <p class="mb-1 text-sm text-muted">"Body: " <code>{content.media_type.clone()}</code> {optional}</p>
            {definition_view(&content.schema)}
        </div>
    }
    .into_any()
}

fn response(response: &'static ResponseView) -> AnyView {
    let status = match response.status.as_str() {
        "default" => "Other statuses",
        status => status,
    };
    let media_type = response.content.as_ref();
    let media_type = media_type.map(|its| view! { " " <code>{its.media_type.clone()}</code> });
    view! {
        <div>
            <p class="mb-1 wrap-anywhere"><strong>{status.to_owned()}</strong> ": " {response.about.clone()} {media_type}</p>
            {response.content.as_ref().map(|its| definition_view(&its.schema))}
        </div>
    }
    .into_any()
}

/// A schema or a command.
fn definition_view(text: &str) -> AnyView {
    view! { <pre class=PAYLOAD tabindex="0">{text.to_owned()}</pre> }.into_any()
}

//! The OpenAPI document, generated from the handlers and checked in as `openapi/berth.openapi.json`.

use std::sync::OnceLock;

use utoipa::OpenApi;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::PathItem;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};

use crate::resources;
use crate::verbs::public_path;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Berth",
        version = "1.0.0",
        description = "Slurm's scheduling policy as a cloud service. Errors are `application/problem+json` with a stable `code`, the `field`, \
                   what was found (`detail`) and what would be right (`help`).",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(berth_model::state::LogStream))
)]
struct Base;

/// The document as served and checked in.
pub fn document() -> &'static utoipa::openapi::OpenApi {
    static DOCUMENT: OnceLock<utoipa::openapi::OpenApi> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let (_, mut api) = utoipa_axum::router::OpenApiRouter::with_openapi(Base::openapi()).merge(resources::routes()).split_for_parts();
        let paths = std::mem::take(&mut api.paths.paths);
        api.paths.paths = paths.into_iter().map(|(path, item)| (public_path(&path), described(item))).collect();
        let scheme = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build());
        api.components.get_or_insert_default().add_security_scheme("token", scheme);
        api.security = Some(vec![SecurityRequirement::new("token", Vec::<String>::new())]);
        api
    })
}

/// OpenAPI wants a description of each response.
fn described(mut item: PathItem) -> PathItem {
    let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.patch, &mut item.delete];
    for operation in operations.into_iter().flatten() {
        for (status, response) in &mut operation.responses.responses {
            if let RefOr::T(response) = response
                && response.description.is_empty()
            {
                let text = match status.as_str() {
                    "default" => "What was wrong, where, and what would be right.",
                    "201" => "It is made.",
                    "204" => "It is done; there is nothing to say.",
                    _ => "What was asked for.",
                };
                text.clone_into(&mut response.description);
            }
        }
    }
    item
}

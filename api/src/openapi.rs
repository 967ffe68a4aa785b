//! The OpenAPI document, generated from the handlers and checked in as `openapi/berth.openapi.json`.

use std::sync::OnceLock;

use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};

use crate::resources;
use crate::verbs::public_path;

#[derive(OpenApi)]
#[openapi(info(
    title = "Berth",
    version = "1.0.0",
    description = "Slurm's scheduling policy as a cloud service. Errors are `application/problem+json` with a stable `code`, the `field`, \
                   what was found (`detail`) and what would be right (`help`).",
    license(name = "Apache-2.0", identifier = "Apache-2.0")
))]
struct Base;

/// The document as served and checked in.
pub fn document() -> &'static utoipa::openapi::OpenApi {
    static DOCUMENT: OnceLock<utoipa::openapi::OpenApi> = OnceLock::new();
    DOCUMENT.get_or_init(|| {
        let (_, mut api) = utoipa_axum::router::OpenApiRouter::with_openapi(Base::openapi()).merge(resources::routes()).split_for_parts();
        let paths = std::mem::take(&mut api.paths.paths);
        api.paths.paths = paths.into_iter().map(|(path, item)| (public_path(&path), item)).collect();
        let scheme = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build());
        api.components.get_or_insert_default().add_security_scheme("token", scheme);
        api.security = Some(vec![SecurityRequirement::new("token", Vec::<String>::new())]);
        api
    })
}

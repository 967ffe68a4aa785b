//! Pages of lists. A page token is opaque to clients and signed, so that it cannot be used to probe.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::{IntoParams, ToSchema};

use crate::problem::{Answer, Problem};

/// A page of a list.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Give it as `page_token` to read on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_page_token: Option<String>,
}

/// Parameters of every list.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PageParams {
    /// Items a page, 1 to 1000; 100 if absent.
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    #[param(minimum = 1, maximum = 1000)]
    pub page_size: Option<u32>,
    /// `next_page_token` of the page before.
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    pub page_token: Option<String>,
    /// The tenant meant; only platform admins name another than their own, or `-` for all where lists go over tenants.
    #[serde(default, deserialize_with = "crate::extract::query::one")]
    pub tenant: Option<String>,
}

/// Checks a page size. Returns it with the default filled in.
pub fn page_size(asked: Option<u32>) -> Answer<i64> {
    match asked.unwrap_or(100) {
        size @ 1..=1000 => Ok(i64::from(size)),
        size => Err(Problem::new(http::StatusCode::UNPROCESSABLE_ENTITY, "invalid_parameter", format!("page_size is {size}"))
            .field("page_size")
            .help("ask for 1 to 1000 items a page")),
    }
}

/// Makes and reads page tokens.
#[derive(Clone)]
pub struct PageTokens {
    secret: [u8; 32],
}

impl PageTokens {
    pub fn new(secret: [u8; 32]) -> Self {
        PageTokens { secret }
    }

    pub fn make<T: Serialize>(&self, cursor: &T) -> String {
        let text = serde_json::to_vec(cursor).unwrap_or_default();
        let mut bytes = self.seal(&text).to_vec();
        bytes.extend_from_slice(&text);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    pub fn read<T: DeserializeOwned>(&self, token: &str) -> Answer<T> {
        let cursor = URL_SAFE_NO_PAD.decode(token).ok().filter(|b| b.len() > 16).and_then(|bytes| {
            let (seal, text) = bytes.split_at(16);
            (seal == self.seal(text)).then(|| serde_json::from_slice(text).ok()).flatten()
        });
        cursor.ok_or_else(|| {
            Problem::new(http::StatusCode::UNPROCESSABLE_ENTITY, "invalid_page_token", "this page token was not made by this service")
                .field("page_token")
                .help("use next_page_token as it was answered, or leave it out to begin anew")
        })
    }

    // The secret frames the text on both sides, so that the digest cannot be extended.
    fn seal(&self, text: &[u8]) -> [u8; 16] {
        let digest = Sha256::new().chain_update(self.secret).chain_update(text).chain_update(self.secret).finalize();
        let mut seal = [0; 16];
        seal.copy_from_slice(&digest[..16]);
        seal
    }
}

/// A page out of one item more than was asked for.
pub fn cut<T, R>(mut rows: Vec<R>, size: i64, tokens: &PageTokens, cursor: impl Fn(&R) -> String, show: impl Fn(R) -> T) -> Page<T> {
    let next =
        (rows.len() as i64 > size).then(|| rows.truncate(size as usize)).and_then(|()| rows.last().map(|last| tokens.make(&cursor(last))));
    Page { items: rows.into_iter().map(show).collect(), next_page_token: next }
}

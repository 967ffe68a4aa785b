//! Logins to registries, from a file as `docker login` and `podman login` write it:
//! `{"auths": {"registry.example": {"auth": "<base64 of user:password>"}}}`. It is read at each pull, so that it can be replaced.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine as _;
use oci_client::secrets::RegistryAuth;
use serde::Deserialize;

use crate::tasks::fault;
use crate::{LaunchCause, LaunchError};

/// Where logins are found.
#[derive(Clone, Debug, Default)]
pub struct Logins(Option<PathBuf>);

/// What is shown to a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    Password {
        user: String,
        password: String,
    },
    /// A token that stands for both.
    Token(String),
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    auths: BTreeMap<String, Entry>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
    registrytoken: String,
}

impl Logins {
    /// `None`: nobody logs in.
    pub fn open(file: Option<PathBuf>) -> Logins {
        Logins(file)
    }

    /// The login for a registry, if there is one. A file that cannot be read is the node's fault.
    pub fn of(&self, registry: &str) -> Result<Option<Login>, LaunchError> {
        let Some(path) = &self.0 else { return Ok(None) };
        // Its content is not repeated, since secrets are in it.
        let bad = |what: String| fault(LaunchCause::NodeError, format!("the file of registry logins {}: {what}", path.display()));
        let bytes = std::fs::read(path).map_err(|e| bad(e.to_string()))?;
        let file: File = serde_json::from_slice(&bytes).map_err(|e| bad(format!("line {}: not as docker login writes it", e.line())))?;
        let found = file.auths.into_iter().find(|(name, _)| host(name) == host(registry));
        found.map(|(name, entry)| login(entry).ok_or_else(|| bad(format!("the login for {name} is not understood")))).transpose()
    }

    /// As the client for registries wants it.
    pub fn for_client(&self, registry: &str) -> Result<RegistryAuth, LaunchError> {
        Ok(match self.of(registry)? {
            None => RegistryAuth::Anonymous,
            Some(Login::Password { user, password }) => RegistryAuth::Basic(user, password),
            Some(Login::Token(token)) => RegistryAuth::Bearer(token),
        })
    }
}

fn login(entry: Entry) -> Option<Login> {
    if let Some(token) = [entry.registrytoken, entry.identitytoken].into_iter().find(|t| !t.is_empty()) {
        return Some(Login::Token(token));
    }
    if !entry.username.is_empty() {
        return Some(Login::Password { user: entry.username, password: entry.password });
    }
    let both = String::from_utf8(base64::engine::general_purpose::STANDARD.decode(entry.auth.trim()).ok()?).ok()?;
    let (user, password) = both.split_once(':')?;
    Some(Login::Password { user: user.to_owned(), password: password.to_owned() })
}

/// The registry's host with its port, without what old files have around it; Docker's own has several names.
fn host(name: &str) -> &str {
    let bare = name.strip_prefix("https://").or_else(|| name.strip_prefix("http://")).unwrap_or(name);
    match bare.split('/').next().unwrap_or(bare) {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        host => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_are_found_as_docker_and_podman_write_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        let text = r#"{ "auths": {
            "https://index.docker.io/v1/": { "auth": "YW5uOnNlOmNyZXQ=" },
            "lan:5000": { "username": "bob", "password": "p" },
            "t.example": { "auth": "MDo=", "identitytoken": "abc" },
            "bad.example": { "auth": "%" }
        }, "credsStore": "x" }"#;
        std::fs::write(&path, text).unwrap();
        let logins = Logins::open(Some(path));
        let password = |user: &str, password: &str| Some(Login::Password { user: user.to_owned(), password: password.to_owned() });
        assert_eq!(logins.of("docker.io").unwrap(), password("ann", "se:cret"));
        assert_eq!(logins.of("index.docker.io").unwrap(), password("ann", "se:cret"));
        assert_eq!(logins.of("lan:5000").unwrap(), password("bob", "p"));
        assert_eq!(logins.of("t.example").unwrap(), Some(Login::Token("abc".to_owned())));
        assert_eq!(logins.of("lan").unwrap(), None);
        assert!(!logins.of("bad.example").unwrap_err().detail.contains('%'));
        assert_eq!(Logins::default().of("docker.io").unwrap(), None);
        assert_eq!(Logins::open(Some(dir.path().join("gone"))).of("x").unwrap_err().cause, LaunchCause::NodeError);
    }
}

//! Images on the node: manifests by reference, layers unpacked once to folders named by their digests. A layer appears whole or not at
//! all, and one that several steps want at the same time is pulled once.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use oci_client::client::{ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::manifest::{OciDescriptor, OciImageManifest};
use oci_client::secrets::RegistryAuth;
use oci_client::{Client, Reference};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::auth::Logins;
use super::unpack::unpack;
use crate::{LaunchCause, LaunchError};

/// An image that is on the node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Image {
    /// Digest of its manifest.
    pub digest: String,
    /// Folders of its layers, the lowest first.
    pub layers: Vec<PathBuf>,
    pub config: ImageConfig,
}

/// What the image says of how it is to be run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ImageConfig {
    pub env: Vec<String>,
    pub working_dir: String,
}

/// The node's images.
pub struct Images {
    root: PathBuf,
    https: Client,
    http: Client,
    /// Registries without TLS, beside those on loopback.
    insecure: Vec<String>,
    logins: Logins,
    /// One puller a layer.
    pulling: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// Tags that were looked up just now.
    fresh: Mutex<HashMap<String, (Instant, Image)>>,
}

/// A tag may be moved in the registry; for so long it is not asked for again.
const FRESH: Duration = Duration::from_secs(10);
/// Tries of a registry that does not answer.
const TRIES: u32 = 3;

impl Images {
    pub fn open(root: &Path, insecure: Vec<String>, logins: Logins) -> io::Result<Images> {
        for part in ["l", "partial", "manifests"] {
            fs::create_dir_all(root.join(part))?;
        }
        // What a pull left behind that was cut off.
        for entry in fs::read_dir(root.join("partial"))?.flatten() {
            let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
        }
        Ok(Images {
            root: root.canonicalize()?,
            https: client(ClientProtocol::Https),
            http: client(ClientProtocol::Http),
            insecure,
            logins,
            pulling: Mutex::default(),
            fresh: Mutex::default(),
        })
    }

    /// Brings an image to the node: `registry.example/name:tag`, by digest, or `oci:/path/to/layout:tag`.
    pub async fn get(&self, name: &str) -> Result<Image, LaunchError> {
        if let Some((at, image)) = self.fresh.lock().expect("no panic while the lock is held").get(name)
            && at.elapsed() < FRESH
        {
            return Ok(image.clone());
        }
        let image = match name.strip_prefix("oci:") {
            Some(layout) => self.get_from_layout(layout).await?,
            None => self.get_from_registry(name).await?,
        };
        self.fresh.lock().expect("no panic while the lock is held").insert(name.to_owned(), (Instant::now(), image.clone()));
        Ok(image)
    }

    async fn get_from_registry(&self, name: &str) -> Result<Image, LaunchError> {
        let reference: Reference = name
            .parse()
            .map_err(|e| unavailable(format!("{name} is not an image reference: {e}; for example registry.example/torch:2.9")))?;
        let mut pause = Duration::from_millis(200);
        for attempt in 1.. {
            match self.pull(&reference).await {
                Ok(image) => return Ok(image),
                Err(error) if attempt < TRIES && error.cause == LaunchCause::RegistryError => {
                    tokio::time::sleep(pause).await;
                    pause *= 4;
                }
                Err(error) => return Err(LaunchError { detail: format!("{name}: {}", error.detail), ..error }),
            }
        }
        unreachable!("the loop returns")
    }

    /// Of its own where a login is shown: a client keeps to the first login that it was given for a registry.
    fn client(&self, reference: &Reference, has_login: bool) -> Client {
        let registry = reference.resolve_registry();
        let host = registry.rsplit_once(':').map_or(registry, |(host, _)| host);
        let is_loopback = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        let is_plain = is_loopback || self.insecure.iter().any(|r| r == registry);
        match (is_plain, has_login) {
            (true, true) => client(ClientProtocol::Http),
            (false, true) => client(ClientProtocol::Https),
            (true, false) => self.http.clone(),
            (false, false) => self.https.clone(),
        }
    }

    async fn pull(&self, reference: &Reference) -> Result<Image, LaunchError> {
        let auth = self.logins.for_client(reference.registry())?;
        let client = self.client(reference, auth != RegistryAuth::Anonymous);
        // For layers of an image whose manifest is known.
        client.store_auth_if_needed(reference.resolve_registry(), &auth).await;
        let digest = match reference.digest() {
            Some(digest) => digest.to_owned(),
            None => client.fetch_manifest_digest(reference, &auth).await.map_err(registry_error)?,
        };
        let kept = self.root.join("manifests").join(format!("{}.json", digest.replace(':', "-")));
        let (manifest, config): (OciImageManifest, String) = match fs::read(&kept).ok().and_then(|b| serde_json::from_slice(&b).ok()) {
            Some(known) => known,
            None => {
                let (manifest, _, config) = client.pull_manifest_and_config(reference, &auth).await.map_err(registry_error)?;
                let bytes = serde_json::to_vec(&(&manifest, &config)).map_err(|e| node_error(&e.into()))?;
                fs::write(&kept, bytes).map_err(|e| node_error(&e))?;
                (manifest, config)
            }
        };
        let mut layers = Vec::new();
        for layer in &manifest.layers {
            layers.push(
                self.layer(
                    &layer.digest,
                    async |partial: &Path| {
                        let mut file = tokio::fs::File::create(partial).await.map_err(|e| node_error(&e))?;
                        // The client checks the digest while it reads.
                        client.pull_blob(reference, layer, &mut file).await.map_err(registry_error)?;
                        tokio::io::AsyncWriteExt::flush(&mut file).await.map_err(|e| node_error(&e))
                    },
                    layer,
                )
                .await?,
            );
        }
        image(digest, layers, &config)
    }

    /// The layer's folder, filled by `fetch` and unpacked if it is not there.
    async fn layer(
        &self,
        digest: &str,
        fetch: impl AsyncFnOnce(&Path) -> Result<(), LaunchError>,
        about: &OciDescriptor,
    ) -> Result<PathBuf, LaunchError> {
        // Short, since the kernel takes one page for the names of all layers. 96 bits are enough to tell them apart.
        let name: String = digest.rsplit(':').next().unwrap_or_default().chars().filter(char::is_ascii_alphanumeric).take(24).collect();
        let folder = self.root.join("l").join(&name);
        let turn = self.pulling.lock().expect("no panic while the lock is held").entry(name.clone()).or_default().clone();
        let _turn = turn.lock().await;
        if folder.exists() {
            return Ok(folder);
        }
        let blob = self.root.join("partial").join(format!("{name}.blob"));
        let draft = self.root.join("partial").join(&name);
        let _ = fs::remove_dir_all(&draft);
        fetch(&blob).await?;
        let (media_type, target) = (about.media_type.clone(), folder.clone());
        tokio::task::spawn_blocking(move || -> Result<(), LaunchError> {
            fs::create_dir(&draft).map_err(|e| node_error(&e))?;
            let file = fs::File::open(&blob).map_err(|e| node_error(&e))?;
            unpack(decompress(file, &media_type)?, &draft)
                .map_err(|e| unavailable(format!("a layer cannot be unpacked: {}", chain(&e))))?;
            let _ = fs::remove_file(&blob);
            fs::rename(&draft, &target).map_err(|e| node_error(&e))
        })
        .await
        .map_err(|e| node_error(&io::Error::other(e)))??;
        Ok(folder)
    }

    /// An image in an OCI layout on the node's disk: `/path` or `/path:tag`.
    async fn get_from_layout(&self, layout: &str) -> Result<Image, LaunchError> {
        let (path, tag) = match layout.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (Path::new(path), Some(tag)),
            _ => (Path::new(layout), None),
        };
        let read = |file: &Path| fs::read(file).map_err(|e| unavailable(format!("the layout {}: {e}", file.display())));
        let index: Index = parse(&read(&path.join("index.json"))?)?;
        let named = |d: &&Named| tag.is_none() || d.annotations.get("org.opencontainers.image.ref.name").map(String::as_str) == tag;
        let found = index
            .manifests
            .iter()
            .find(named)
            .ok_or_else(|| unavailable(format!("the layout {} has no image {}", path.display(), tag.unwrap_or("at all"))))?;
        let blob = |digest: &str| path.join("blobs").join(digest.replace(':', "/"));
        let manifest: OciImageManifest = parse(&read(&blob(&found.digest))?)?;
        let config = String::from_utf8_lossy(&read(&blob(&manifest.config.digest))?).into_owned();
        let mut layers = Vec::new();
        for layer in &manifest.layers {
            let source = blob(&layer.digest);
            layers.push(
                self.layer(
                    &layer.digest,
                    async |partial: &Path| {
                        fs::copy(&source, partial).map_err(|e| unavailable(format!("the layout's layer {}: {e}", source.display())))?;
                        let found = sha256(partial).map_err(|e| node_error(&e))?;
                        if found == layer.digest {
                            Ok(())
                        } else {
                            Err(unavailable(format!("the layout's layer {} is damaged", layer.digest)))
                        }
                    },
                    layer,
                )
                .await?,
            );
        }
        image(found.digest.clone(), layers, &config)
    }
}

fn client(protocol: ClientProtocol) -> Client {
    Client::new(ClientConfig {
        protocol,
        connect_timeout: Some(Duration::from_secs(10)),
        read_timeout: Some(Duration::from_secs(60)),
        ..ClientConfig::default()
    })
}

#[derive(Deserialize)]
struct Index {
    manifests: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    digest: String,
    #[serde(default)]
    annotations: HashMap<String, String>,
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, LaunchError> {
    serde_json::from_slice(bytes).map_err(|e| unavailable(format!("the image's description is not understood: {e}")))
}

fn image(digest: String, layers: Vec<PathBuf>, config: &str) -> Result<Image, LaunchError> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        config: Option<ImageConfig>,
    }
    let file: File = parse(config.as_bytes())?;
    Ok(Image { digest, layers, config: file.config.unwrap_or_default() })
}

fn sha256(file: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    io::copy(&mut fs::File::open(file)?, &mut hasher)?;
    Ok(format!("sha256:{:x}", hasher.finalize()))
}

fn decompress(file: fs::File, media_type: &str) -> Result<Box<dyn Read>, LaunchError> {
    let file = io::BufReader::new(file);
    Ok(match media_type.rsplit(['+', '.']).next() {
        Some("gzip") => Box::new(flate2::read::MultiGzDecoder::new(file)),
        Some("zstd") => Box::new(zstd::Decoder::new(file).map_err(|e| node_error(&e))?),
        Some("tar") => Box::new(file),
        _ => return Err(unavailable(format!("layers of type {media_type} are not known"))),
    })
}

/// An error with its causes: the archive's own says only what it was at.
fn chain(error: &io::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

fn unavailable(detail: String) -> LaunchError {
    LaunchError { cause: LaunchCause::ImageUnavailable, detail }
}

fn node_error(error: &io::Error) -> LaunchError {
    LaunchError { cause: LaunchCause::NodeError, detail: format!("the image store: {error}") }
}

/// Whose fault it is: an image that is not there is the job's, a registry that is away is nobody's.
fn registry_error(error: OciDistributionError) -> LaunchError {
    let cause = match &error {
        OciDistributionError::ImageManifestNotFoundError(_)
        | OciDistributionError::UnauthorizedError { .. }
        | OciDistributionError::AuthenticationFailure(_)
        | OciDistributionError::DigestError(_)
        | OciDistributionError::ServerError { code: 404, .. } => LaunchCause::ImageUnavailable,
        OciDistributionError::RegistryError { envelope, .. }
            if envelope.errors.iter().any(|e| {
                matches!(
                    e.code,
                    OciErrorCode::ManifestUnknown
                        | OciErrorCode::NameUnknown
                        | OciErrorCode::NotFound
                        | OciErrorCode::Denied
                        | OciErrorCode::Unauthorized
                        | OciErrorCode::BlobUnknown
                )
            }) =>
        {
            LaunchCause::ImageUnavailable
        }
        _ => LaunchCause::RegistryError,
    };
    LaunchError { cause, detail: error.to_string() }
}

//! A registry on loopback with an image of busybox.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use sha2::{Digest, Sha256};

/// The user and password of a registry that asks for them, and what it keeps of them.
const LOGIN: (&str, &str) = ("ann", "secret");
const HASHED: &str = "ann:$2b$04$CRsWMoY9qgxMruMn/Mi1CunZKmCuopBdwjUo3XVIx4Hw6Wa2oIRDG\n";

pub struct Registry {
    child: Child,
    pub address: String,
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Registry {
    pub async fn start(dir: &Path) -> Registry {
        Registry::start_with(&dir.join("registry"), "").await
    }

    /// One that lets nobody in without a login.
    pub async fn start_with_login(dir: &Path) -> Registry {
        let users = dir.join("users");
        std::fs::write(&users, HASHED).unwrap();
        let auth = format!("auth:\n  htpasswd:\n    realm: test\n    path: {}\n", users.display());
        Registry::start_with(&dir.join("private"), &auth).await
    }

    /// What `docker login` would have written for it.
    pub fn login_file(&self) -> String {
        let (username, password) = LOGIN;
        json!({ "auths": { &self.address: { "username": username, "password": password } } }).to_string()
    }

    async fn start_with(store: &Path, auth: &str) -> Registry {
        let port = super::free_port();
        let config = store.with_extension("yml");
        let storage = format!("storage:\n  filesystem:\n    rootdirectory: {}\n", store.display());
        std::fs::write(&config, format!("version: 0.1\n{storage}http:\n  addr: 127.0.0.1:{port}\n{auth}")).unwrap();
        let child = Command::new("docker-registry").arg("serve").arg(&config).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let registry = Registry { child, address: format!("127.0.0.1:{port}") };
        let url = format!("http://{}/v2/", registry.address);
        super::until("the registry answers", async || reqwest::get(&url).await.is_ok_and(|r| matches!(r.status().as_u16(), 200 | 401)))
            .await;
        registry
    }

    /// Pushes busybox in two layers, the second of which removes a file of the first. Gives the image's name.
    pub async fn push_busybox(&self, name: &str) -> String {
        let first = gzip(layer(|tar| {
            folder(tar, "bin");
            for dir in ["etc", "tmp", "root", "proc", "sys", "dev"] {
                folder(tar, dir);
            }
            let busybox = std::fs::read("/bin/busybox").unwrap();
            file(tar, "bin/busybox", &busybox, 0o755);
            let list = Command::new("/bin/busybox").arg("--list").output().unwrap().stdout;
            for applet in String::from_utf8(list).unwrap().lines().filter(|a| *a != "busybox") {
                let mut header = header();
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_size(0);
                header.set_mode(0o777);
                tar.append_link(&mut header, format!("bin/{applet}"), "busybox").unwrap();
            }
            file(tar, "etc/old", b"old", 0o644);
        }));
        let second = gzip(layer(|tar| {
            folder(tar, "etc");
            file(tar, "etc/image", b"from the image\n", 0o644);
            file(tar, "etc/.wh.old", b"", 0o644);
        }));
        let config = json!({
            "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }, "os": "linux",
            "config": { "Env": ["PATH=/bin", "FROM_IMAGE=yes"], "WorkingDir": "/root" },
            "rootfs": { "type": "layers", "diff_ids": [] },
        })
        .to_string()
        .into_bytes();
        let mut layers = Vec::new();
        for bytes in [&first, &second] {
            let digest = self.push_blob(name, bytes).await;
            layers.push(json!({ "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digest, "size": bytes.len() }));
        }
        let config_digest = self.push_blob(name, &config).await;
        let manifest = json!({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": { "mediaType": "application/vnd.oci.image.config.v1+json", "digest": config_digest, "size": config.len() },
            "layers": layers,
        });
        let url = format!("http://{}/v2/{name}/manifests/1", self.address);
        let request = reqwest::Client::new()
            .put(url)
            .basic_auth(LOGIN.0, Some(LOGIN.1))
            .header("content-type", "application/vnd.oci.image.manifest.v1+json");
        let answer = request.body(manifest.to_string()).send().await.unwrap();
        assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap());
        format!("{}/{name}:1", self.address)
    }

    async fn push_blob(&self, name: &str, bytes: &[u8]) -> String {
        let digest = format!("sha256:{:x}", Sha256::digest(bytes));
        let http = reqwest::Client::new();
        let url = format!("http://{}/v2/{name}/blobs/uploads/", self.address);
        let begun = http.post(url).basic_auth(LOGIN.0, Some(LOGIN.1)).send().await.unwrap();
        let location = begun.headers()["location"].to_str().unwrap().to_owned();
        let joint = if location.contains('?') { '&' } else { '?' };
        let request = http.put(format!("{location}{joint}digest={digest}")).basic_auth(LOGIN.0, Some(LOGIN.1));
        let answer = request.body(bytes.to_vec()).send().await.unwrap();
        assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap());
        digest
    }
}

type Layer = tar::Builder<Vec<u8>>;

fn layer(fill: impl FnOnce(&mut Layer)) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    fill(&mut tar);
    tar.into_inner().unwrap()
}

fn folder(tar: &mut Layer, name: &str) {
    let mut header = header();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_size(0);
    header.set_mode(0o755);
    tar.append_data(&mut header, format!("{name}/"), std::io::empty()).unwrap();
}

fn file(tar: &mut Layer, name: &str, bytes: &[u8], mode: u32) {
    let mut header = header();
    header.set_size(bytes.len() as u64);
    header.set_mode(mode);
    tar.append_data(&mut header, name, bytes).unwrap();
}

fn gzip(bytes: Vec<u8>) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&bytes).unwrap();
    encoder.finish().unwrap()
}

fn header() -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

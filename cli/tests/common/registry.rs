//! A registry on loopback with an image of busybox.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use sha2::{Digest, Sha256};

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
        let port = super::free_port();
        let config = dir.join("registry.yml");
        let store = dir.join("registry");
        std::fs::write(
            &config,
            format!("version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: 127.0.0.1:{port}\n", store.display()),
        )
        .unwrap();
        let child = Command::new("docker-registry").arg("serve").arg(&config).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let registry = Registry { child, address: format!("127.0.0.1:{port}") };
        let url = format!("http://{}/v2/", registry.address);
        super::until("the registry answers", async || reqwest::get(&url).await.is_ok_and(|r| r.status() == 200)).await;
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
        let request = reqwest::Client::new().put(url).header("content-type", "application/vnd.oci.image.manifest.v1+json");
        let answer = request.body(manifest.to_string()).send().await.unwrap();
        assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap());
        format!("{}/{name}:1", self.address)
    }

    async fn push_blob(&self, name: &str, bytes: &[u8]) -> String {
        let digest = format!("sha256:{:x}", Sha256::digest(bytes));
        let http = reqwest::Client::new();
        let begun = http.post(format!("http://{}/v2/{name}/blobs/uploads/", self.address)).send().await.unwrap();
        let location = begun.headers()["location"].to_str().unwrap().to_owned();
        let joint = if location.contains('?') { '&' } else { '?' };
        let answer = http.put(format!("{location}{joint}digest={digest}")).body(bytes.to_vec()).send().await.unwrap();
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

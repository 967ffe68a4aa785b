//! Builds the helper that goes inside jobs as a static program, to be embedded here. A build of its own, since it is linked
//! differently from all the rest.

use std::path::Path;
use std::process::Command;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace is one up");
    for part in ["worker/helper", "worker/runtime/src", "model/src", "model/Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
    }
    let env = |name: &str| std::env::var(name).unwrap_or_default();
    let (target, out) = (env("TARGET"), env("OUT_DIR"));
    let target_dir = Path::new(&out).join("helper");
    // With a target named, the flags are for the program alone and not for build scripts and macros.
    let mut build = Command::new(env("CARGO"));
    build
        .current_dir(root)
        .args(["build", "--release", "--locked", "-p", "berth-helper", "--target", &target])
        .arg("--target-dir")
        .arg(&target_dir);
    build.env("RUSTFLAGS", "-C target-feature=+crt-static -C strip=symbols").env("CARGO_PROFILE_RELEASE_LTO", "thin");
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "RUSTC_WRAPPER", "CARGO_BUILD_TARGET"] {
        build.env_remove(name);
    }
    let status = build.status().expect("cargo can be run");
    assert!(status.success(), "the helper could not be built");
    let made = target_dir.join(&target).join("release/berth-helper");
    std::fs::copy(made, Path::new(&out).join("berth-helper")).expect("the helper is there");
}

//! Checks of a spec's paths: container, mounts, working directory, output files.

use std::collections::BTreeSet;

use super::{Faults, quoted};
use crate::job::JobSpec;

const MAX_PATH_BYTES: usize = 4096;
const MAX_MOUNTS: usize = 256;
const MAX_IMAGE_BYTES: usize = 1024;

pub(super) fn check_container(spec: &JobSpec, faults: &mut Faults) {
    let Some(container) = &spec.container else { return };
    let image = &container.image;
    let is_image = !image.is_empty() && image.len() <= MAX_IMAGE_BYTES && !image.chars().any(|c| c.is_whitespace() || c.is_control());
    if !is_image {
        faults.add(
            "invalid_image",
            "container.image",
            format!("{} is not an image reference", quoted(image)),
            "write registry, name and tag or digest, without spaces; for example registry.example/torch:2.9",
        );
    }
    if container.mounts.len() > MAX_MOUNTS {
        faults.add(
            "too_many_mounts",
            "container.mounts",
            format!("there are {} mounts", container.mounts.len()),
            format!("at most {MAX_MOUNTS} are allowed; mount a directory above them"),
        );
        return;
    }
    let mut targets = BTreeSet::new();
    for (i, mount) in container.mounts.iter().enumerate() {
        for (end, path) in [("source", &mount.source), ("target", &mount.target)] {
            if let Some(flaw) = flaw_of_path(path) {
                faults.add(
                    "invalid_mount",
                    format!("container.mounts[{i}].{end}"),
                    format!("{} {flaw}", quoted(path)),
                    "mounts are absolute paths without \"..\"; for example /data/imagenet",
                );
            }
        }
        let target = mount.target.trim_end_matches('/');
        if target.is_empty() && mount.target.starts_with('/') {
            faults.add(
                "invalid_mount",
                format!("container.mounts[{i}].target"),
                "the mount would cover the image's root",
                "mount below the root; for example /data",
            );
        } else if !targets.insert(target) {
            faults.add(
                "duplicate_mount",
                format!("container.mounts[{i}].target"),
                format!("{} is mounted twice", quoted(target)),
                "give each mount a target of its own; for example /data and /models",
            );
        }
    }
}

pub(super) fn check_files(spec: &JobSpec, faults: &mut Faults) {
    if let Some(path) = &spec.working_directory
        && let Some(flaw) = flaw_of_directory(path)
    {
        faults.add(
            "invalid_working_directory",
            "working_directory",
            format!("{} {flaw}", quoted(path)),
            "write an absolute path; for example /home/ada/run1",
        );
    }
    for (field, pattern) in [("stdout", &spec.stdout), ("stderr", &spec.stderr), ("stdin", &spec.stdin)] {
        let Some(pattern) = pattern else { continue };
        let flaw = if pattern.is_empty() {
            "is empty"
        } else if pattern.contains('\0') {
            "holds a NUL character"
        } else if pattern.len() > MAX_PATH_BYTES {
            "is too long"
        } else {
            continue;
        };
        faults.add(
            "invalid_path",
            field,
            format!("{} {flaw}", quoted(pattern)),
            "write a path, with patterns such as %j where wanted; for example logs/%x-%j.out",
        );
    }
}

fn flaw_of_directory(path: &str) -> Option<&'static str> {
    match path {
        _ if !path.starts_with('/') => Some("is not an absolute path"),
        _ if path.contains('\0') => Some("holds a NUL character"),
        _ if path.len() > MAX_PATH_BYTES => Some("is too long"),
        _ => None,
    }
}

fn flaw_of_path(path: &str) -> Option<&'static str> {
    flaw_of_directory(path).or_else(|| path.split('/').any(|part| part == "..").then_some("has \"..\" in it"))
}

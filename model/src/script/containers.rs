//! Container options: Slurm's `--container` and pyxis' `--container-image` and `--container-mounts`.

use super::values::Flaw;
use crate::job::MountSpec;

/// An image in the notation of registries: enroot's `docker://nvcr.io#nvidia/pytorch:25.01` becomes `nvcr.io/nvidia/pytorch:25.01`.
pub(super) fn image(text: &str) -> Result<String, Flaw> {
    if text.ends_with(".sqsh") || text.ends_with(".squashfs") {
        return Err("is a squashfs file, which is not supported; use a registry or an OCI layout".to_owned());
    }
    let bare = text.strip_prefix("docker://").or_else(|| text.strip_prefix("dockerd://")).unwrap_or(text);
    Ok(bare.replacen('#', "/", 1))
}

/// `source:target[:flags],…`; `source` alone is mounted at the same place. Flags other than `ro` and `rw` are given back.
pub(super) fn mounts(text: &str) -> Result<(Vec<MountSpec>, Vec<String>), Flaw> {
    let (mut mounts, mut ignored) = (Vec::new(), Vec::new());
    for item in text.split(',') {
        let parts: Vec<&str> = item.split(':').collect();
        let (source, target, flags) = match parts.as_slice() {
            [path] => (*path, *path, ""),
            [source, target] => (*source, *target, ""),
            [source, target, flags] => (*source, *target, *flags),
            _ => return Err("is not a list of source:target[:ro]".to_owned()),
        };
        if source.is_empty() || target.is_empty() {
            return Err("has a mount without source or target".to_owned());
        }
        let mut read_only = false;
        for flag in flags.split('+').filter(|f| !f.is_empty()) {
            match flag {
                "ro" => read_only = true,
                "rw" => read_only = false,
                other => ignored.push(other.to_owned()),
            }
        }
        mounts.push(MountSpec { source: source.to_owned(), target: target.to_owned(), read_only });
    }
    Ok((mounts, ignored))
}

//! Image layers unpacked as overlay layers: whiteouts become the kernel's own, and nothing leaves the folder.

use std::ffi::CString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// A name that hides a file of the layers below.
const WHITEOUT: &str = ".wh.";
/// In a folder: hides all of it in the layers below.
const OPAQUE: &str = ".wh..wh..opq";

/// Unpacks a tar stream into `dir`.
pub fn unpack(stream: impl Read, dir: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(stream);
    archive.set_preserve_permissions(true);
    archive.set_preserve_ownerships(true);
    archive.set_overwrite(true);
    // Folders get their modes last, so that a read-only one can be filled.
    let mut folders = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.into_owned();
        if path.components().any(|c| !matches!(c, Component::Normal(_) | Component::CurDir)) {
            return Err(io::Error::other(format!("a layer names {}, which is outside of it", path.display())));
        }
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        if name == OPAQUE || name.starts_with(WHITEOUT) {
            let Some(parent) = path.parent() else { continue };
            let parent = inside(dir, parent)?;
            fs::create_dir_all(&parent)?;
            if name == OPAQUE { hide_below(&parent)? } else { hide(&parent.join(&name[WHITEOUT.len()..]))? }
        } else if entry.header().entry_type().is_dir() {
            folders.push(entry);
        } else if !entry.unpack_in(dir)? {
            return Err(io::Error::other(format!("a layer's {} would be outside of it", path.display())));
        }
    }
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.path().map(|p| p.into_owned()).unwrap_or_default()));
    for mut folder in folders {
        folder.unpack_in(dir)?;
    }
    Ok(())
}

/// The folder's place, if no symbolic link leads out of `dir` on the way.
fn inside(dir: &Path, relative: &Path) -> io::Result<std::path::PathBuf> {
    let mut at = dir.to_owned();
    for part in relative.components() {
        if let Component::Normal(name) = part {
            at.push(name);
            if at.is_symlink() {
                return Err(io::Error::other(format!("a layer hides a file behind the link {}", relative.display())));
            }
        }
    }
    Ok(at)
}

/// The kernel's whiteout: a character device 0:0.
fn hide(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // Safety: the name is a valid string for the call's time.
    if unsafe { libc::mknod(name.as_ptr(), libc::S_IFCHR | 0o600, 0) } != 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::AlreadyExists {
            return Err(error);
        }
    }
    Ok(())
}

/// The kernel's mark of a folder that hides what is below.
fn hide_below(folder: &Path) -> io::Result<()> {
    let name = CString::new(folder.as_os_str().as_bytes())?;
    // Safety: all pointers are to values that live through the call.
    let set = unsafe { libc::setxattr(name.as_ptr(), c"trusted.overlay.opaque".as_ptr(), c"y".as_ptr().cast(), 1, 0) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(build: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        build(&mut builder);
        builder.into_inner().unwrap()
    }

    fn add(builder: &mut tar::Builder<Vec<u8>>, kind: tar::EntryType, name: &str, link: Option<&str>, data: &[u8]) {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_size(data.len() as u64);
        header.set_mode(0o755);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        if let Some(link) = link {
            header.set_link_name(link).unwrap();
        }
        // Set by hand: the builder refuses the names that are tested here.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, data).unwrap();
    }

    #[test]
    fn files_links_and_whiteouts_are_unpacked() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = layer(|b| {
            add(b, tar::EntryType::Directory, "etc/", None, b"");
            add(b, tar::EntryType::Regular, "etc/conf", None, b"x=1");
            add(b, tar::EntryType::Symlink, "etc/link", Some("/etc/conf"), b"");
            add(b, tar::EntryType::Link, "etc/hard", Some("etc/conf"), b"");
            add(b, tar::EntryType::Regular, "etc/.wh.gone", None, b"");
        });
        unpack(bytes.as_slice(), dir.path()).unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("etc/hard")).unwrap(), "x=1");
        assert_eq!(fs::read_link(dir.path().join("etc/link")).unwrap(), Path::new("/etc/conf"));
        let gone = fs::symlink_metadata(dir.path().join("etc/gone")).unwrap();
        assert!(std::os::unix::fs::FileTypeExt::is_char_device(&gone.file_type()));
    }

    #[test]
    fn nothing_leaves_the_folder() {
        for (name, link) in [("../evil", None), ("/abs/../../evil", None), ("a/../../evil", None)] {
            let dir = tempfile::tempdir().unwrap();
            let target = dir.path().join("layer");
            fs::create_dir(&target).unwrap();
            let bytes = layer(|b| add(b, tar::EntryType::Regular, name, link, b"evil"));
            assert!(unpack(bytes.as_slice(), &target).is_err(), "{name}");
            assert!(!dir.path().join("evil").exists());
        }
        // Through a link that the layer itself brings.
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("layer");
        fs::create_dir(&target).unwrap();
        let bytes = layer(|b| {
            add(b, tar::EntryType::Symlink, "out", Some(".."), b"");
            add(b, tar::EntryType::Regular, "out/evil", None, b"evil");
        });
        assert!(unpack(bytes.as_slice(), &target).is_err());
        assert!(!dir.path().join("evil").exists());
        let bytes = layer(|b| {
            add(b, tar::EntryType::Symlink, "out", Some(".."), b"");
            add(b, tar::EntryType::Regular, "out/.wh.evil", None, b"");
        });
        assert!(unpack(bytes.as_slice(), &target).is_err());
        assert!(!dir.path().join("evil").exists());
    }
}

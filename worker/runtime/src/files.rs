//! Files that a job names: opened with the rights of the job's user, and written by all streams that name the same one.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::UserIds;

/// A user's file that gets a copy of the output.
#[derive(Debug)]
pub struct Copy {
    pub path: PathBuf,
    pub file: File,
}

/// The copies of one step: streams that name the same file, in whatever spelling, share it.
#[derive(Debug, Default)]
pub struct Copies(BTreeMap<(u64, u64), Arc<Copy>>);

impl Copies {
    /// Opens `path` for appending, so that several writers lose nothing of each other; the first of a step empties it if asked to.
    pub fn open(&mut self, path: &Path, truncate: bool, user: Option<UserIds>) -> io::Result<Arc<Copy>> {
        let file = append(path, user)?;
        let metadata = file.metadata()?;
        let key = (metadata.dev(), metadata.ino());
        if let Some(copy) = self.0.get(&key) {
            return Ok(copy.clone());
        }
        if truncate && metadata.is_file() {
            file.set_len(0)?;
        }
        let copy = Arc::new(Copy { path: path.to_owned(), file });
        self.0.insert(key, copy.clone());
        Ok(copy)
    }
}

/// Opens a file for appending as `user`, making it if it is not there. A pipe without a reader is an error, not a wait.
pub fn append(path: &Path, user: Option<UserIds>) -> io::Result<File> {
    let file = as_user(user, || OpenOptions::new().create(true).append(true).custom_flags(libc::O_NONBLOCK).open(path))?;
    // Safety: plain system calls on our own descriptor. Writing may wait.
    unsafe {
        let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK);
    }
    Ok(file)
}

/// This process's standard input is a file or a pipe: something to pass on. A terminal and `/dev/null` are not.
pub fn has_input() -> bool {
    // Safety: the pointer is to our own value, filled in by the call.
    let status = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        if libc::fstat(libc::STDIN_FILENO, &mut status) != 0 || libc::isatty(libc::STDIN_FILENO) == 1 {
            return false;
        }
        status
    };
    // 1:3 is Linux's number of /dev/null.
    status.st_mode & libc::S_IFMT != libc::S_IFCHR || status.st_rdev != libc::makedev(1, 3)
}

/// Does it with the rights of `user`, in a thread of its own, whose rights alone change.
pub fn as_user<T: Send>(user: Option<UserIds>, act: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    // Safety: a plain system call.
    let is_root = unsafe { libc::geteuid() } == 0;
    let Some(UserIds { uid, gid }) = user.filter(|_| is_root) else { return act() };
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            // Safety: the raw calls, unlike libc's own, change this thread alone; no pointer but a null one is given.
            let has_dropped = unsafe {
                libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) == 0
                    && libc::syscall(libc::SYS_setresgid, gid, gid, gid) == 0
                    && libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0
            };
            if has_dropped { act() } else { Err(io::Error::last_os_error()) }
        });
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that opens files died")))
    })
}

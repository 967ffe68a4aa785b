//! A private Postgres from installed binaries, in a data directory of its own: for `berth up` and for tests.
//!
//! It listens on a unix socket within its directory and on a port of loopback. Postgres refuses to run as root, so started by root it
//! runs as the system's user `postgres`.

use std::fs;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server. Dropping it stops it the fast way: sessions are cut, nothing that was committed is lost.
#[derive(Debug)]
pub struct Postgres {
    child: Child,
    dir: PathBuf,
    port: u16,
    password: String,
}

/// Ports that are tried where any will do.
const PORTS_TRIED: usize = 5;

/// Who the server runs as, when we are root.
#[derive(Clone, Copy)]
struct Owner {
    uid: u32,
    gid: u32,
}

impl Postgres {
    /// Starts the server in `dir`, initialising it the first time. `port` 0 takes a free one.
    pub fn start(dir: &Path, port: u16) -> io::Result<Postgres> {
        let bin = find_binaries()?;
        let owner = if is_root() { Some(postgres_user()?) } else { None };
        fs::create_dir_all(dir)?;
        let dir = dir.canonicalize()?;
        let cluster = dir.join("cluster");
        if let Some(owner) = owner {
            std::os::unix::fs::chown(&dir, Some(owner.uid), Some(owner.gid))?;
        }
        if !cluster.join("PG_VERSION").exists() {
            init(&bin, &dir, &cluster, owner)?;
        }
        stop_orphan(&cluster, owner)?;
        let password = fs::read_to_string(dir.join("password"))?.trim().to_owned();
        let ports: Vec<u16> = if port == 0 { (0..PORTS_TRIED).map(|_| free_port()).collect::<io::Result<_>>()? } else { vec![port] };
        Postgres::start_on(&bin, &dir, &password, owner, &ports)
    }

    /// Starts on the first of these ports on which the server does not end at once. Between looking for a free port and taking it another
    /// process may have it.
    fn start_on(bin: &Path, dir: &Path, password: &str, owner: Option<Owner>, ports: &[u16]) -> io::Result<Postgres> {
        let mut last = io::Error::new(io::ErrorKind::InvalidInput, "there is no port to listen on");
        for port in ports {
            let child = spawn(bin, dir, *port, owner)?;
            let mut server = Postgres { child, dir: dir.to_owned(), port: *port, password: password.to_owned() };
            match server.wait_until_ready(bin) {
                Ok(()) => return Ok(server),
                Err(error) if server.child.try_wait()?.is_some() => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// Starts the server again, on the same port, if it has ended by itself. `true` if it had.
    pub fn revive(&mut self) -> io::Result<bool> {
        if self.child.try_wait()?.is_none() {
            return Ok(false);
        }
        let bin = find_binaries()?;
        let owner = if is_root() { Some(postgres_user()?) } else { None };
        stop_orphan(&self.dir.join("cluster"), owner)?;
        self.child = spawn(&bin, &self.dir, self.port, owner)?;
        self.wait_until_ready(&bin)?;
        Ok(true)
    }

    /// Where to connect.
    pub fn url(&self) -> String {
        format!("postgres://berth:{}@127.0.0.1:{}/postgres?sslmode=disable", self.password, self.port)
    }

    fn wait_until_ready(&mut self, bin: &Path) -> io::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!(
                    "Postgres ended at once ({status}); its log is {}",
                    self.dir.join("postgres.log").display()
                )));
            }
            let answers = TcpStream::connect(("127.0.0.1", self.port)).is_ok();
            if answers && is_ready(bin, self.port)? {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("Postgres did not start within a minute; its log is {}", self.dir.join("postgres.log").display()),
                ));
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Stops the server and waits for it.
    pub fn stop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // SIGINT is Postgres' fast shutdown. Safety: a plain system call on our own child, which has not been waited for.
            unsafe { libc::kill(self.child.id() as i32, libc::SIGINT) };
            let _ = self.child.wait();
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

fn spawn(bin: &Path, dir: &Path, port: u16, owner: Option<Owner>) -> io::Result<Child> {
    let log = fs::OpenOptions::new().create(true).append(true).open(dir.join("postgres.log"))?;
    as_owner(&bin.join("postgres"), owner)
        .arg("-D")
        .arg(dir.join("cluster"))
        .args(["-c", &format!("port={port}"), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="])
        .args(["-c", "max_connections=200", "-c", "shared_buffers=128MB"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        // Its own group, so that a Ctrl-C in the terminal does not stop it before those who use it.
        .process_group(0)
        .spawn()
}

/// Stops a server that a killed process left behind. It would serve on, but on a port that nobody watches over.
fn stop_orphan(cluster: &Path, owner: Option<Owner>) -> io::Result<()> {
    let Some(pid) = orphan(cluster, owner) else { return Ok(()) };
    // Safety (both calls): plain system calls on a process that was just seen to be a Postgres of this directory.
    unsafe { libc::kill(pid, libc::SIGINT) };
    let deadline = Instant::now() + Duration::from_secs(20);
    while unsafe { libc::kill(pid, 0) } == 0 {
        if Instant::now() > deadline {
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("a Postgres of an earlier start (process {pid}) does not stop")));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The process that `postmaster.pid` names, if it lives, is the owner's, and is a server of this directory.
fn orphan(cluster: &Path, owner: Option<Owner>) -> Option<i32> {
    use std::os::unix::fs::MetadataExt;
    let pid: i32 = fs::read_to_string(cluster.join("postmaster.pid")).ok()?.lines().next()?.trim().parse().ok()?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let is_ours = command.split(|b| *b == 0).any(|arg| arg == cluster.as_os_str().as_encoded_bytes());
    let uid = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    (is_ours && owner.is_none_or(|o| o.uid == uid)).then_some(pid)
}

fn is_root() -> bool {
    // Safety: the call has no preconditions.
    unsafe { libc::geteuid() == 0 }
}

/// The newest version's folder of binaries.
fn find_binaries() -> io::Result<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten() {
        let version = entry.file_name().to_string_lossy().parse().unwrap_or(0);
        let bin = entry.path().join("bin");
        if bin.join("initdb").exists() {
            found.push((version, bin));
        }
    }
    for folder in std::env::var("PATH").unwrap_or_default().split(':') {
        if Path::new(folder).join("initdb").exists() {
            found.push((0, PathBuf::from(folder)));
        }
    }
    found
        .into_iter()
        .max()
        .map(|(_, bin)| bin)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "Postgres is not installed; on Debian: apt-get install postgresql-15"))
}

fn postgres_user() -> io::Result<Owner> {
    let passwd = fs::read_to_string("/etc/passwd")?;
    let line = passwd
        .lines()
        .find(|l| l.starts_with("postgres:"))
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no user postgres to run the database as"))?;
    let mut ids = line.split(':').skip(2).map(|id| id.parse::<u32>().map_err(io::Error::other));
    match (ids.next(), ids.next()) {
        (Some(uid), Some(gid)) => Ok(Owner { uid: uid?, gid: gid? }),
        _ => Err(io::Error::other("the user postgres has no ids")),
    }
}

fn as_owner(program: &Path, owner: Option<Owner>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/");
    if let Some(owner) = owner {
        command.gid(owner.gid).uid(owner.uid);
    }
    command
}

fn init(bin: &Path, dir: &Path, cluster: &Path, owner: Option<Owner>) -> io::Result<()> {
    let password = random_text()?;
    let file = dir.join("password");
    let mut out = fs::OpenOptions::new().write(true).create(true).truncate(true).mode_private().open(&file)?;
    writeln!(out, "{password}")?;
    if let Some(owner) = owner {
        std::os::unix::fs::chown(&file, Some(owner.uid), Some(owner.gid))?;
    }
    let output = as_owner(&bin.join("initdb"), owner)
        .args(["--username=berth", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"])
        .arg(format!("--pwfile={}", file.display()))
        .arg("-D")
        .arg(cluster)
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("initdb failed: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

trait PrivateMode {
    fn mode_private(&mut self) -> &mut Self;
}

impl PrivateMode for fs::OpenOptions {
    fn mode_private(&mut self) -> &mut Self {
        use std::os::unix::fs::OpenOptionsExt;
        self.mode(0o600)
    }
}

/// 128 random bits as text.
fn random_text() -> io::Result<String> {
    use std::io::Read;
    let mut bytes = [0u8; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn is_ready(bin: &Path, port: u16) -> io::Result<bool> {
    let program = bin.join("pg_isready");
    if !program.exists() {
        return Ok(true);
    }
    let status = Command::new(program).args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]).status()?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_another_process_has_taken_meanwhile_is_passed_over() {
        let home = tempfile::tempdir().unwrap();
        fs::set_permissions(home.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut first = Postgres::start(home.path(), 0).unwrap();
        first.stop();
        let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let ports = [taken.local_addr().unwrap().port(), free_port().unwrap()];
        let owner = if is_root() { Some(postgres_user().unwrap()) } else { None };
        let start = |ports: &[u16]| Postgres::start_on(&find_binaries().unwrap(), &first.dir, &first.password, owner, ports);
        assert_eq!(start(&ports).unwrap().port, ports[1]);
        assert!(start(&ports[..1]).unwrap_err().to_string().contains("ended at once"));
    }
}

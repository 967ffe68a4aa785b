//! The operator's programs: prolog, epilog, health check.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Longest run of a hook.
const PATIENCE: Duration = Duration::from_secs(300);

/// Runs `program`. `Err`: what it printed or why it could not run, one line.
pub async fn run(program: &Path, env: &BTreeMap<String, String>) -> Result<(), String> {
    let mut command = tokio::process::Command::new(program);
    command.env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").envs(env);
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let name = program.display();
    let child = command.spawn().map_err(|e| format!("{name} cannot be run: {e}"))?;
    let output = match tokio::time::timeout(PATIENCE, child.wait_with_output()).await {
        Ok(output) => output.map_err(|e| format!("{name}: {e}"))?,
        Err(_) => return Err(format!("{name} did not end within {} s", PATIENCE.as_secs())),
    };
    if output.status.success() {
        return Ok(());
    }
    let said = [&output.stdout, &output.stderr].into_iter().find_map(|text| {
        String::from_utf8_lossy(text).lines().map(str::trim).find(|l| !l.is_empty()).map(|l| l.chars().take(200).collect::<String>())
    });
    Err(said.unwrap_or_else(|| format!("{name}: {}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hook_says_why_it_failed() {
        let dir = tempfile::tempdir().unwrap();
        let hook = dir.path().join("hook");
        let write = |text: &str| {
            std::fs::write(&hook, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        };
        write("test $X = 1");
        assert_eq!(run(&hook, &BTreeMap::from([("X".to_owned(), "1".to_owned())])).await, Ok(()));
        write("echo; echo 'disk is full' >&2; exit 3");
        assert_eq!(run(&hook, &BTreeMap::new()).await, Err("disk is full".to_owned()));
        assert!(run(&dir.path().join("none"), &BTreeMap::new()).await.unwrap_err().contains("cannot be run"));
    }
}

//! The process driver with real processes, real cgroups where they can be written, and a real shim.

use std::collections::BTreeMap;
use std::path::Path;

use berth_runtime::cgroup::Layout;
use berth_runtime::process::Process;
use berth_runtime::{LaunchCause, LaunchSpec, Limits, Runtime, StepExit, StepKey, StepPhase, TaskSpec};

fn driver(dir: &Path) -> Process {
    Process::open(&dir.join("steps"), vec![env!("CARGO_BIN_EXE_berth-test-shim").to_owned()]).unwrap()
}

/// Job numbers differ between tests, since cgroups are the whole machine's.
fn spec(dir: &Path, script: &str) -> LaunchSpec {
    let job = u64::from(std::process::id()) * 1000
        + u64::from(std::sync::atomic::AtomicU32::fetch_add(&NEXT, 1, std::sync::atomic::Ordering::Relaxed));
    LaunchSpec {
        key: StepKey { job, attempt: 1, step: "batch".to_owned() },
        hostname: None,
        argv: Vec::new(),
        script: Some(format!("#!/bin/sh\n{script}\n")),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned()), ("COLOUR".to_owned(), "blue".to_owned())]),
        tasks: vec![task(dir, 0)],
        cwd: Some(dir.to_owned()),
        user: None,
        image: None,
        mounts: Vec::new(),
        limits: Limits::default(),
        job_limits: Limits::default(),
        gpus: Vec::new(),
        no_network: false,
        tools_dir: None,
        agent_socket: None,
        scratch_dir: None,
        read_only_root: false,
        cgroup_parent: "berth/test".to_owned(),
        lease: None,
        kill_on_bad_exit: false,
    }
}

static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

fn task(dir: &Path, rank: u32) -> TaskSpec {
    TaskSpec {
        rank,
        env: BTreeMap::from([("SLURM_PROCID".to_owned(), rank.to_string())]),
        cores: Vec::new(),
        gpus: Vec::new(),
        stdout: dir.join(format!("{rank}.out")),
        stderr: dir.join(format!("{rank}.err")),
        tee_stdout: None,
        tee_stderr: None,
        tee_truncate: false,
        stdin: None,
        stdin_spool: None,
    }
}

async fn run(driver: &Process, spec: &LaunchSpec) -> StepExit {
    driver.prepare(spec).await.unwrap();
    driver.start(&spec.key).await.unwrap();
    let exit = driver.wait(&spec.key).await.unwrap();
    driver.delete(&spec.key).await.unwrap();
    exit
}

#[tokio::test]
async fn tasks_run_with_their_environment_and_their_ends_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let driver = driver(dir.path());
    let mut spec = spec(dir.path(), "echo $COLOUR $SLURM_PROCID; echo oops >&2; exit $SLURM_PROCID");
    spec.tasks.push(task(dir.path(), 7));
    spec.tasks[1].tee_stdout = Some("copy.txt".into());
    let exit = run(&driver, &spec).await;
    assert_eq!(exit.tasks.iter().map(|t| (t.rank, t.code)).collect::<Vec<_>>(), [(0, Some(0)), (7, Some(7))]);
    assert_eq!(std::fs::read_to_string(dir.path().join("7.out")).unwrap(), "blue 7\n");
    assert_eq!(std::fs::read_to_string(dir.path().join("copy.txt")).unwrap(), "blue 7\n");
    assert_eq!(std::fs::read_to_string(dir.path().join("0.err")).unwrap(), "oops\n");
    assert!(driver.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn streams_that_name_the_same_file_lose_nothing_of_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let driver = driver(dir.path());
    let file = dir.path().join("both.txt");
    for (spelling, truncate) in [("both.txt", true), ("./both.txt", true), ("both.txt", false)] {
        std::fs::write(&file, "old\n").unwrap();
        let mut spec = spec(dir.path(), "for i in 1 2 3; do echo out $SLURM_PROCID $i; echo err $SLURM_PROCID $i >&2; done");
        spec.tasks.push(task(dir.path(), 1));
        for task in &mut spec.tasks {
            (task.tee_stdout, task.tee_stderr, task.tee_truncate) = (Some("both.txt".into()), Some(spelling.into()), truncate);
        }
        let exit = run(&driver, &spec).await;
        assert_eq!(exit.failure, None);
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), if truncate { 12 } else { 13 }, "{text}");
        assert_eq!(text.starts_with("old"), !truncate);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_opened_fails_the_step_before_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let driver = driver(dir.path());
    std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let locked = dir.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    let is_root = unsafe { libc::geteuid() } == 0;
    let mut cases = vec![("no/such/out", None), ("/dev/null/x", None)];
    if is_root {
        // A folder of root's, written as another user.
        cases.push(("locked/out", Some(berth_runtime::UserIds { uid: 65_534, gid: 65_534 })));
    }
    for (path, user) in cases {
        let mut spec = spec(dir.path(), "touch ran");
        (spec.tasks[0].tee_stdout, spec.user) = (Some(path.into()), user);
        let failure = run(&driver, &spec).await.failure.unwrap();
        assert_eq!(failure.cause, LaunchCause::FileError);
        assert!(failure.detail.contains(path) && failure.detail.contains("cannot be written"), "{}", failure.detail);
        assert!(!dir.path().join("ran").exists());
    }
    let mut spec = spec(dir.path(), "touch ran");
    spec.tasks[0].stdin = Some("nothing".into());
    assert_eq!(run(&driver, &spec).await.failure.unwrap().cause, LaunchCause::FileError);
}

#[tokio::test]
async fn input_is_passed_on_as_it_arrives_and_ends_with_its_mark() {
    let dir = tempfile::tempdir().unwrap();
    let driver = driver(dir.path());
    let mut spec = spec(dir.path(), "read first; echo got $first; cat");
    let spool = dir.path().join("input");
    spec.tasks[0].stdin_spool = Some(spool.clone());
    driver.prepare(&spec).await.unwrap();
    driver.start(&spec.key).await.unwrap();
    std::fs::write(&spool, "one\n").unwrap();
    let out = dir.path().join("0.out");
    while std::fs::read_to_string(&out).unwrap_or_default() != "got one\n" {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    std::fs::write(&spool, "one\ntwo").unwrap();
    std::fs::write(dir.path().join("input.end"), "").unwrap();
    assert_eq!(driver.wait(&spec.key).await.unwrap().tasks[0].code, Some(0));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "got one\ntwo");
    driver.delete(&spec.key).await.unwrap();
}

#[tokio::test]
async fn a_program_that_is_not_there_is_told_apart_from_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = spec(dir.path(), "");
    spec.script = None;
    spec.argv = vec!["no-such-program".to_owned()];
    let exit = run(&driver(dir.path()), &spec).await;
    assert_eq!(exit.failure.unwrap().cause, LaunchCause::ExecNotFound);
}

#[tokio::test]
async fn a_restarted_agent_finds_its_step_and_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec(dir.path(), "sleep 1; exit 5");
    let first = driver(dir.path());
    first.prepare(&spec).await.unwrap();
    first.start(&spec.key).await.unwrap();
    drop(first);
    let second = driver(dir.path());
    assert_eq!(second.list().await.unwrap()[0].phase, StepPhase::Running);
    assert_eq!(second.wait(&spec.key).await.unwrap().tasks[0].code, Some(5));
    assert_eq!(second.list().await.unwrap()[0].phase, StepPhase::Exited);
    second.delete(&spec.key).await.unwrap();
}

#[tokio::test]
async fn a_kill_reaches_what_ignores_signals_and_what_ran_away() {
    let dir = tempfile::tempdir().unwrap();
    let driver = driver(dir.path());
    let spec = spec(dir.path(), "trap '' TERM; setsid sleep 300 & echo up; sleep 300; sleep 300");
    driver.prepare(&spec).await.unwrap();
    driver.start(&spec.key).await.unwrap();
    while std::fs::read_to_string(dir.path().join("0.out")).unwrap_or_default() != "up\n" {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    driver.signal(&spec.key, libc::SIGUSR2, false).await.unwrap();
    driver.kill(&spec.key).await.unwrap();
    let exit = driver.wait(&spec.key).await.unwrap();
    assert!(exit.tasks[0].signal.is_some(), "{exit:?}");
    driver.delete(&spec.key).await.unwrap();
}

#[tokio::test]
async fn limits_hold_where_cgroups_can_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let driver = driver(dir.path());
    if Layout::detect() == Layout::None {
        println!("cgroups cannot be written here: limits are not tested");
        return;
    }
    let mut hog = spec(dir.path(), "x=a; while :; do x=$x$x; done");
    hog.limits.memory_bytes = Some(64 << 20);
    let exit = run(&driver, &hog).await;
    assert!(exit.oom_killed, "{exit:?}");
    assert!(exit.usage.memory_peak_bytes > 32 << 20, "{exit:?}");

    let mut bomb = spec(dir.path(), "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1 & done; wait");
    bomb.limits.pids = Some(6);
    run(&driver, &bomb).await;
    assert!(std::fs::read_to_string(dir.path().join("0.err")).unwrap().to_lowercase().contains("fork"));

    let mut bound = spec(dir.path(), "grep Cpus_allowed_list /proc/self/status");
    bound.limits.cores = vec![1];
    run(&driver, &bound).await;
    assert!(std::fs::read_to_string(dir.path().join("0.out")).unwrap().trim_end().ends_with("\t1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_ends_when_the_agents_lease_has_run_out() {
    let dir = tempfile::tempdir().unwrap();
    let driver = driver(dir.path());
    let lease = dir.path().join("lease");
    let now = berth_runtime::fence::since_boot();
    berth_runtime::fence::renew(&lease, now + std::time::Duration::from_millis(500)).unwrap();
    let spec = LaunchSpec { lease: Some(lease), ..spec(dir.path(), "sleep 60") };
    let exit = run(&driver, &spec).await;
    assert_eq!(exit.failure.map(|f| f.cause), Some(LaunchCause::CutOff));
    assert_eq!(exit.tasks[0].signal, Some(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_exit_takes_the_other_tasks_with_it_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let driver = driver(dir.path());
    let script = "[ $SLURM_PROCID = 1 ] && exit 3; sleep 60";
    let tasks = vec![task(dir.path(), 0), task(dir.path(), 1)];
    let spec = LaunchSpec { kill_on_bad_exit: true, tasks, ..spec(dir.path(), script) };
    let exit = run(&driver, &spec).await;
    assert_eq!((exit.tasks[0].signal, exit.tasks[1].code), (Some(9), Some(3)));
}

/// Lines that a file has by now.
fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn a_frozen_step_stands_still_with_all_its_children_until_it_goes_on_or_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let driver = driver(dir.path());
    // Forks all the time, in a process group of its own too, and heeds no signal.
    let script =
        "trap '' TSTP TERM\n(setsid sh -c 'while :; do echo run >> away.txt; sleep 0.01; done' &)\nwhile :; do echo run; sleep 0.01; done";
    let spec = spec(dir.path(), script);
    driver.prepare(&spec).await.unwrap();
    driver.start(&spec.key).await.unwrap();
    let (near, away) = (dir.path().join("0.out"), dir.path().join("away.txt"));
    let both = || (lines(&near), lines(&away));
    let pause = || tokio::time::sleep(std::time::Duration::from_millis(200));
    while both().0 < 3 || both().1 < 3 {
        pause().await;
    }
    for _ in 0..2 {
        driver.suspend(&spec.key, true).await.unwrap();
        let still = both();
        pause().await;
        assert_eq!(both(), still);
        driver.suspend(&spec.key, false).await.unwrap();
        while both().0 == still.0 || both().1 == still.1 {
            pause().await;
        }
    }
    driver.suspend(&spec.key, true).await.unwrap();
    driver.kill(&spec.key).await.unwrap();
    let exit = driver.wait(&spec.key).await.unwrap();
    assert_eq!(exit.tasks[0].signal, Some(libc::SIGKILL));
    driver.delete(&spec.key).await.unwrap();
    let still = both();
    pause().await;
    assert_eq!(both(), still, "what ran away is killed as well");
}

#[tokio::test]
async fn a_step_can_be_bound_to_other_cpus() {
    let dir = tempfile::tempdir().unwrap();
    let driver = driver(dir.path());
    let cpus = std::thread::available_parallelism().unwrap().get();
    if matches!(Layout::detect(), Layout::None) || cpus < 2 {
        eprintln!("no writable cgroups, or one CPU: not tried");
        return;
    }
    let mut spec = spec(dir.path(), "while :; do grep Cpus_allowed_list /proc/self/status; sleep 0.01; done");
    spec.limits.cores = vec![0];
    driver.prepare(&spec).await.unwrap();
    driver.start(&spec.key).await.unwrap();
    let last =
        || std::fs::read_to_string(dir.path().join("0.out")).unwrap_or_default().lines().last().map(str::to_owned).unwrap_or_default();
    let shows = async |list: &str| {
        while last() != format!("Cpus_allowed_list:\t{list}") {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    shows("0").await;
    driver.bind(&spec.key, &[1]).await.unwrap();
    shows("1").await;
    driver.kill(&spec.key).await.unwrap();
    driver.wait(&spec.key).await.unwrap();
    driver.delete(&spec.key).await.unwrap();
}

//! What scripts rely on without a thought: standard input, bytes left alone, files, signals, words in the output.

mod common;

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use common::{BERTH, Stack, until};

/// Runs a user's command with this standard input.
fn fed(stack: &Stack, token: &str, args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(BERTH);
    command.args(["--server", &stack.servers(), "--token", token]).args(args).env("BERTH_CONFIG", "/dev/null");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut pipe, input) = (child.stdin.take().unwrap(), input.to_owned());
    let writer = std::thread::spawn(move || pipe.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

/// All bytes there are, broken UTF-8 among them; more than one piece of any part of the way.
fn every_byte() -> Vec<u8> {
    (0..1_500_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn two_nodes() -> Stack {
    let mut stack = Stack::start(2, 1).await;
    for name in ["n1", "n2"] {
        let worker = stack.worker(name, &["--node-cpus", "4", "--node-memory", "4GiB"]).await;
        stack.workers.push(worker);
    }
    stack
}

#[tokio::test(flavor = "multi_thread")]
async fn input_and_output_pass_through_whole() {
    let stack = two_nodes().await;
    let ann = stack.user();
    let output = fed(&stack, &ann, &["run", "cat"], b"hello\n");
    assert_eq!((text(&output.stdout), output.status.code()), ("hello\n".to_owned(), Some(0)), "{}", text(&output.stderr));
    let bytes = every_byte();
    let output = fed(&stack, &ann, &["run", "cat"], &bytes);
    assert!(output.stdout == bytes, "{} bytes of {}: {}", output.stdout.len(), bytes.len(), text(&output.stderr));
    // Each task reads all of it, on the second node too; a job that wants none of it ends all the same.
    let output = fed(&stack, &ann, &["run", "-N2", "wc", "-c"], &bytes);
    assert_eq!(text(&output.stdout), format!("{0}\n{0}\n", bytes.len()), "{}", text(&output.stderr));
    assert!(fed(&stack, &ann, &["run", "true"], b"x\n").status.success());
    assert_eq!(text(&fed(&stack, &ann, &["run", "--input=none", "cat"], b"").stdout), "");
    let file = stack.path("input.txt");
    std::fs::write(&file, "from a file\n").unwrap();
    let from_file = format!("--input={}", file.display());
    assert_eq!(text(&fed(&stack, &ann, &["run", &from_file, "cat"], b"").stdout), "from a file\n");

    let script = format!(
        "#!/bin/bash\n#SBATCH -N2 --ntasks=2\necho x | srun -n1 cat\n\
         srun -n2 bash <<'X' | sort\necho here $SLURM_PROCID $SLURMD_NODENAME\nX\n\
         echo lost | srun -n1 --input=none cat\necho one | srun -n2 -l --input=1 cat\nsrun -n1 {from_file} cat\n\
         srun -n1 cat < /dev/null\n( echo first; sleep 1; echo second ) | srun -n1 -w n2 sh -c 'read a; echo got $a; cat'\n\
         head -c 3000000 /dev/urandom > {dir}/blob; srun -n1 cat < {dir}/blob | cmp - {dir}/blob && echo same\n",
        dir = stack.dir.path().display()
    );
    let job = stack.submit(&ann, &script);
    let wanted = "x\nhere 0 n1\nhere 1 n2\n1: one\nfrom a file\ngot first\nsecond\nsame\n";
    let ended = stack.until_state(&ann, job, "completed").await;
    assert_eq!(stack.output(&ann, job).await, wanted, "{ended:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_written_fails_the_job_and_one_for_both_streams_keeps_all() {
    let stack = two_nodes().await;
    let ann = stack.user();
    let job = stack.submit(&ann, "#!/bin/bash\n#SBATCH -o /no/such/folder/out\ntouch /tmp/never\n");
    let ended = stack.until_state(&ann, job, "failed").await;
    let reason = ended["reason"].as_str().unwrap();
    assert!(reason.contains("/no/such/folder/out") && reason.contains("No such file"), "{reason}");
    let both = stack.path("both");
    let script = format!(
        "#!/bin/bash\n#SBATCH -n2 -o {0} -e {0}\nfor i in 1 2 3; do echo out $i; echo err $i >&2; done\nsrun -n2 -o {0}.s -e {0}.s sh -c 'echo o; echo e >&2'\n",
        both.display()
    );
    let job = stack.submit(&ann, &script);
    stack.until_state(&ann, job, "completed").await;
    assert_eq!(std::fs::read_to_string(&both).unwrap(), "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n");
    let step = std::fs::read_to_string(both.with_extension("s")).unwrap();
    assert_eq!((step.matches("o\n").count(), step.matches("e\n").count()), (2, 2), "{step:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_from_its_cursor_and_outlives_a_replica() {
    let mut stack = two_nodes().await;
    let ann = stack.user();
    let gate = stack.path("gate");
    let script = format!("echo before; while ! [ -e {} ]; do sleep 0.05; done; printf 'after\\377\\n'; exit 3", gate.display());
    let mut command = Command::new(BERTH);
    command.args(["--server", &stack.servers(), "--token", &ann, "run", "sh", "-c", &script]).env("BERTH_CONFIG", "/dev/null");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let (stdout, first) = tokio::task::spawn_blocking(move || {
        let mut first = [0; 7];
        std::io::Read::read_exact(&mut stdout, &mut first).unwrap();
        (stdout, first)
    })
    .await
    .unwrap();
    assert_eq!(&first, b"before\n");
    // The first in the list serves the stream.
    stack.apis.remove(0).kill();
    tokio::time::sleep(Duration::from_millis(500)).await;
    std::fs::write(&gate, "").unwrap();
    let (rest, output) = tokio::task::spawn_blocking(|| {
        let (mut stdout, mut rest) = (stdout, Vec::new());
        std::io::Read::read_to_end(&mut stdout, &mut rest).unwrap();
        (rest, child.wait_with_output().unwrap())
    })
    .await
    .unwrap();
    assert_eq!(rest, b"after\xff\n", "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stderr).matches("the connection to the service broke").count(), 1, "{}", text(&output.stderr));

    let url = format!("http://127.0.0.1:{}/v1/jobs/1/logs/follow", stack.ports[1]);
    let follow = async |query: &str, header: Option<&str>| {
        let mut request = stack.http.get(format!("{url}{query}")).bearer_auth(&ann);
        if let Some(id) = header {
            request = request.header("last-event-id", id);
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let (_, whole) = follow("", None).await;
    assert!(whole.contains("id: 1:0.stdout.14") && whole.contains("\"base64\""), "{whole}");
    let (_, rest) = follow("?cursor=1:0.stdout.7", None).await;
    assert!(rest.contains("after") && !rest.contains("before"), "{rest}");
    let (_, rest) = follow("", Some("1:0.stdout.14")).await;
    assert!(!rest.contains("after") && rest.contains("\"type\":\"end\""), "{rest}");
    for (query, header) in [("?cursor=bogus", None), ("", Some("1:0.stdout"))] {
        let (status, problem) = follow(query, header).await;
        assert!(status == 422 && problem.contains("invalid_cursor"), "{status} {problem}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_run_cancels_its_job_and_the_output_says_so() {
    let stack = two_nodes().await;
    let ann = stack.user();
    for (job, signal, code) in [(1, "TERM", 143), (2, "HUP", 129), (3, "INT", 130)] {
        // What the tests were started under (`nohup`, say) may ignore some of these, and so would `berth run`.
        let mut command = Command::new("env");
        command.args(["--default-signal", BERTH, "--server", &stack.servers(), "--token", &ann]);
        command.args(["run", "sh", "-c", "echo up; exec sleep 600"]);
        let mut child =
            command.env("BERTH_CONFIG", "/dev/null").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("the job runs", async || stack.output(&ann, job).await == "up\n").await;
        Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        stack.until_state(&ann, job, "cancelled").await;
        let path = format!("/v1/jobs/{job}/logs?stream=stderr");
        let said = stack.call("GET", &path, &ann, None).await.1.as_str().unwrap().to_owned();
        assert!(said.starts_with(&format!("berth: error: *** JOB {job} ON n")) && said.contains(" CANCELLED AT 2"), "{said}");
    }
    // A step's own limit, and the job's, in the file that the user named too.
    let file = stack.path("limit.out");
    let script = format!("#!/bin/bash\n#SBATCH -o {}\nsrun -n1 -t 0:01 sleep 600\nsleep 600\n", file.display());
    let job = stack.submit(&ann, &script);
    until("the step's limit is told", async || std::fs::read_to_string(&file).unwrap_or_default().contains("DUE TO TIME LIMIT ***")).await;
    assert!(stack.berth(&ann, &["cancel", &job.to_string()]).status.success());
    stack.until_state(&ann, job, "cancelled").await;
    let said = std::fs::read_to_string(&file).unwrap();
    assert!(said.contains(&format!("*** STEP {job}.0 ON n")) && said.contains(&format!("*** JOB {job} ON n")), "{said}");
}

fn berth_in(stack: &Stack, token: &str, dir: &std::path::Path, zone: &str, args: &[&str]) -> Output {
    let mut command = Command::new(BERTH);
    command.args(["--server", &stack.servers(), "--token", token]).args(args).env("BERTH_CONFIG", "/dev/null").env("TZ", zone);
    command.current_dir(dir).stdin(Stdio::null()).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_submission_means_what_it_says() {
    let stack = two_nodes().await;
    let ann = stack.user();
    // Nothing is submitted by what only asks, or by what cannot be done as asked.
    for option in ["--clusters=far", "--usage", "--version"] {
        let refused = stack.berth(&ann, &["submit", option, "--wrap=true"]);
        assert!(!refused.status.success() && text(&refused.stderr).contains(option.split('=').next().unwrap()), "{refused:?}");
    }
    assert_eq!(stack.call("GET", "/v1/jobs", &ann, None).await.1["items"].as_array().unwrap().len(), 0);
    // A script from standard input; a relative folder; a clock of the submitter's.
    let folder = stack.path("runs");
    std::fs::create_dir_all(folder.join("one")).unwrap();
    let output = fed(&stack, &ann, &["submit", "--parsable"], b"#!/bin/sh\necho piped\n");
    assert_eq!(text(&output.stdout), "1\n", "{}", text(&output.stderr));
    stack.until_state(&ann, 1, "completed").await;
    assert_eq!(stack.output(&ann, 1).await, "piped\n");
    let output = berth_in(&stack, &ann, &folder, "UTC", &["submit", "--wait", "-d", "", "--chdir=./one", "--wrap=pwd > here"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_to_string(folder.join("one/here")).unwrap().trim(), folder.join("one").to_str().unwrap());
    for (zone, begin) in [("UTC", "2036-07-01T12:00:00Z"), ("XYZ-2", "2036-07-01T10:00:00Z")] {
        let output = berth_in(&stack, &ann, &folder, zone, &["submit", "--parsable", "--begin=2036-07-01T12:00", "--wrap=true"]);
        let job: u64 = text(&output.stdout).trim().parse().unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!(stack.job(&ann, job).await["spec"]["begin"], begin);
        let shown = text(&berth_in(&stack, &ann, &folder, zone, &["show", &job.to_string()]).stdout);
        assert!(shown.contains("2036-07-01T12:00:00") && shown.matches("Times in").count() == 1, "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_finds_its_variables_and_scontrol() {
    let stack = two_nodes().await;
    let ann = stack.user();
    let script = "#!/bin/bash\n#SBATCH -N2 --requeue\nset -e\necho $SLURM_PROCID $SLURM_LOCALID $SLURM_GTIDS $((SLURM_JOB_END_TIME - SLURM_JOB_START_TIME))\n\
        [ -n \"$SLURM_SUBMIT_HOST\" ] && [ $SLURM_JOB_UID = $(id -u) ] && [ $SLURM_JOB_GID = $(id -g) ]\n\
        [ $((SLURM_JOB_START_TIME - $(date +%s))) -ge -60 ]\nsrun -n1 sh -c 'echo $SLURM_JOB_END_TIME' | grep -x $SLURM_JOB_END_TIME > /dev/null\n\
        scontrol show hostnames $SLURM_JOB_NODELIST | head -n1\nscontrol show hostnames\nscontrol show hostlistsorted n2,n1\n\
        scontrol show job $SLURM_JOB_ID | grep -o JobId=$SLURM_JOB_ID\nscontrol show job 99 || echo refused\n\
        if [ $SLURM_RESTART_COUNT = 0 ]; then scontrol requeue $SLURM_JOB_ID; sleep 600; fi\n";
    let job = stack.submit(&ann, &script.replace("--requeue", "--requeue -t 10"));
    stack.until_state(&ann, job, "completed").await;
    let wanted = format!("0 0 0 600\nn1\nn1\nn2\nn[1-2]\nJobId={job}\nrefused\n");
    let said = stack.output(&ann, job).await;
    assert_eq!(said.replace(&format!("scontrol: error: job 99 is not this one ({job}); `berth` tells of others\n"), ""), wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_read_is_right() {
    let stack = two_nodes().await;
    let ann = stack.user();
    let said = |output: &Output| text(&output.stdout) + &text(&output.stderr);
    let run = |args: &[&str]| stack.berth(&ann, args);
    let job = stack.submit(&ann, "#!/bin/sh\n#SBATCH -t UNLIMITED --comment=note -J first\nsrun -n1 sleep 600\n");
    let after = stack.submit(&ann, "#!/bin/sh\n#SBATCH -J next -d afterok:1 -d afterok:1,afterany:1 -a 0-9%2\ntrue\n");
    until("the step runs", async || stack.call("GET", "/v1/jobs/1/steps", &ann, None).await.1.to_string().contains("\"0\"")).await;
    until("it is explained", async || said(&run(&["explain", &after.to_string()])).starts_with("It waits for job 1 (")).await;
    let shown = said(&run(&["show", &job.to_string()]));
    for part in ["UNLIMITED", "note", "srun -n1 sleep 600", "step 0 of attempt 1", "1 task on n", "Directory"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = said(&run(&["show", &after.to_string()]));
    for part in ["afterok:1", "0-9%2", "10, 10 wait, at most 2 at once"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    run(&["hold", &after.to_string()]);
    let held = said(&run(&["queue", "-t", "held"]));
    assert!(held.contains("next") && !held.contains("first"), "{held}");
    run(&["release", &after.to_string()]);
    let queue = said(&run(&["queue"]));
    assert!(queue.contains("(dependency)") && !queue.contains("dependency, dependency"), "{queue}");
    assert!(said(&run(&["show", "n1"])).contains("of 4 in use"));
    for args in [&["logs", "1", "--step", "7"][..], &["logs", "1", "--task", "99"], &["queue", "--limit", "0"], &["logs", "-f", "99"]] {
        assert!(!run(args).status.success(), "{args:?}");
    }
    let missing = run(&["cancel", "214"]);
    assert_eq!((missing.status.success(), said(&missing).matches("214").count()), (false, 1), "{}", said(&missing));
    let pipe =
        Command::new("sh").args(["-c", &format!("{BERTH} completion bash | head -3")]).env("BERTH_CONFIG", "/dev/null").output().unwrap();
    assert_eq!((text(&pipe.stderr).as_str(), text(&pipe.stdout).lines().count()), ("", 3));
    // A join token, with the key in the environment.
    let admin = stack.token("root", "", "platform_admin");
    let mut command = Command::new(BERTH);
    command.args(["--server", &stack.servers(), "--token", &admin, "-o", "json", "token", "--join", "--valid", "2h"]);
    let made = command.env("BERTH_CONFIG", "/dev/null").env("BERTH_DEV_KEY", stack.path("dev-key")).output().unwrap();
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap_or_else(|_| panic!("{made:?}"));
    let left = made["expires_at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second() - jiff::Timestamp::now().as_second();
    assert!((7000..7300).contains(&left), "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_jobs_are_cancelled_by_filters_and_ranges() {
    let stack = two_nodes().await;
    let ann = stack.user();
    let run = |args: &[&str]| {
        let output = stack.berth(&ann, args);
        text(&output.stdout) + &text(&output.stderr)
    };
    let specs: Vec<_> =
        (0..60).map(|i| serde_json::json!({ "command": ["true"], "hold": true, "name": if i < 50 { "many" } else { "few" } })).collect();
    let (status, _) = stack.call("POST", "/v1/jobs:submitMany", &ann, Some(serde_json::json!({ "jobs": specs }))).await;
    assert_eq!(status, 201);
    assert_eq!(run(&["cancel", "--me", "--name", "many", "-t", "pending"]), "50 jobs cancelled, 0 had ended already, 0 failed\n");
    assert_eq!(run(&["cancel", "-u", "bob"]), "No job matches\n");
    assert_eq!(run(&["cancel", "-n", "few", "51", "1"]), "Job 51 cancelled\n");
    let array = stack.submit(&ann, "#!/bin/sh\n#SBATCH -a 0-3 --mem=16M\nexec sleep 600\n");
    let state = async |index: u32| stack.call("GET", &format!("/v1/jobs/{array}_{index}"), &ann, None).await.1["state"].clone();
    until("the tasks run", async || state(0).await == "running" && state(1).await == "running" && state(2).await == "running").await;
    let said = run(&["cancel", &format!("{array}_[1-2]"), "--grace", "0"]);
    assert_eq!(said, format!("Job {array}_[1-2] cancelled\n"));
    until("they end", async || state(1).await == "cancelled" && state(2).await == "cancelled").await;
    assert_eq!(state(0).await, "running");
}

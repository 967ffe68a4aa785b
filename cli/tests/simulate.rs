//! `berth simulate` as people run it: no service, small traces, each format, and what bad input is answered with.

use std::path::PathBuf;
use std::process::{Command, Output};

const TRACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces");

fn simulate(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.arg("simulate").args(args).current_dir(TRACES).env_remove("BERTH_SERVER");
    command.output().unwrap()
}

/// What a run printed, which must end well.
fn printed(args: &[&str]) -> String {
    let output = simulate(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What a run said before it gave up.
fn refused(args: &[&str]) -> String {
    let output = simulate(args);
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

/// A file of this test's own.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str, text: &str) -> TestFile {
        let path = std::env::temp_dir().join(format!("berth-simulate-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        TestFile(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn policies_are_compared_in_a_table() {
    // Waits under EASY: 0, 5940, 0, 60, 3060 seconds; shortest first: 0, 5940, 6480, 1740, 0 (worked out in the engine's own tests).
    let table = printed(&["small.csv", "--cluster", "clusters.yaml", "--cluster-name", "fat", "--policy", "easy", "--policy", "easy-sjbf"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 3, "{table}");
    assert_eq!(rows[0][..3], ["POLICY", "WAIT", "P95"], "{table}");
    assert_eq!(rows[1][0], "easy", "{table}");
    assert_eq!(rows[2][0], "easy-sjbf", "{table}");
}

#[test]
fn both_formats_give_the_same_figures_as_json() {
    let read = |args: &[&str]| serde_json::from_str::<serde_json::Value>(&printed(args)).unwrap();
    let csv = read(&["small.csv", "--nodes", "1", "--cpus", "10", "--policy", "easy", "-o", "json"]);
    assert_eq!((&csv["trace"], &csv["capacity"], &csv["placement"]), (&"small".into(), &10.0.into(), &"node".into()));
    let easy = &csv["policies"][0];
    assert_eq!((&easy["policy"], &easy["jobs"], &easy["rejected"]), (&"easy".into(), &5.into(), &0.into()));
    assert_eq!(easy["mean_wait_seconds"], (5940.0 + 60.0 + 3060.0) / 5.0);
    // (1 + 6540/600 + 1 + 3060/3000 + 4800/1740) ÷ 5.
    let slowdown = (1.0 + 10.9 + 1.0 + 1.02 + 4800.0 / 1740.0) / 5.0;
    assert!((easy["mean_bounded_slowdown"].as_f64().unwrap() - slowdown).abs() < 1e-9);
    let swf = read(&["small.swf", "--cluster", "clusters.yaml", "--policy", "easy", "-o", "json"]);
    assert_eq!(swf["policies"][0], *easy);
}

#[test]
fn policies_of_ones_own_are_read_and_drawn() {
    let policy = TestFile::new("mine.toml", "depth = 2\nrest = \"shortest\"\n");
    let plot = TestFile::new("plot.svg", "");
    let mine = format!("mine={}", policy.path());
    let args = ["small.csv", "--nodes", "1", "--cpus", "10", "--policy", "easy", "--policy", &mine, "--plot", plot.path()];
    let table = printed(&args);
    assert!(table.lines().last().unwrap().starts_with("mine "), "{table}");
    let svg = std::fs::read_to_string(&plot.0).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains(">mine<") && svg.contains("small, 5 jobs"), "{svg}");
}

#[test]
fn bad_input_is_told_with_its_file_and_line() {
    let trace = TestFile::new("bad.csv", "submit_s,nodes,cpus,runtime_s,walltime_s\n0,1,1,10,20\n5,1,some,10,20\n");
    let swf = TestFile::new("bad.swf", "; nothing\n1 0 -1 60\n");
    let cluster = TestFile::new("cluster.yaml", "- count: 4\n  cpu: 8\n");
    let policy = TestFile::new("policy.toml", "depth = 1\nspeed = 3\n");
    let mine = format!("mine={}", policy.path());
    let on = ["--nodes", "1", "--cpus", "10"];
    for (args, name, detail) in [
        (vec![trace.path()], trace.path(), "line 3: cpus: \"some\" is not a whole number"),
        (vec![swf.path()], swf.path(), "line 2: 4 fields, but a record has 18"),
        (vec!["small.csv", "--policy", &mine], policy.path(), "line 2, column 1"),
        (vec!["nowhere.csv"], "nowhere.csv", "No such file"),
        (vec!["small.csv", "--policy", "fifo"], "fifo", "one of easy, "),
        (vec!["small.csv", "--policy", "easy", "--policy", "easy"], "easy", "give one another name"),
    ] {
        let error = refused(&[&args[..], &on[..]].concat());
        assert!(error.contains(name) && error.contains(detail), "{error}");
    }
    let error = refused(&["small.csv", "--cluster", cluster.path()]);
    assert!(error.contains(cluster.path()) && error.contains("unknown field `cpu`") && error.contains("line 2"), "{error}");
    let error = refused(&["small.csv"]);
    assert!(error.contains("--cluster FILE, or --nodes"), "{error}");
    let error = refused(&["small.swf", "--cluster", "clusters.yaml", "--cluster-name", "large"]);
    assert!(error.contains("no cluster is called \"large\"; there are fat, small"), "{error}");
}

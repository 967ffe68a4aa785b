//! Reading traces, clusters and policies: what is understood, and what a bad line is answered with.

use std::io::Write as _;
use std::path::PathBuf;

use berth_engine::{Order, Rest};
use berth_sim::cluster::{Cluster, ClusterError};
use berth_sim::policy::Policy;
use berth_sim::trace::{Trace, TraceError};

const HEADER: &str = "job_id,submit_s,user,account,nodes,cpus,gpus,gpu_type,mem_mb,runtime_s,walltime_s,status";

/// A file of this test's own.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str, bytes: &[u8]) -> TestFile {
        let path = std::env::temp_dir().join(format!("berth-sim-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        TestFile(path)
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(text.as_bytes()).unwrap();
    writer.finish().unwrap()
}

#[test]
fn csv_is_read_by_its_header_plain_or_compressed() {
    let text = format!("{HEADER}\n7,105,u2,a1,2,4,0.5,A100|H100,1024,60,300,completed\n\n6,100,u1,a1,1,8,,,,30,60,failed\n");
    for (name, bytes) in [("plain.csv", text.as_bytes().to_vec()), ("packed.csv.gz", gzip(&text))] {
        let file = TestFile::new(name, &bytes);
        let trace = Trace::read(&file.0).unwrap();
        // In order of submission, counted from the first.
        let submits: Vec<(u64, &str)> = trace.jobs.iter().map(|j| (j.submit, j.user.as_str())).collect();
        assert_eq!(submits, [(0, "u1"), (5, "u2")]);
        let job = &trace.jobs[1];
        assert_eq!((job.nodes, job.cpus, job.gpus, job.memory_mib, job.runtime, job.walltime), (2, 4, 0.5, 1024, 60, 300));
        assert_eq!(job.gpu_types, ["a100", "h100"]);
    }
    // Columns in another order, and only those that are needed.
    let trace = Trace::from_csv("walltime_s,runtime_s,cpus,nodes,submit_s\n50,40,3,2,1\n").unwrap();
    assert_eq!((trace.jobs[0].walltime, trace.jobs[0].runtime, trace.jobs[0].cpus, trace.jobs[0].nodes), (50, 40, 3, 2));
}

#[test]
fn a_bad_line_of_csv_is_named() {
    for (line, detail) in [
        ("1,0,u1,a1,1,1,0,,0,10,20", "11 fields, but the header names 12"),
        ("1,soon,u1,a1,1,1,0,,0,10,20,ok", "submit_s: \"soon\" is not a whole number"),
        ("1,-5,u1,a1,1,1,0,,0,10,20,ok", "submit_s: \"-5\" is not a whole number"),
        ("1,0,u1,a1,0,1,0,,0,10,20,ok", "nodes: 0, but at least 1 is needed"),
        ("1,0,u1,a1,1,1,many,,0,10,20,ok", "gpus: \"many\" is not a number"),
        ("1,0,u1,a1,1,1,NaN,,0,10,20,ok", "gpus: NaN is not between 0 and 65535"),
        ("1,0,u1,a1,1,0,0,,0,10,20,ok", "asks for neither cpus nor gpus"),
        ("1,0,u1,a1,1,1,0,,0,10,0,ok", "walltime_s: 0, but at least 1 is needed"),
        ("1,99999999999999,u1,a1,1,1,0,,0,10,20,ok", "submit_s: 99999999999999 s is over a hundred years"),
    ] {
        let bad = Trace::from_csv(&format!("{HEADER}\n1,0,u1,a1,1,1,0,,0,10,20,ok\n{line}\n")).unwrap_err();
        assert_eq!(bad.to_string(), format!("line 3: {detail}"));
    }
    assert_eq!(
        Trace::from_csv("job_id,nodes,cpus\n").unwrap_err().to_string(),
        "line 1: the header has no column submit_s, runtime_s, walltime_s"
    );
    let file = TestFile::new("bad.csv", format!("{HEADER}\nx\n").as_bytes());
    let error = Trace::read(&file.0).unwrap_err().to_string();
    assert!(error.ends_with("bad.csv: line 2: 1 fields, but the header names 12"), "{error}");
    let file = TestFile::new("none.csv", HEADER.as_bytes());
    assert!(matches!(Trace::read(&file.0), Err(TraceError::Empty(_))));
}

#[test]
fn swf_is_read_and_what_never_ran_is_skipped() {
    let text = "; Computer: a small one\n\
        1 100 5 60 4 -1 -1 8 300 -1 1 3 2 -1 1 -1 -1 -1\n\
        2 110 5 60 4 -1 -1 -1 -1 -1 0 4 2 -1 1 -1 -1 -1 ; no request: what it got\n\
        3 120 -1 -1 -1 -1 -1 4 300 -1 5 3 2 -1 1 -1 -1 -1\n\
        4 130 5 60 4 -1 -1 4 300 -1 3 3 2 -1 1 -1 -1 -1\n";
    let file = TestFile::new("small.swf.gz", &gzip(text));
    let trace = Trace::read(&file.0).unwrap();
    let jobs: Vec<_> = trace.jobs.iter().map(|j| (j.submit, j.user.as_str(), j.nodes, j.runtime, j.walltime)).collect();
    assert_eq!(jobs, [(0, "u3", 8, 60, 300), (10, "u4", 4, 60, 60)]);
    assert_eq!(trace.skipped, 2);
}

#[test]
fn a_bad_line_of_swf_is_named() {
    let bad = Trace::from_swf("; head\n1 2 3\n").unwrap_err();
    assert_eq!(bad.to_string(), "line 2: 3 fields, but a record has 18");
    let bad = Trace::from_swf("1 0 5 sixty 4 -1 -1 8 300 -1 1 3 2 -1 1 -1 -1 -1\n").unwrap_err();
    assert_eq!(bad.to_string(), "line 1: field 4: \"sixty\" is not a number");
}

#[test]
fn clusters_are_read_by_name_or_alone() {
    let file = TestFile::new("clusters.json", br#"{"small": [{"count": 2, "cpus": 4}], "large": [{"count": 9, "cpus": 4, "gpus": 8}]}"#);
    assert_eq!(Cluster::read(&file.0, "large").unwrap().groups[0].gpus, 8);
    let error = Cluster::read(&file.0, "medium").unwrap_err().to_string();
    assert!(error.ends_with("no cluster is called \"medium\"; there are large, small"), "{error}");
    let file = TestFile::new("one.json", br#"[{"count": 2, "cpus": 4, "mem_mb": 100}]"#);
    assert_eq!(Cluster::read(&file.0, "any").unwrap().groups[0].mem_mb, Some(100));
    let file = TestFile::new("empty.json", br#"[{"count": 0, "cpus": 4}]"#);
    assert!(matches!(Cluster::read(&file.0, "any"), Err(ClusterError::BadSize)));
    let file = TestFile::new("one.yaml", b"- count: 2\n  cpus: 4\n- {count: 1, cpus: 64, gpus: 8, gpu_type: h100}\n");
    assert_eq!(Cluster::read(&file.0, "any").unwrap().groups[1].gpu_type.as_deref(), Some("h100"));
    for (name, text, detail) in [
        ("odd.json", "[{\"count\": 1, \"cpus\": 4,\n  \"colour\": 3}]", "unknown field `colour`, expected one of `count`"),
        ("odd.yaml", "small:\n- count: 1\n  cpus: many\n", "cpus: invalid type: string \"many\", expected u32 at line 3 column 9"),
        ("text.yaml", "forty nodes\n", "expected a map"),
    ] {
        let file = TestFile::new(name, text.as_bytes());
        let error = Cluster::read(&file.0, "small").unwrap_err().to_string();
        assert!(error.contains(detail) && error.contains(name), "{error}");
    }
}

#[test]
fn policies_come_by_name_or_from_files() {
    for name in Policy::BUILT_IN {
        assert_eq!(Policy::read(name).unwrap().name, name);
    }
    let error = Policy::read("fifo").unwrap_err().to_string();
    assert!(error.starts_with("\"fifo\" is no policy; write NAME=FILE, or one of easy, "), "{error}");
    let read = |name: &str, text: &str| {
        let file = TestFile::new(name, text.as_bytes());
        Policy::read(&format!("mine={}", file.0.display()))
    };
    let text = "order = \"urgency\"\npatience_seconds = 3600\ndepth = 3\nrest = \"shortest\"\nprediction = \"last_two\"\n";
    let mine = read("full.toml", text).unwrap();
    assert_eq!((mine.name.as_str(), mine.settings.depth, mine.settings.is_predicted), ("mine", 3, true));
    assert_eq!((mine.settings.order, mine.settings.rest), (Order::Urgency { patience_seconds: 3600 }, Rest::Shortest));
    let plain = read("plain.toml", "depth = \"all\"\n").unwrap().settings;
    assert_eq!((plain.depth, plain.order, plain.rest), (usize::MAX, Order::Submission, Rest::InOrder));
    for (name, text, detail) in [
        ("a.toml", "depth = \"some\"\n", "a number of jobs, or \"all\""),
        ("b.toml", "speed = 3\n", "unknown field `speed`"),
        ("c.toml", "order = \"urgency\"\n", "needs patience_seconds"),
        ("d.toml", "patience_seconds = 5\n", "goes with order"),
        ("e.toml", "prediction = \"last_two\"\n", "goes with rest"),
    ] {
        let error = read(name, text).unwrap_err().to_string();
        assert!(error.contains(detail), "{error}");
    }
}

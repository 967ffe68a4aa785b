//! NVIDIA GPUs, through the real wrapper and the simulated library that cargo builds beside this test (a dev-dependency).
//!
//! Each test loads a copy of its own, which reads the state file beside it: no environment variable, nothing shared between tests.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use berth_devices::nvml::Nvml;
use berth_devices::{DeviceSource, open_all};
use berth_model::Bytes;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough for what must come.
const LONG: Duration = Duration::from_secs(60);
/// A few looks of the simulated library, for what must not come.
const BRIEF: Duration = Duration::from_millis(300);

struct World {
    dir: TempDir,
    gpus: Vec<Value>,
    events: Vec<Value>,
}

impl World {
    fn gpus(count: usize) -> World {
        let dir = TempDir::new().unwrap();
        let built = std::env::current_exe().unwrap().with_file_name("libnvidia_ml.so");
        let world = World { dir, gpus: vec![json!({}); count], events: Vec::new() };
        std::fs::copy(&built, world.nvml()).unwrap_or_else(|error| panic!("{}: {error}", built.display()));
        world.write();
        world
    }

    fn nvml(&self) -> PathBuf {
        self.dir.path().join("libnvidia-ml.so.1")
    }

    fn open(&self) -> Nvml {
        Nvml::open(Some(&self.nvml())).unwrap()
    }

    fn set(&mut self, gpu: usize, key: &str, value: impl Into<Value>) {
        self.gpus[gpu][key] = value.into();
        self.write();
    }

    fn send(&mut self, gpu: usize, xid: u64) {
        self.events.push(json!({"id": self.events.len() + 1, "gpu": gpu, "xid": xid}));
        self.write();
    }

    /// Renamed into place, so that no half a file is ever read.
    fn write(&self) {
        let draft = self.dir.path().join("draft");
        std::fs::write(&draft, json!({"gpus": self.gpus, "events": self.events}).to_string()).unwrap();
        std::fs::rename(draft, self.dir.path().join("libnvidia-ml.so.1.state")).unwrap();
    }
}

#[test]
fn eight_gpus_are_discovered() {
    let world = World::gpus(8);
    std::fs::remove_file(world.dir.path().join("libnvidia-ml.so.1.state")).unwrap();
    let nvml = world.open();
    let gpus = nvml.discover().unwrap();
    assert_eq!(gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    assert_eq!(gpus.iter().map(|gpu| &gpu.uuid).collect::<BTreeSet<_>>().len(), 8);
    assert!(gpus.iter().all(|gpu| gpu.uuid.starts_with("GPU-") && gpu.kind == "h100" && gpu.memory_bytes == Bytes(81_559 << 20)));
    assert!(gpus.iter().all(|gpu| gpu.fault.is_none()));
    assert_eq!(gpus.iter().map(|gpu| gpu.numa.unwrap()).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(nvml.sample().len(), 8);
    assert_eq!(nvml.facts().get("nvidia_driver").map(String::as_str), Some("550.54.15 (simulated)"));
    assert_eq!(nvml.facts().get("nvidia_cuda").map(String::as_str), Some("12.4"));
}

#[test]
fn what_the_driver_says_is_what_is_reported() {
    let mut world = World::gpus(2);
    world.set(1, "uuid", "GPU-6d1f3c1e-7a0b-4d6e-9a54-1f4b8f1f0001");
    world.set(1, "name", "NVIDIA GeForce RTX 4090");
    world.set(1, "memory_bytes", 25_757_220_864_u64);
    world.set(1, "numa", 67);
    let gpus = world.open().discover().unwrap();
    assert_eq!((gpus[1].uuid.as_str(), gpus[1].kind.as_str()), ("GPU-6d1f3c1e-7a0b-4d6e-9a54-1f4b8f1f0001", "rtx-4090"));
    assert_eq!((gpus[1].memory_bytes, gpus[1].numa), (Bytes(25_757_220_864), Some(67)));
    assert_eq!((gpus[0].kind.as_str(), gpus[0].numa), ("h100", None));
}

#[test]
fn samples_follow_the_gpu() {
    let mut world = World::gpus(2);
    let nvml = world.open();
    assert_eq!(nvml.sample()[1].utilization_percent, Some(0));
    assert_eq!(nvml.sample()[1].ecc_uncorrected, Some(0));

    world.set(1, "utilization_percent", 93);
    world.set(1, "memory_used_bytes", 5_000_000);
    world.set(1, "power_milliwatts", 612_500);
    world.set(1, "temperature_celsius", 68);
    world.set(1, "ecc_uncorrected", 3);
    let samples = nvml.sample();
    let busy = &samples[1];
    assert_eq!((busy.index, &busy.uuid), (1, &nvml.discover().unwrap()[1].uuid));
    assert_eq!((busy.utilization_percent, busy.memory_used_bytes), (Some(93), Some(Bytes(5_000_000))));
    assert_eq!((busy.power_milliwatts, busy.temperature_celsius, busy.ecc_uncorrected), (Some(612_500), Some(68), Some(3)));
    assert_eq!((samples[0].utilization_percent, samples[0].ecc_uncorrected), (Some(0), Some(0)));
}

#[test]
fn memory_that_cannot_be_trusted_is_a_fault_until_it_is_reset() {
    let mut world = World::gpus(2);
    let nvml = world.open();
    world.set(0, "ecc_uncorrected", 2);
    world.set(1, "row_remap_failed", true);
    let gpus = nvml.discover().unwrap();
    assert_eq!(gpus[0].fault.as_deref(), Some("uncorrectable ECC errors since its last reset: 2"));
    assert_eq!(gpus[1].fault.as_deref(), Some("a bad memory row could not be replaced"));

    world.set(0, "ecc_uncorrected", 0);
    assert_eq!(nvml.discover().unwrap()[0].fault, None);
}

#[test]
fn a_gpu_that_falls_off_the_bus_arrives_once_and_is_fatal() {
    let mut world = World::gpus(4);
    let nvml = world.open();
    assert_eq!(nvml.wait_event(BRIEF), None);

    world.gpus[2]["lost"] = true.into();
    world.send(2, 79);
    let event = nvml.wait_event(LONG).unwrap();
    assert_eq!((event.index, event.code.as_str(), event.is_fatal), (2, "xid 79", true));
    assert_eq!(event.detail, "the GPU has fallen off the bus");
    assert_eq!(event.uuid, nvml.discover().unwrap()[2].uuid, "told by its handle: the GPU itself no longer answers");
    assert_eq!(nvml.wait_event(BRIEF), None, "neither again nor as lost");
}

#[test]
fn what_an_application_did_is_not_fatal() {
    let mut world = World::gpus(2);
    let nvml = world.open();
    world.send(1, 31);
    world.send(0, 48);
    let fault = nvml.wait_event(LONG).unwrap();
    assert_eq!((fault.index, fault.code.as_str(), fault.is_fatal), (1, "xid 31", false));
    let ecc = nvml.wait_event(LONG).unwrap();
    assert_eq!((ecc.index, ecc.code.as_str(), ecc.is_fatal), (0, "xid 48", true));
    assert_eq!(nvml.wait_event(BRIEF), None);
}

#[test]
fn an_event_ends_the_wait() {
    let mut world = World::gpus(1);
    let nvml = world.open();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| nvml.wait_event(Duration::from_secs(600)));
        world.send(0, 119);
        assert_eq!(waiting.join().unwrap().unwrap().code, "xid 119");
    });
}

#[test]
fn a_lost_gpu_keeps_its_place_with_a_fault() {
    let mut world = World::gpus(3);
    let nvml = world.open();
    let before = nvml.discover().unwrap();

    world.set(1, "lost", true);
    let gpus = nvml.discover().unwrap();
    assert_eq!(gpus.len(), 3);
    assert_eq!(gpus[1].fault.as_deref(), Some("lost: it has fallen off the bus"));
    assert_eq!((&gpus[1].uuid, &gpus[1].kind, gpus[1].memory_bytes), (&before[1].uuid, &before[1].kind, before[1].memory_bytes));
    assert_eq!((&gpus[0], &gpus[2]), (&before[0], &before[2]));
    assert_eq!(nvml.sample().iter().map(|sample| sample.index).collect::<Vec<_>>(), [0, 2]);

    world.set(1, "lost", false);
    assert_eq!(nvml.discover().unwrap(), before);
}

#[test]
fn a_gpu_lost_without_an_xid_is_told_once_and_others_are_still_heard() {
    let mut world = World::gpus(2);
    let nvml = world.open();
    world.set(0, "lost", true);
    let event = nvml.wait_event(LONG).unwrap();
    assert_eq!((event.index, event.code.as_str(), event.is_fatal), (0, "lost", true));
    assert_eq!(nvml.wait_event(BRIEF), None);

    world.send(1, 94);
    let event = nvml.wait_event(LONG).unwrap();
    assert_eq!((event.index, event.code.as_str(), event.is_fatal), (1, "xid 94", true));
}

#[test]
fn a_gpu_that_was_lost_from_the_start_is_heard_once_it_answers() {
    let mut world = World::gpus(2);
    world.set(1, "lost", true);
    let nvml = world.open();
    let gpus = nvml.discover().unwrap();
    assert_eq!((gpus[1].uuid.as_str(), gpus[1].kind.as_str(), gpus[1].fault.is_some()), ("unknown-1", "unknown", true));
    world.send(1, 79);
    assert_eq!(nvml.wait_event(BRIEF), None);

    world.set(1, "lost", false);
    assert_eq!(nvml.discover().unwrap()[1].kind, "h100");
    assert_eq!(nvml.wait_event(LONG).unwrap().code, "xid 79");
}

#[test]
fn a_gpu_lost_while_another_joins_is_told_and_heard_again_later() {
    let mut world = World::gpus(2);
    world.set(1, "lost", true);
    let nvml = world.open();

    world.gpus[0]["lost"] = true.into();
    world.set(1, "lost", false);
    nvml.discover().unwrap();
    let event = nvml.wait_event(LONG).unwrap();
    assert_eq!((event.index, event.code.as_str()), (0, "lost"));
    assert_eq!(nvml.wait_event(BRIEF), None);

    world.set(0, "lost", false);
    assert_eq!(nvml.discover().unwrap()[0].fault, None);
    world.send(0, 13);
    assert_eq!(nvml.wait_event(LONG).unwrap().code, "xid 13");
}

/// GPU 1 of two is cut into three instances of two profiles.
fn cut() -> World {
    let mut world = World::gpus(2);
    world.set(1, "numa", 1);
    let slice = |profile: &str, gib: u64| json!({ "profile": profile, "memory_bytes": gib << 30 });
    world.set(1, "mig", vec![slice("1g.10gb", 10), slice("1g.10gb", 10), slice("3g.40gb", 40)]);
    world
}

#[test]
fn mig_instances_take_the_place_of_their_gpu() {
    let mut world = cut();
    let nvml = world.open();
    let gpus = nvml.discover().unwrap();
    let told: Vec<(u32, &str, Bytes, Option<u32>)> =
        gpus.iter().map(|gpu| (gpu.index, gpu.kind.as_str(), gpu.memory_bytes, gpu.numa)).collect();
    let gib = |n: u64| Bytes(n << 30);
    assert_eq!(
        told,
        [
            (0, "h100", Bytes(81_559 << 20), None),
            (200, "1g.10gb", gib(10), Some(1)),
            (201, "1g.10gb", gib(10), Some(1)),
            (202, "3g.40gb", gib(40), Some(1)),
        ]
    );
    assert!(gpus[1..].iter().all(|gpu| gpu.uuid.starts_with("MIG-") && gpu.fault.is_none()));
    assert_eq!(gpus.iter().map(|gpu| &gpu.uuid).collect::<BTreeSet<_>>().len(), 4);

    // Memory errors are of the whole GPU: they are its instances' too.
    world.set(1, "ecc_uncorrected", 2);
    assert_eq!(nvml.discover().unwrap().iter().filter(|gpu| gpu.fault.is_some()).map(|gpu| gpu.index).collect::<Vec<_>>(), [200, 201, 202]);
    world.set(1, "ecc_uncorrected", 0);
    // One that is not cut yet, or not any more, is of no use while MIG is on.
    world.set(1, "mig", Vec::<Value>::new());
    let uncut = &nvml.discover().unwrap()[1];
    assert_eq!((uncut.index, uncut.kind.as_str()), (1, "h100"));
    assert!(uncut.fault.as_deref().unwrap().starts_with("MIG is on and there are no instances"), "{uncut:?}");
}

#[test]
fn a_lost_gpu_takes_its_instances_along_and_has_no_utilisation_of_theirs() {
    let mut world = cut();
    world.set(1, "utilization_percent", 80);
    let nvml = world.open();
    let before = nvml.discover().unwrap();
    let samples = nvml.sample();
    assert_eq!(samples.iter().map(|sample| (sample.index, sample.utilization_percent)).collect::<Vec<_>>(), [(0, Some(0)), (1, None)]);
    assert!(samples[1].power_milliwatts.is_some(), "power is the GPU's, whoever uses it");

    world.gpus[1]["lost"] = true.into();
    world.send(1, 79);
    assert_eq!(nvml.wait_event(LONG).map(|event| (event.index, event.is_fatal)), Some((1, true)));
    let lost = nvml.discover().unwrap();
    assert_eq!(lost[0], before[0]);
    assert_eq!(lost[1..].iter().map(|gpu| (gpu.index, gpu.fault.is_some())).collect::<Vec<_>>(), [(200, true), (201, true), (202, true)]);
    assert_eq!(lost[3].uuid, before[3].uuid);
}

#[test]
fn an_instance_comes_with_the_files_of_its_gpu() {
    let world = cut();
    let nvml = world.open();
    let files: Vec<PathBuf> = ["/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"].map(PathBuf::from).into();
    assert_eq!(nvml.nodes(&[201]), files);
    assert_eq!(nvml.nodes(&[1]), Vec::<PathBuf>::new(), "the GPU itself is nobody's");
}

#[test]
fn containers_get_the_files_of_their_gpus() {
    let world = World::gpus(4);
    let nvml = world.open();
    let files: Vec<PathBuf> =
        ["/dev/nvidia1", "/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"].map(PathBuf::from).into();
    assert_eq!(nvml.nodes(&[1, 3]), files);
    assert_eq!(nvml.nodes(&[9]), Vec::<PathBuf>::new());
}

#[test]
fn without_a_library_the_error_names_it_and_says_why() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("libnvidia-ml.so.1");
    let error = Nvml::open(Some(&path)).err().unwrap().to_string();
    assert!(error.starts_with(&format!("cannot use {}: ", path.display())), "{error}");
    assert!(error.contains("No such file"), "{error}");
}

#[test]
fn a_node_opens_the_sources_that_it_has() {
    let world = World::gpus(2);
    let sources = open_all(Some(&world.nvml()), world.dir.path());
    assert_eq!(sources.len(), 1);
    assert_eq!(sources[0].discover().unwrap().len(), 2);
}

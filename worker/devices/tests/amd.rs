//! AMD GPUs, read from a tree laid out as the kernel lays out sysfs.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use berth_devices::amd::Amd;
use berth_devices::{DeviceError, DeviceSource, Sample, open_all};
use berth_model::Bytes;
use tempfile::TempDir;

const SOON: Duration = Duration::ZERO;
const VRAM: u64 = 206_141_652_992;

/// A node with one CPU and two MI300X; the second one's board tells no product name, and its sensors have the other names.
struct World {
    dir: TempDir,
}

impl World {
    fn two_mi300x() -> World {
        let world = World { dir: TempDir::new().unwrap() };
        world.write("module/amdgpu/version", "6.8.5\n");
        world.write("class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
        world.write("class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 96\nsimd_count 0\ngfx_target_version 0\n");
        world.gpu(1, 128, 0x21b6_d616_38a8_6f8c, 0x0500);
        world.gpu(2, 136, 0x00f0_0000_0000_0002, 0x1500);
        world.write("class/drm/renderD128/device/product_name", "AMD Instinct MI300X OAM\n");
        world.write("class/drm/renderD128/device/hwmon/hwmon5/power1_average", "143000000\n");
        world.write("class/drm/renderD128/device/hwmon/hwmon5/temp1_input", "39000\n");
        world.write("class/drm/renderD128/device/numa_node", "0\n");
        world.write("class/drm/renderD136/device/hwmon/hwmon6/power1_input", "748500000\n");
        world.write("class/drm/renderD136/device/hwmon/hwmon6/temp2_input", "71000\n");
        world.write("class/drm/renderD136/device/hwmon/hwmon6/temp3_input", "66000\n");
        world.write("class/drm/renderD136/device/numa_node", "-1\n");
        world
    }

    fn gpu(&self, node: u32, render_minor: u32, unique_id: u64, location: u32) {
        self.write(&format!("class/kfd/kfd/topology/nodes/{node}/gpu_id"), &format!("{}\n", 28_000 + node));
        let properties = format!(
            "cpu_cores_count 0\nsimd_count 1216\ngfx_target_version 90402\nvendor_id 4098\ndevice_id 29857\nlocation_id {location}\n\
             domain 0\ndrm_render_minor {render_minor}\nhive_id 99\nunique_id {unique_id}\n"
        );
        self.write(&format!("class/kfd/kfd/topology/nodes/{node}/properties"), &properties);
        let device = format!("class/drm/renderD{render_minor}/device");
        self.write(&format!("{device}/mem_info_vram_total"), &format!("{VRAM}\n"));
        self.write(&format!("{device}/mem_info_vram_used"), "297365504\n");
        self.write(&format!("{device}/gpu_busy_percent"), "17\n");
        self.errors(render_minor, "umc", 0);
        self.errors(render_minor, "gfx", 0);
    }

    fn errors(&self, render_minor: u32, block: &str, uncorrectable: u64) {
        let path = format!("class/drm/renderD{render_minor}/device/ras/{block}_err_count");
        self.write(&path, &format!("ue: {uncorrectable}\nce: 12\n"));
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn root(&self) -> &Path {
        self.dir.path()
    }

    fn open(&self) -> Amd {
        Amd::open(self.root()).unwrap()
    }
}

#[test]
fn both_gpus_are_found_and_the_cpu_is_not_taken_for_one() {
    let world = World::two_mi300x();
    let gpus = world.open().discover().unwrap();
    assert_eq!(gpus.len(), 2);
    let first = &gpus[0];
    assert_eq!((first.index, first.uuid.as_str(), first.kind.as_str()), (0, "GPU-21b6d61638a86f8c", "mi300x"));
    assert_eq!((first.memory_bytes, first.numa, first.fault.as_deref()), (Bytes(VRAM), Some(0), None));
    let second = &gpus[1];
    assert_eq!((second.index, second.uuid.as_str(), second.kind.as_str()), (1, "GPU-00f0000000000002", "mi300x"));
    assert_eq!(second.numa, None, "-1 is no node");
}

#[test]
fn nodes_are_ordered_by_number_not_by_spelling() {
    let world = World::two_mi300x();
    world.gpu(10, 144, 10, 0x2500);
    let uuids: Vec<String> = world.open().discover().unwrap().into_iter().map(|gpu| gpu.uuid).collect();
    assert_eq!(uuids, ["GPU-21b6d61638a86f8c", "GPU-00f0000000000002", "GPU-000000000000000a"]);
}

#[test]
fn a_gpu_without_an_id_goes_by_its_place_on_the_bus() {
    let world = World::two_mi300x();
    world.gpu(2, 136, 0, 0x150b);
    assert_eq!(world.open().discover().unwrap()[1].uuid, "PCI-0000:15:01.3");
}

#[test]
fn samples_read_whichever_sensors_there_are() {
    let world = World::two_mi300x();
    let amd = world.open();
    world.errors(136, "umc", 2);
    world.errors(136, "gfx", 1);
    assert_eq!(
        amd.sample(),
        [
            Sample {
                index: 0,
                uuid: "GPU-21b6d61638a86f8c".into(),
                utilization_percent: Some(17),
                memory_used_bytes: Some(Bytes(297_365_504)),
                power_milliwatts: Some(143_000),
                temperature_celsius: Some(39),
                ecc_uncorrected: Some(0),
            },
            Sample {
                index: 1,
                uuid: "GPU-00f0000000000002".into(),
                utilization_percent: Some(17),
                memory_used_bytes: Some(Bytes(297_365_504)),
                power_milliwatts: Some(748_500),
                temperature_celsius: Some(71),
                ecc_uncorrected: Some(3),
            },
        ]
    );
}

#[test]
fn errors_that_grow_are_told_once_each() {
    let world = World::two_mi300x();
    world.errors(128, "umc", 4);
    let amd = world.open();
    assert_eq!(amd.wait_event(SOON), None, "errors from before are old news");

    world.errors(128, "umc", 6);
    world.errors(136, "gfx", 1);
    let first = amd.wait_event(SOON).unwrap();
    assert_eq!((first.index, first.uuid.as_str(), first.code.as_str(), first.is_fatal), (0, "GPU-21b6d61638a86f8c", "ras umc", true));
    assert_eq!(first.detail, "uncorrectable errors in the GPU's block umc: 2 more, 6 in all");
    let second = amd.wait_event(SOON).unwrap();
    assert_eq!((second.index, second.code.as_str()), (1, "ras gfx"));
    assert_eq!(amd.wait_event(SOON), None);

    world.errors(128, "umc", 0);
    assert_eq!(amd.wait_event(SOON), None, "a reset of the counts is no error");
    world.errors(128, "umc", 1);
    assert_eq!(amd.wait_event(SOON).unwrap().code, "ras umc");
}

#[test]
fn an_event_ends_the_wait() {
    let world = World::two_mi300x();
    let amd = world.open();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| amd.wait_event(Duration::from_secs(600)));
        world.errors(136, "umc", 1);
        assert_eq!(waiting.join().unwrap().unwrap().index, 1);
    });
}

#[test]
fn a_gpu_whose_render_node_is_gone_has_a_fault_and_no_sample() {
    let world = World::two_mi300x();
    let amd = world.open();
    fs::remove_dir_all(world.root().join("class/drm/renderD128")).unwrap();
    let gpus = amd.discover().unwrap();
    assert_eq!(gpus[0].fault.as_deref(), Some("does not answer: its render node renderD128 is gone"));
    assert_eq!(gpus[1].fault, None);
    assert_eq!(amd.sample().iter().map(|sample| sample.index).collect::<Vec<_>>(), [1]);
}

#[test]
fn containers_get_the_render_nodes_of_their_gpus() {
    let world = World::two_mi300x();
    let amd = world.open();
    assert_eq!(amd.nodes(&[1]), [PathBuf::from("/dev/dri/renderD136"), "/dev/kfd".into()]);
    assert_eq!(amd.nodes(&[7]), Vec::<PathBuf>::new());
    assert_eq!(amd.facts().get("amd_driver").map(String::as_str), Some("6.8.5"));
}

#[test]
fn a_node_without_the_driver_has_no_such_source() {
    let empty = TempDir::new().unwrap();
    let error = Amd::open(empty.path()).err().unwrap();
    assert!(matches!(&error, DeviceError::Sysfs { path, .. } if path.ends_with("class/kfd/kfd/topology/nodes")), "{error}");

    let no_library = empty.path().join("libnvidia-ml.so.1");
    assert_eq!(open_all(Some(&no_library), empty.path()).len(), 0);
    assert_eq!(open_all(Some(&no_library), World::two_mi300x().root()).len(), 1);
}

use berth_model::JobId;
use berth_model::policy::Partition;
use berth_model::reservation::Reservation;
use berth_model::resources::{Gpu, Inventory};
use berth_model::state::NodeFlag;
use serde_json::{Value, json};

use super::*;

fn at(hour: i8) -> Timestamp {
    jiff::civil::date(2026, 12, 2).at(hour, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp()
}

fn name(number: u32) -> NodeName {
    NodeName::new(format!("n{number}")).unwrap()
}

/// `n1` to `n6` of 64 CPUs, the first three with 8 GPUs and the feature `gpu`; `n6` is drained.
fn ground() -> ReserveGround {
    let gpu = |index| Gpu { index, uuid: String::new(), kind: "h100".to_owned(), memory_bytes: Bytes(0), numa: None, fault: None };
    let node = |number: u32| Node {
        name: name(number),
        inventory: Inventory {
            cpus: (0..64).collect(),
            memory_bytes: Bytes(64 << 30),
            gpus: if number < 4 { (0..8).map(gpu).collect() } else { Vec::new() },
            ..Inventory::default()
        },
        features: if number < 4 { BTreeSet::from(["gpu".to_owned()]) } else { BTreeSet::new() },
        weight: 1,
        is_down: false,
        flags: if number == 6 { BTreeSet::from([NodeFlag::Drain]) } else { BTreeSet::new() },
        reason: None,
    };
    let main = Partition::of_all_nodes(berth_model::Name::new("main").unwrap());
    let few = Partition { nodes: "n[4-5]".to_owned(), ..Partition::of_all_nodes(berth_model::Name::new("few").unwrap()) };
    ReserveGround { nodes: (1..7).map(|number| Arc::new(node(number))).collect(), partitions: vec![main, few], ..ReserveGround::default() }
}

fn spec(fields: Value) -> ReservationSpec {
    let mut value = json!({ "name": "new", "tenants": ["acme"] });
    value.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let spec: ReservationSpec = serde_json::from_value(value).unwrap();
    spec.check().unwrap();
    spec
}

fn chosen(ground: &ReserveGround, fields: Value) -> Result<String, Shortage> {
    let window = Window { start: at(12), end: at(14) };
    let parts = choose_nodes(ground, &spec(fields), window, &BTreeSet::new())?;
    let words = parts.iter().map(|part| match &part.share {
        None => part.nodes.clone(),
        Some(share) => {
            let gpus: u32 = share.gpus.values().sum();
            format!("{}:{}c{}g{}m", part.nodes, share.cpus, gpus, share.memory_bytes.0 >> 30)
        }
    });
    Ok(words.collect::<Vec<_>>().join(" "))
}

fn busy(node: u32, job: u64, until: Timestamp) -> Busy {
    Busy { node: name(node), job: JobId(job), until, reservation: None }
}

/// Has `nodes` from 13 to 15 o'clock.
fn other(nodes: &str, share: Option<Value>) -> Reservation {
    serde_json::from_value(json!({
        "name": "other", "access": {}, "windows": [{ "start": at(13), "end": at(15) }], "parts": [{ "nodes": nodes, "share": share }],
    }))
    .unwrap()
}

#[test]
fn idle_nodes_come_first_and_busy_ones_only_if_they_are_free_in_time() {
    let mut ground = ground();
    ground.busy = vec![busy(1, 7, at(11)), busy(2, 8, at(13)), busy(4, 9, at(12))];
    for (fields, nodes) in [
        (json!({ "node_count": 2 }), "n[3,5]"),
        (json!({ "node_count": 4 }), "n[1,3-5]"),
        (json!({ "features": "gpu*2" }), "n[1,3]"),
        (json!({ "features": "gpu*1", "flags": ["ignore_jobs"] }), "n3"),
        (json!({ "features": "gpu", "node_count": 3, "flags": ["ignore_jobs"] }), "n[1-3]"),
        (json!({ "partition": "few", "node_count": 1 }), "n5"),
        (json!({ "partition": "few", "flags": ["part_nodes"] }), "n[4-5]"),
        (json!({ "nodes": "n[4,6]" }), "n[4,6]"),
        (json!({ "nodes": "ALL", "flags": ["ignore_jobs", "maint"] }), "n[1-6]"),
    ] {
        assert_eq!(chosen(&ground, fields.clone()).unwrap(), nodes, "{fields}");
    }
    let short = chosen(&ground, json!({ "node_count": 5 })).unwrap_err();
    assert_eq!((short.wanted.as_str(), short.found.as_str()), ("5 nodes", "4 nodes"));
    assert_eq!(short.conflicts, ["n2: job 8 may run until 2026-12-02T13:00:00Z"]);
    let none = chosen(&ground, json!({ "features": "nope", "partition": "few", "node_count": 1 })).unwrap_err();
    assert_eq!(none.conflicts, ["no node is of the features nope and the partition few"]);
    let named = chosen(&ground, json!({ "nodes": "n[2,9]" })).unwrap_err();
    assert_eq!(named.conflicts.len(), 2, "{named:?}");
    // Its own jobs are no obstacle.
    ground.busy[1].reservation = Some(spec(json!({ "node_count": 1 })).name);
    assert_eq!(chosen(&ground, json!({ "node_count": 5 })).unwrap(), "n[1-5]");
}

#[test]
fn other_reservations_keep_their_nodes() {
    let mut ground = ground();
    ground.reservations = vec![other("n[1-4]", None)];
    assert_eq!(chosen(&ground, json!({ "node_count": 1 })).unwrap(), "n5");
    assert_eq!(chosen(&ground, json!({ "nodes": "n1", "flags": ["overlap"] })).unwrap(), "n1");
    assert_eq!(chosen(&ground, json!({ "nodes": "n1", "flags": ["maint"] })).unwrap(), "n1");
    let short = chosen(&ground, json!({ "nodes": "n[1,5]" })).unwrap_err();
    assert_eq!(short.conflicts, ["n1: reservation other until 2026-12-02T15:00:00Z"]);
    // Today it does not meet the other one; tomorrow at the same time it would.
    ground.reservations[0].windows[0] =
        Window { start: at(12) + jiff::SignedDuration::from_hours(24), end: at(14) + jiff::SignedDuration::from_hours(24) };
    assert_eq!(chosen(&ground, json!({ "nodes": "n1" })).unwrap(), "n1");
    assert!(chosen(&ground, json!({ "nodes": "n1", "flags": ["daily"] })).is_err());
}

#[test]
fn resources_come_from_few_nodes_and_take_their_part_along() {
    let mut ground = ground();
    for (tres, parts) in [
        (json!({ "gres/gpu": 2 }), "n1:16c2g16m"),
        (json!({ "gres/gpu:h100": 12 }), "n1:64c8g64m n2:32c4g32m"),
        (json!({ "gres/gpu": 16, "cpu": 32 }), "n[1-2]:16c8g64m"),
        (json!({ "cpu": 32 }), "n1:32c0g32m"),
        (json!({ "cpu": 80 }), "n1:64c0g64m n2:16c0g16m"),
        (json!({ "mem": 32 << 10 }), "n1:32c0g32m"),
    ] {
        assert_eq!(chosen(&ground, json!({ "tres": tres })).unwrap(), parts, "{tres}");
    }
    ground.reservations = vec![other("n[1-2]", Some(json!({ "cpus": 60, "memory_bytes": 0, "gpus": { "h100": 6 } })))];
    assert_eq!(chosen(&ground, json!({ "tres": { "gres/gpu": 8 } })).unwrap(), "n3:64c8g64m");
    assert_eq!(chosen(&ground, json!({ "tres": { "gres/gpu": 25 } })).unwrap_err().found, "gres/gpu=12");
}

#[test]
fn nodes_that_fail_are_replaced_if_they_were_counted() {
    let now = at(12);
    let window = Window { start: at(12), end: at(14) };
    let replaced = |ground: &ReserveGround, fields: Value, nodes: &str| {
        let parts = [ReservedPart { nodes: nodes.to_owned(), share: None }];
        replace_nodes(ground, &spec(fields), window, &parts, now).map(|parts| parts[0].nodes.clone())
    };
    let mut ground = ground();
    assert_eq!(replaced(&ground, json!({ "node_count": 2 }), "n[5-6]").as_deref(), Some("n[1,5]"));
    assert_eq!(replaced(&ground, json!({ "node_count": 2 }), "n[4-5]"), None);
    assert_eq!(replaced(&ground, json!({ "node_count": 2, "flags": ["static_alloc"] }), "n[5-6]"), None);
    assert_eq!(replaced(&ground, json!({ "nodes": "n[5-6]" }), "n[5-6]"), None);
    // With `replace`, what is in use gives way to what is idle.
    ground.busy = vec![busy(4, 7, at(13))];
    assert_eq!(replaced(&ground, json!({ "node_count": 2 }), "n[4-5]"), None);
    assert_eq!(replaced(&ground, json!({ "node_count": 2, "flags": ["replace"] }), "n[4-5]").as_deref(), Some("n[1,5]"));
    assert_eq!(replaced(&ground, json!({ "partition": "few", "flags": ["part_nodes", "ignore_jobs"] }), "n5").as_deref(), Some("n[4-5]"));
}

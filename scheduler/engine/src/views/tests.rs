use std::collections::BTreeMap;
use std::sync::Arc;

use berth_model::node::Node;
use berth_model::policy::Partition;
use berth_model::reservation::Reservation;
use berth_model::resources::Inventory;
use berth_model::{Name, NodeName};
use serde_json::json;

use super::*;
use crate::amount::SECOND;

/// A node of 16 CPUs with these reservations: name, from, until, CPUs (16: all), flags.
fn fleet(reservations: &[(&str, i64, i64, u32, &[&str])]) -> Fleet {
    let inventory = Inventory { cpus: (0..16).collect(), memory_bytes: berth_model::Bytes(0), ..Inventory::default() };
    let node = Node {
        name: NodeName::new("n1").unwrap(),
        inventory,
        features: Default::default(),
        weight: 1,
        is_down: false,
        flags: Default::default(),
        reason: None,
    };
    let at = |second: i64| jiff::Timestamp::from_second(second).unwrap();
    let all = reservations.iter().map(|(name, from, until, cpus, flags)| {
        let share = (*cpus < 16).then(|| json!({ "cpus": cpus, "memory_bytes": 0 }));
        let mut value =
            json!({ "name": name, "windows": [{ "start": at(*from), "end": at(*until) }], "parts": [{ "nodes": "n1" }], "access": {} });
        if let Some(share) = share {
            value["parts"][0]["share"] = share;
        }
        flags.iter().for_each(|flag| value[flag] = json!(true));
        let reservation: Reservation = serde_json::from_value(value).unwrap();
        (reservation.name.clone(), reservation)
    });
    let main = Name::new("main").unwrap();
    let partitions = BTreeMap::from([(main.clone(), Partition::of_all_nodes(main))]);
    Fleet::build(&BTreeMap::from([(node.name.clone(), Arc::new(node))]), &partitions, &all.collect())
}

fn held(from: i64, to: i64, cpus: u32, via: Option<u32>) -> Taken {
    Taken { from: from * SECOND, to: to * SECOND, amount: Amount { cpus, ..Amount::default() }, via }
}

/// Free CPUs at these instants, seen from outside and by each reservation in turn.
fn seen(fleet: &Fleet, taken: &[Taken], instants: [i64; 4]) -> Vec<[u32; 4]> {
    fleet.faces(0).map(|face| instants.map(|instant| free(fleet, face, taken, instant * SECOND).cpus)).collect()
}

const AT: [i64; 4] = [50, 100, 199, 200];

#[test]
fn a_part_is_kept_while_it_lasts() {
    let fleet = fleet(&[("a", 100, 200, 8, &[])]);
    assert_eq!(seen(&fleet, &[], AT), [[16, 8, 8, 16], [0, 8, 8, 0]]);
    // Its own job takes from what is kept, one outside from the rest.
    assert_eq!(seen(&fleet, &[held(0, 300, 2, Some(0))], AT), [[14, 8, 8, 14], [0, 6, 6, 0]]);
    assert_eq!(seen(&fleet, &[held(0, 150, 2, None)], AT), [[14, 6, 8, 16], [0, 8, 8, 0]]);
    // Who was there before is in the way.
    assert_eq!(seen(&fleet, &[held(0, 150, 10, None)], AT), [[6, 0, 8, 16], [0, 6, 8, 0]]);
}

#[test]
fn jobs_of_a_flex_one_run_around_it() {
    let fleet = fleet(&[("a", 100, 200, 16, &["is_flex"])]);
    assert_eq!(seen(&fleet, &[], AT), [[16, 0, 0, 16], [16; 4]]);
    assert_eq!(seen(&fleet, &[held(0, 150, 4, Some(0)), held(0, 60, 2, None)], AT), [[10, 0, 0, 16], [10, 12, 16, 16]]);
}

#[test]
fn two_parts_are_kept_side_by_side() {
    let fleet = fleet(&[("a", 100, 200, 8, &[]), ("b", 100, 150, 6, &[])]);
    assert_eq!(seen(&fleet, &[], AT), [[16, 2, 8, 16], [0, 8, 8, 0], [0, 6, 0, 0]]);
}

#[test]
fn maintenance_keeps_others_out_of_what_they_reserved() {
    let fleet = fleet(&[("a", 0, 300, 16, &[]), ("m", 100, 200, 16, &["may_overlap", "is_maintenance"])]);
    assert_eq!(seen(&fleet, &[], AT), [[0, 0, 0, 0], [16, 0, 0, 16], [0, 16, 16, 0]]);
    // Of two that may overlap, whoever takes it first has it.
    let fleet = self::fleet(&[("a", 0, 300, 16, &["may_overlap"]), ("b", 100, 200, 16, &["may_overlap"])]);
    assert_eq!(seen(&fleet, &[held(100, 150, 10, Some(1))], AT), [[0, 0, 0, 0], [16, 6, 16, 16], [0, 6, 16, 0]]);
}

#[test]
fn steps_change_only_where_something_happens() {
    let fleet = fleet(&[("a", 100, 200, 8, &[])]);
    let line: Vec<(Micros, u32)> =
        steps(&fleet, 0, &[held(0, 150, 10, None)]).into_iter().map(|(at, free)| (at / SECOND, free.cpus)).collect();
    assert_eq!(line, [(Micros::MIN / SECOND, 16), (0, 6), (100, 0), (150, 8), (200, 16)]);
}

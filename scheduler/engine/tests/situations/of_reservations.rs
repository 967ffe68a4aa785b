//! Reservations: those that a job asks into, and those that keep it out. Four nodes, now is noon, the job runs for an hour.

use berth_model::reservation::Reservation;
use serde_json::{Value, json};

use crate::Situation;
use crate::world::*;

/// Of these nodes for acme, from and until so many minutes after noon.
fn reservation(nodes: &str, from: i64, until: i64, more: Value) -> Reservation {
    let mut value = json!({
        "name": "r", "access": { "tenants": ["acme"] }, "windows": [{ "start": at(from), "end": at(until) }], "parts": [{ "nodes": nodes }],
    });
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(value).unwrap()
}

fn into(world: &mut World) {
    world.asked.reservations = vec![name("r")];
}

pub const SITUATIONS: &[Situation] = &[
    Situation {
        is: "would run into maintenance",
        made: |w| w.reserve([reservation("n[1-4]", 30, 90, json!({ "is_maintenance": true, "access": {} }))]),
        code: "reserved",
        object: "reservation/r",
        advice: "a time limit of 00:30:00 or less lets it start before the reservation begins",
        follow: |w| w.asked.time_limit = 1800,
    },
    Situation {
        is: "others have the nodes until an hour from now",
        made: |w| w.reserve([reservation("n[1-4]", -10, 60, json!({ "access": { "tenants": ["beta"] } }))]),
        code: "reserved",
        object: "reservation/r",
        advice: "nothing to do: it starts on other nodes, or when the reservation ends",
        follow: |w| w.now = at(60),
    },
    Situation {
        is: "stays off a floating reservation",
        made: |w| w.reserve([reservation("n[1-4]", 0, 1, json!({ "float_seconds": 1800, "access": {} }))]),
        code: "reserved",
        object: "reservation/r",
        advice: "lower the time limit to 00:30:00 or less, or use other nodes",
        follow: |w| w.asked.time_limit = 1800,
    },
    Situation {
        is: "its reservation is to come",
        made: |w| {
            w.reserve([reservation("n1", 30, 120, json!({}))]);
            into(w);
        },
        code: "reservation_not_started",
        object: "reservation/r",
        advice: "nothing to do: it can start when the reservation begins",
        follow: |w| w.now = at(30),
    },
    Situation {
        is: "its reservation's node is in use",
        made: |w| {
            w.reserve([reservation("n1", -10, 120, json!({}))]);
            w.fill();
            into(w);
        },
        code: "reservation_nodes_busy",
        object: "reservation/r",
        advice: "nothing to do: it starts when jobs in the reservation, or those before it on its nodes, end",
        follow: |w| {
            w.end(1);
            w.now = at(30);
        },
    },
    Situation {
        is: "longer than what is left of its reservation",
        made: |w| {
            w.reserve([reservation("n1", -10, 30, json!({}))]);
            into(w);
        },
        code: "reservation_too_short",
        object: "reservation/r",
        advice: "lower the time limit to 00:30:00 or less",
        follow: |w| w.asked.time_limit = 1800,
    },
    Situation {
        is: "its reservation is not for it",
        made: |w| {
            w.reserve([reservation("n1", -10, 120, json!({ "access": { "tenants": ["beta"] } }))]);
            into(w);
        },
        code: "reservation_not_allowed",
        object: "reservation/r",
        advice: "submit the job without it, or ask an administrator to let you in",
        follow: |w| w.asked.reservations.clear(),
    },
    Situation {
        is: "its reservation is over",
        made: |w| {
            w.reserve([reservation("n1", -60, -10, json!({}))]);
            into(w);
        },
        code: "reservation_over",
        object: "reservation/r",
        advice: "submit the job again, without this reservation or in another one",
        follow: |w| w.asked.reservations.clear(),
    },
];

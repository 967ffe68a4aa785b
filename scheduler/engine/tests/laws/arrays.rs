//! Laws of arrays: each task starts once, in order, and never more of them at once than the throttle says, whoever plans.

use std::collections::BTreeSet;

use berth_engine::Engine;
use berth_model::event::{ArrayProgress, Event, JobSnapshot, RunningAttempt};
use berth_model::state::JobState;
use berth_model::tres::Charge;
use berth_model::{Indices, JobId};
use proptest::prelude::*;

use crate::common::{World, at, job, shape};

/// An array as the database has it.
struct Array {
    row: JobSnapshot,
    left: Indices,
    throttle: Option<u32>,
    running: BTreeSet<u64>,
    last: Option<u32>,
}

impl Array {
    fn event(&self) -> Event {
        if self.left.is_empty() {
            return Event::JobGone(self.row.id);
        }
        let progress = ArrayProgress { pending: self.left.clone(), running: self.running.len() as u32, throttle: self.throttle };
        Event::Job(Box::new(JobSnapshot { array: Some(progress), ..self.row.clone() }))
    }
}

fn any_array() -> impl Strategy<Value = (u32, u32, u32, Option<u32>, u32)> {
    (0u32..900_000, 1u32..4, 1u32..12, proptest::option::of(1u32..4), 1u32..4)
}

#[derive(Clone, Debug)]
enum Happening {
    Ends(usize),
    Cancelled(u32),
    Throttled(Option<u32>),
    Planned { is_full: bool },
}

fn any_happening() -> impl Strategy<Value = (usize, Happening)> {
    let what = prop_oneof![
        3 => (0usize..20).prop_map(Happening::Ends),
        1 => (0u32..12).prop_map(Happening::Cancelled),
        1 => proptest::option::of(1u32..5).prop_map(Happening::Throttled),
        4 => any::<bool>().prop_map(|is_full| Happening::Planned { is_full }),
    ];
    (0usize..2, what)
}

/// Makes a plan and what the database makes of it.
fn plan(engine: &mut Engine, arrays: &mut [Array], minute: i64, is_full: bool, next: &mut u64) -> Result<(), TestCaseError> {
    let plan = if is_full { engine.plan(at(minute)) } else { engine.quick_plan(at(minute)) };
    for start in plan.starts {
        let array = arrays.iter_mut().find(|array| array.row.id == start.job).expect("only arrays are there");
        let index = start.array_index.expect("a task");
        let (taken, left) = array.left.divide(&Indices::from_iter([index]));
        prop_assert_eq!(taken.len(), 1, "task {} is not there to start", index);
        prop_assert!(array.last < Some(index), "in order");
        (array.left, array.last) = (left, Some(index));
        *next += 1;
        array.running.insert(*next);
        prop_assert!(array.throttle.is_none_or(|most| array.running.len() <= most as usize), "the throttle holds");
        let attempt = RunningAttempt {
            number: 1,
            allocated_at: at(minute),
            started_at: Some(at(minute)),
            charge: Charge::default(),
            nodes: start.nodes,
            past: Vec::new(),
            checkpoint_at: None,
            is_requeueable: true,
            preempted: None,
            reservation: None,
            suspension: None,
            suspended_ms: 0,
        };
        let row = JobSnapshot { id: JobId(*next), state: JobState::Running, attempt: Some(attempt), ..array.row.clone() };
        engine.confirm(start.job, start.array_index);
        engine.apply(Event::Job(Box::new(row)));
        engine.apply(array.event());
    }
    Ok(())
}

proptest! {
    #[test]
    fn tasks_start_once_in_order_and_within_the_throttle(
        made in [any_array(), any_array()],
        happenings in proptest::collection::vec(any_happening(), 0..60),
    ) {
        let World(mut engine) = World::nodes(2, 0);
        let (mut next, mut minute) = (100, 0);
        let mut arrays: Vec<Array> = made.iter().zip(1..).map(|((first, step, count, throttle, cpus), id)| Array {
            row: job(id, shape(1, cpus * 3), 10_000),
            left: (0..*count).map(|i| first + i * step).collect(),
            throttle: *throttle,
            running: BTreeSet::new(),
            last: None,
        }).collect();
        arrays.iter().for_each(|array| engine.apply(array.event()));
        plan(&mut engine, &mut arrays, minute, true, &mut next)?;
        for (which, what) in happenings {
            minute += 1;
            let array = &mut arrays[which];
            match what {
                Happening::Ends(n) => {
                    if let Some(task) = array.running.iter().nth(n).copied() {
                        array.running.remove(&task);
                        engine.apply(Event::JobGone(JobId(task)));
                    }
                }
                Happening::Cancelled(n) => {
                    let chosen = array.left.iter().nth(n as usize);
                    if let Some(index) = chosen {
                        array.left = array.left.divide(&Indices::from_iter([index])).1;
                    }
                }
                // What runs already runs on.
                Happening::Throttled(most) => array.throttle = most.map(|most| most.max(array.running.len() as u32)),
                Happening::Planned { is_full } => {
                    plan(&mut engine, &mut arrays, minute, is_full, &mut next)?;
                    continue;
                }
            }
            engine.apply(array.event());
        }
        // Nobody is forgotten: what ends makes room until all have started, by quick plans alone.
        for _ in 0..60 {
            minute += 1;
            for array in &mut arrays {
                for task in std::mem::take(&mut array.running) {
                    engine.apply(Event::JobGone(JobId(task)));
                }
                engine.apply(array.event());
            }
            plan(&mut engine, &mut arrays, minute, false, &mut next)?;
        }
        prop_assert!(arrays.iter().all(|array| array.left.is_empty()), "all started");
    }
}

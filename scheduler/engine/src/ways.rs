//! Ways: on nodes of which features, in which reservations, or in none, and with which licences a job may run, where several would do. Each is a [key](crate::keys) of its own; the one that lets it start first is taken,
//! of equals the first.
//!
//! A job that names reservations runs in one of them, in its order. Another goes first into magnetic ones that let it in, by name, then
//! anywhere. Reservations that float are fences: a job that runs longer than such a one is ahead stays away from its nodes for good, since
//! at any time at which it could start the reservation would begin before its end.
//!
//! Example: one floats an hour ahead on n8. A job of 60 minutes may start there, one of 61 minutes may not, at any time.

use std::collections::{BTreeMap, BTreeSet};

use berth_model::Name;
use berth_model::event::JobSnapshot;
use berth_model::reservation::Reservation;
use berth_model::validate::Choice;

use crate::keys::Key;

/// All that are known, by name.
pub type Reservations = BTreeMap<Name, Reservation>;

/// The job may run in this reservation, as far as people go.
pub fn may_use(reservation: &Reservation, job: &JobSnapshot) -> bool {
    reservation.float_seconds.is_none() && reservation.access.admits(&job.tenant, &job.account, &job.user)
}

/// Those of the reservations that a job names in which it may run.
pub fn named<'a>(reservations: &'a Reservations, job: &'a JobSnapshot) -> impl Iterator<Item = &'a Reservation> {
    job.reservations.iter().filter_map(|name| reservations.get(name)).filter(|reservation| may_use(reservation, job))
}

/// A key for each way, the first to be tried first. A job that names reservations of which it may use none has the key of jobs outside; it
/// does not start.
pub fn keys(reservations: &Reservations, job: &JobSnapshot) -> (Key, Vec<Key>) {
    let plain = Key::of(job);
    if reservations.is_empty() && job.licenses.len() < 2 && job.choices.is_empty() {
        return (plain, Vec::new());
    }
    let places = places(reservations, job, &plain);
    let places = match job.choices.as_slice() {
        [] => places,
        choices => choices.iter().flat_map(|choice| places.iter().map(|key| on(choice, key))).collect(),
    };
    let mut keys: Vec<Key> = match job.licenses.as_slice() {
        [] | [_] => places,
        several => places.iter().flat_map(|key| several.iter().map(|licenses| Key { licenses: licenses.clone(), ..key.clone() })).collect(),
    };
    let first = keys.remove(0);
    (first, keys)
}

/// The way on the nodes of a choice.
fn on(choice: &Choice, key: &Key) -> Key {
    let mut key = key.clone();
    key.ground.constraint = Some(choice.any_of.clone()).filter(|any_of| any_of.iter().all(|all| !all.is_empty()));
    key.ground.counts = choice.counts.clone();
    key
}

/// Those in and outside reservations.
fn places(reservations: &Reservations, job: &JobSnapshot, plain: &Key) -> Vec<Key> {
    if reservations.is_empty() {
        return vec![plain.clone()];
    }
    let is_fence = |reservation: &&Reservation| reservation.float_seconds.is_some_and(|float| job.time_limit > float);
    let fences: BTreeSet<Name> = reservations.values().filter(is_fence).map(|fence| fence.name.clone()).collect();
    let within = |reservation: Option<&Name>| {
        let mut key = plain.clone();
        (key.ground.reservation, key.ground.fences) = (reservation.cloned(), fences.clone());
        key
    };
    let mut keys: Vec<Key> = if job.reservations.is_empty() {
        let magnetic = reservations.values().filter(|reservation| reservation.is_magnetic && may_use(reservation, job));
        magnetic.map(|reservation| within(Some(&reservation.name))).chain([within(None)]).collect()
    } else {
        named(reservations, job).map(|reservation| within(Some(&reservation.name))).collect()
    };
    if keys.is_empty() {
        keys.push(within(None));
    }
    keys
}

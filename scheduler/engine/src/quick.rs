//! The quick plan.
use crate::amount::Micros;
use crate::backfill::Queued;
use crate::engine::Entry;
use crate::keys::KeyId;
use crate::priority::Place;
use crate::verdicts::Grounds;
use berth_model::JobId;
use std::collections::HashMap;

pub struct Standing {
    pub grounds: Grounds,
    pub full_at: Option<Micros>,
    groups: HashMap<(KeyId, Micros), Vec<(Place, JobId)>>,
}
impl Standing {
    pub fn of<'a>(places: impl Iterator<Item = (Place, &'a Entry)>, _queue: &[Queued], grounds: Grounds, full_at: Option<Micros>) -> Self {
        let _ = places.count();
        Standing { grounds, full_at, groups: HashMap::new() }
    }
}

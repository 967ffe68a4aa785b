//! Lower bounds of a pass: what was not found for one job need not be looked for again for the next alike.
//!
//! Within a pass resources are only taken, never given back. So if a key's gang could not start before T, no later job of the key
//! that runs as long or longer can; nor can any gang on the same ground that needs as much on as many nodes for as long.

use std::collections::HashMap;
use std::sync::Arc;

use crate::amount::{Amount, Micros};
use crate::fit::{Candidates, Fit};
use crate::keys::KeyId;

/// Bounds compared with for one ground, at the most.
const MOST_SHARED: usize = 96;

/// A bound of a gang that others may lean on.
#[derive(Debug)]
struct Shared {
    nodes: u32,
    length: Micros,
    fit: Arc<Fit>,
    variant: usize,
    not_before: Micros,
}

impl Shared {
    fn needs(&self) -> &[Option<Amount>] {
        &self.fit.variants[self.variant].needs
    }

    /// Whoever asks for this asks for no less than the bound is about.
    fn bounds(&self, fit: &Fit, variant: usize, length: Micros) -> bool {
        let asked = &fit.variants[variant];
        self.nodes <= asked.nodes
            && self.length <= length
            && self.needs().iter().zip(&asked.needs).all(|(least, need)| match (least, need) {
                (Some(least), Some(need)) => need.covers(least),
                (_, None) => true,
                (None, Some(_)) => false,
            })
    }
}

#[derive(Debug, Default)]
pub struct Floors {
    /// By key, length and variant.
    own: HashMap<(KeyId, Micros, usize), Micros>,
    /// By ground. The latest bounds are the best: a pass goes forward in time.
    shared: HashMap<*const Candidates, Vec<Shared>>,
}

impl Floors {
    /// The instant before which this gang surely cannot start.
    pub fn get(&self, key: KeyId, fit: &Fit, variant: usize, length: Micros, now: Micros) -> Micros {
        if let Some(own) = self.own.get(&(key, length, variant)) {
            return *own;
        }
        let shared = self.shared.get(&Arc::as_ptr(&fit.candidates)).into_iter().flatten();
        shared.filter(|bound| bound.bounds(fit, variant, length)).map(|bound| bound.not_before).max().unwrap_or(now).max(now)
    }

    /// The same by what was learned of gangs of this very key.
    pub fn own(&self, key: KeyId, variant: usize, length: Micros, now: Micros) -> Micros {
        self.own.get(&(key, length, variant)).copied().unwrap_or(now)
    }

    pub fn raise(&mut self, key: KeyId, fit: &Arc<Fit>, variant: usize, length: Micros, not_before: Micros) {
        let is_new = self.own.insert((key, length, variant), not_before).is_none();
        let nodes = fit.variants[variant].nodes;
        // Grounds with required nodes share nothing: their gangs wait for those.
        if nodes < 2 || !is_new || fit.candidates.required.as_ref().is_none_or(|required| !required.is_empty()) {
            return;
        }
        let shared = self.shared.entry(Arc::as_ptr(&fit.candidates)).or_default();
        let bound = Shared { nodes, length, fit: fit.clone(), variant, not_before };
        shared.retain(|other| {
            other.not_before > not_before
                || !(bound.nodes <= other.nodes && bound.length <= other.length && bound.bounds(&other.fit, other.variant, other.length))
        });
        if shared.len() == MOST_SHARED {
            let (least, _) = shared.iter().enumerate().min_by_key(|(i, bound)| (bound.not_before, *i)).expect("it is full");
            shared.swap_remove(least);
        }
        shared.push(bound);
    }
}

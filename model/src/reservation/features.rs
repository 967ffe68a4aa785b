//! `h100*2,fat*1`: so many nodes with these features. Without a count, all nodes of the reservation must have them.

use std::collections::BTreeSet;

use crate::Fault;
use crate::validate::parse_constraint;

/// Nodes with one of some sets of features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureCount {
    /// As in [`parse_constraint`].
    pub any_of: Vec<BTreeSet<String>>,
    /// How many such nodes; `None`: as many as the reservation has.
    pub count: Option<u32>,
}

/// Reads `features` of a reservation: one expression for all nodes, or several with counts.
pub fn parse_features(text: &str) -> Result<Vec<FeatureCount>, Fault> {
    let fault = |detail: String| {
        Fault::new("invalid_features", "features", detail, "write one expression (h100&nvlink), or several with counts: h100*2,fat*1")
    };
    let items: Vec<&str> = text.split(',').map(str::trim).collect();
    let mut found = Vec::with_capacity(items.len());
    for item in &items {
        let (expression, count) = match item.rsplit_once('*') {
            Some((expression, count)) => {
                let count = count.trim().parse::<u32>().ok().filter(|count| *count > 0);
                (expression, Some(count.ok_or_else(|| fault(format!("{item:?} has no count behind the *")))?))
            }
            None => (*item, None),
        };
        let any_of = parse_constraint(expression.trim()).map_err(|fault| Fault { field: "features".to_owned(), ..fault })?;
        found.push(FeatureCount { any_of, count });
    }
    if items.len() > 1 && found.iter().any(|feature| feature.count.is_none()) {
        return Err(fault(format!("{text:?} has several features, not all with a count")));
    }
    Ok(found)
}

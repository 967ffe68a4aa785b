//! Generic resources (GRES) of a node beyond plain GPUs.

use std::collections::BTreeSet;

use crate::resources::Gpu;

/// Types of GPU that a plan tells apart on one node.
pub const MAX_GPU_KINDS: usize = 4;

/// Marks as out of use what a plan cannot take into account: GPUs of more types than [`MAX_GPU_KINDS`], those that come last by name.
pub fn mark_surplus_kinds(gpus: &mut [Gpu]) {
    let kinds: BTreeSet<String> = gpus.iter().map(|gpu| gpu.kind.clone()).collect();
    let surplus: BTreeSet<String> = kinds.into_iter().skip(MAX_GPU_KINDS).collect();
    for gpu in gpus.iter_mut().filter(|gpu| surplus.contains(&gpu.kind)) {
        let reason = || format!("not used: a node has at most {MAX_GPU_KINDS} types of GPU, and {} is one more", gpu.kind);
        gpu.fault = Some(gpu.fault.clone().unwrap_or_else(reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;

    #[test]
    fn types_beyond_the_fourth_are_out_of_use_and_say_so() {
        let gpu = |(index, kind): (u32, &str)| Gpu {
            index,
            uuid: format!("GPU-{index}"),
            kind: kind.to_owned(),
            memory_bytes: Bytes(0),
            numa: None,
            fault: None,
        };
        let mut gpus: Vec<Gpu> = (0..).zip(["4g.40gb", "1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "1g.10gb"]).map(gpu).collect();
        mark_surplus_kinds(&mut gpus);
        assert_eq!(gpus[0].fault.as_deref(), Some("not used: a node has at most 4 types of GPU, and 4g.40gb is one more"));
        assert!(gpus[1..].iter().all(|gpu| gpu.fault.is_none()), "{gpus:?}");
    }
}

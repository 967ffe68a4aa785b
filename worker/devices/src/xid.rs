//! What NVIDIA's Xids mean, and which of them condemn a GPU.
//!
//! Meanings follow NVIDIA's Xid catalog (<https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html>). Not fatal are those
//! that an application brings upon itself, the same that NVIDIA's own Kubernetes device plugin takes for healthy: 13, 31, 43, 45, 68
//! and 109. All others are, also those not in our table: a node drained in vain costs less than jobs lost one after another.

/// The Xid by which a GPU takes its leave.
pub const FALLEN_OFF_THE_BUS: u64 = 79;

const WORDS: [(u64, &str); 20] = [
    (13, "an application's kernel raised an exception in the graphics engine"),
    (31, "an application touched GPU memory that is not mapped"),
    (43, "an application's channel was reset after it failed"),
    (45, "an application's channels were cleaned up after an earlier error or a kill"),
    (48, "an ECC error of two bits, which cannot be corrected"),
    (62, "the GPU's power management controller halted"),
    (63, "a memory page or row was marked for replacement at the next reset"),
    (64, "a memory page or row could not be marked for replacement"),
    (68, "the video engine raised an exception for an application"),
    (74, "an NVLink failed"),
    (79, "the GPU has fallen off the bus"),
    (92, "corrected ECC errors come at a high rate"),
    (94, "an uncorrectable ECC error, contained: it ended the application it hit"),
    (95, "an uncorrectable ECC error, not contained: any application may have been hit"),
    (109, "an application did not yield the GPU in time"),
    (119, "the GPU's system processor (GSP) did not answer in time"),
    (120, "the GPU's system processor (GSP) failed"),
    (140, "an uncorrectable ECC error that awaits recovery"),
    (149, "an NVLink failed beyond recovery"),
    (154, "the driver calls for a reset or a reboot"),
];

/// The Xid in words.
pub fn words(xid: u64) -> &'static str {
    WORDS.iter().find(|(known, _)| *known == xid).map_or("an error of the driver or the GPU; see NVIDIA's Xid catalog", |(_, words)| words)
}

pub fn is_fatal(xid: u64) -> bool {
    !matches!(xid, 13 | 31 | 43 | 45 | 68 | 109)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_do_not_condemn_a_gpu() {
        let harmless: Vec<u64> = (1..200).filter(|&xid| !is_fatal(xid)).collect();
        assert_eq!(harmless, [13, 31, 43, 45, 68, 109]);
    }

    #[test]
    fn well_known_xids_have_words() {
        assert_eq!(words(FALLEN_OFF_THE_BUS), "the GPU has fallen off the bus");
        assert!(words(48).contains("two bits"));
        assert!(words(1000).contains("Xid catalog"));
        assert!(WORDS.is_sorted_by_key(|(xid, _)| xid));
    }
}

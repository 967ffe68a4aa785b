//! GPU types as jobs ask for them (`h100`, `mi300x`), from the names that vendors give.

/// Words that tell vendor, brand or packaging rather than the model.
const NOISE: [&str; 10] = ["NVIDIA", "AMD", "Tesla", "GeForce", "Radeon", "Generation", "Server", "Workstation", "Edition", "GPU"];

/// Longest type that a job may ask for.
const LONGEST: usize = 63;

/// `NVIDIA A100-SXM4-40GB` is `a100`: a data-centre model ends before its form factor and memory, which are told apart by
/// `memory_bytes`. `NVIDIA GeForce RTX 4090` is `rtx-4090`: elsewhere every word counts.
pub fn nvidia_type(name: &str) -> String {
    let words = words(name);
    match words.first().map(|first| first.split('-').next().unwrap_or(first)) {
        Some(model) if model.contains(|c: char| c.is_ascii_digit()) => slug(&[model]),
        _ => slug(&words),
    }
}

/// The profile of a MIG instance: `NVIDIA H100 80GB HBM3 MIG 1g.10gb` is `1g.10gb`, `1g.10gb+me` is `1g.10gb.me`. None if the name has none.
pub fn mig_type(name: &str) -> Option<String> {
    let (_, profile) = name.split_once(" MIG ")?;
    let profile = profile.split_whitespace().next()?;
    Some(slug(&[profile.replace('+', ".").as_str()]))
}

/// The same from its parts: slices of the GPU, slices of the instance's own, MiB of memory. What a part of the slices computes is named
/// before the whole: `1c.3g.40gb`.
pub fn mig_type_of(gpu_slices: u32, compute_slices: u32, memory_mib: u64) -> String {
    let memory = memory_mib.div_ceil(1024);
    match compute_slices {
        0 => format!("{gpu_slices}g.{memory}gb"),
        all if all == gpu_slices => format!("{gpu_slices}g.{memory}gb"),
        part => format!("{part}c.{gpu_slices}g.{memory}gb"),
    }
}

/// By product name where the driver tells one (`AMD Instinct MI300X OAM`, `AMD Radeon RX 7900 XTX`), else by PCI device, else by the
/// compiler's name of the chip (`gfx942`).
///
/// `gfx_target_version` is kfd's: major · 10000 + minor · 100 + stepping, the stepping written in hexadecimal: 90010 is gfx90a.
pub fn amd_type(product_name: &str, device_id: u32, gfx_target_version: u32) -> String {
    let words = words(product_name);
    let is_instinct = |word: &&str| word.strip_prefix("MI").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let splits = words.iter().flat_map(|word| word.split(['_', '-']));
    if let Some(model) = splits.into_iter().find(|word| is_instinct(word)) {
        return slug(&[model]);
    }
    // "AMD Radeon Graphics" names no model.
    if words.iter().any(|word| word.contains(|c: char| c.is_ascii_digit())) {
        return slug(&words);
    }
    if let Some((_, model)) = AMD_DEVICES.iter().find(|(id, _)| *id == device_id) {
        return (*model).into();
    }
    let (major, minor, stepping) = (gfx_target_version / 10_000, gfx_target_version / 100 % 100, gfx_target_version % 100);
    format!("gfx{major}{minor:x}{stepping:x}")
}

/// Accelerators by PCI device (pci.ids, vendor 1002), for boards whose firmware tells no product name.
const AMD_DEVICES: [(u32, &str); 11] = [
    (0x738c, "mi100"),
    (0x7408, "mi250x"),
    (0x740c, "mi250"),
    (0x740f, "mi210"),
    (0x74a0, "mi300a"),
    (0x74a1, "mi300x"),
    (0x74a2, "mi308x"),
    (0x74a5, "mi325x"),
    (0x74b5, "mi300x"),
    (0x75a0, "mi350x"),
    (0x75a3, "mi355x"),
];

fn words(name: &str) -> Vec<&str> {
    name.split_whitespace().filter(|word| !NOISE.contains(word)).collect()
}

/// Lower-case words with dashes between, of the characters that a job may write.
fn slug(words: &[&str]) -> String {
    let joined = words.join("-").to_ascii_lowercase();
    let text: String = joined.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).take(LONGEST).collect();
    if text.is_empty() { "gpu".into() } else { text }
}

#[cfg(test)]
mod tests {
    use berth_model::resources::Gpus;

    use super::*;

    #[test]
    fn nvidia_names_become_types() {
        for (name, kind) in [
            ("NVIDIA H100 80GB HBM3", "h100"),
            ("NVIDIA H100 PCIe", "h100"),
            ("NVIDIA H100 NVL", "h100"),
            ("NVIDIA A100-SXM4-40GB", "a100"),
            ("A100-SXM4-80GB", "a100"),
            ("NVIDIA A100 80GB PCIe", "a100"),
            ("NVIDIA GeForce RTX 4090", "rtx-4090"),
            ("NVIDIA GeForce RTX 3080 Ti", "rtx-3080-ti"),
            ("GeForce GTX 1080 Ti", "gtx-1080-ti"),
            ("NVIDIA RTX A6000", "rtx-a6000"),
            ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
            ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-blackwell"),
            ("NVIDIA TITAN V", "titan-v"),
            ("Tesla V100-SXM2-32GB", "v100"),
            ("Tesla T4", "t4"),
            ("NVIDIA H200", "h200"),
            ("NVIDIA L40S", "l40s"),
            ("NVIDIA GB200", "gb200"),
            ("NVIDIA GH200 480GB", "gh200"),
            ("NVIDIA Graphics/Device", "graphics-device"),
            ("NVIDIA", "gpu"),
        ] {
            assert_eq!(nvidia_type(name), kind, "{name}");
            assert_eq!(format!("{kind}:2").parse::<Gpus>().unwrap().kind.as_deref(), Some(kind), "a job can ask for {name}");
        }
    }

    #[test]
    fn mig_profiles_become_types() {
        for (name, expected) in [
            ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", Some("1g.10gb")),
            ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", Some("3g.20gb")),
            ("NVIDIA A100-SXM4-80GB MIG 1c.3g.40gb", Some("1c.3g.40gb")),
            ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", Some("1g.10gb.me")),
            ("NVIDIA H100 80GB HBM3", None),
        ] {
            assert_eq!(mig_type(name).as_deref(), expected, "{name}");
            assert!(expected.is_none_or(|kind| format!("{kind}:2").parse::<Gpus>().is_ok()), "a job can ask for {name}");
        }
        // As drivers count the memory of an A100 with 40 GB and of an H100 with 80 GB.
        assert_eq!((mig_type_of(1, 1, 4864).as_str(), mig_type_of(3, 1, 40_320).as_str()), ("1g.5gb", "1c.3g.40gb"));
    }

    #[test]
    fn amd_names_become_types() {
        for (name, device, gfx, kind) in [
            ("AMD Instinct MI300X OAM", 0, 90402, "mi300x"),
            ("AMD_Instinct_MI300X_OAM", 0, 90402, "mi300x"),
            ("AMD Instinct MI250X / MI250", 0x7408, 90010, "mi250x"),
            ("AMD Radeon RX 7900 XTX", 0x744c, 110_000, "rx-7900-xtx"),
            ("AMD Radeon PRO W7900", 0x7448, 110_000, "pro-w7900"),
            ("AMD Radeon Graphics", 0x74a1, 90402, "mi300x"),
            ("", 0x74a1, 90402, "mi300x"),
            ("", 0x740f, 90010, "mi210"),
            ("", 0x1234, 90402, "gfx942"),
            ("", 0x1234, 90010, "gfx90a"),
            ("", 0x1234, 110_501, "gfx1151"),
        ] {
            assert_eq!(amd_type(name, device, gfx), kind, "{name} {device:#x}");
            assert_eq!(format!("{kind}:2").parse::<Gpus>().unwrap().kind.as_deref(), Some(kind), "a job can ask for {kind}");
        }
    }
}

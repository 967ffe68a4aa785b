//! Device files that a container needs to use GPUs.

use std::path::PathBuf;

/// Whose device files, and of which GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// By NVML's minor numbers, which need not equal the indices.
    Nvidia { minors: Vec<u32> },
    /// By DRM render minors, the first of which is 128.
    Amd { render_minors: Vec<u32> },
}

/// The files of these GPUs and those that all GPUs of the vendor share; none when there are no GPUs.
pub fn device_nodes(kind: &Nodes) -> Vec<PathBuf> {
    let (shared, own): (&[&str], Vec<String>) = match kind {
        Nodes::Nvidia { minors } => {
            (&["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"], minors.iter().map(|n| format!("/dev/nvidia{n}")).collect())
        }
        Nodes::Amd { render_minors } => (&["/dev/kfd"], render_minors.iter().map(|n| format!("/dev/dri/renderD{n}")).collect()),
    };
    if own.is_empty() {
        return Vec::new();
    }
    own.into_iter().map(PathBuf::from).chain(shared.iter().map(PathBuf::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(kind: Nodes) -> Vec<String> {
        device_nodes(&kind).iter().map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn gpus_come_with_what_their_vendor_shares() {
        assert_eq!(
            texts(Nodes::Nvidia { minors: vec![0, 3] }),
            ["/dev/nvidia0", "/dev/nvidia3", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"]
        );
        assert_eq!(texts(Nodes::Amd { render_minors: vec![129] }), ["/dev/dri/renderD129", "/dev/kfd"]);
    }

    #[test]
    fn without_gpus_nothing_is_shared() {
        assert_eq!(texts(Nodes::Nvidia { minors: vec![] }), Vec::<String>::new());
        assert_eq!(texts(Nodes::Amd { render_minors: vec![] }), Vec::<String>::new());
    }
}

//! A simulated `libnvidia-ml.so`, read through the unchanged `nvml-wrapper` as if it were NVIDIA's.
//!
//! What it answers comes from a JSON file ([`State`]): the one that the environment variable `BERTH_FAKE_NVML_STATE` names, or else
//! `<path of this library>.state`, or else nothing is read and there are eight idle H100s. The file is looked at on each call, so
//! writing it loses a GPU, raises an ECC count or sends an Xid while a worker runs:
//!
//! ```json
//! {"gpus": [{"name": "NVIDIA H200", "memory_bytes": 150754820096, "utilization_percent": 40, "lost": false, "numa": 0}],
//!  "events": [{"id": 1, "gpu": 0, "xid": 79}]}
//! ```
//!
//! A GPU with `"mig": [{"profile": "1g.10gb", "memory_bytes": 10468982784}]` is cut into these instances. Whatever a GPU does not say is an idle H100's. An event is delivered once to a process, when its id is above that of the last one
//! delivered; as with NVIDIA's library, what no event set waits for is missed. Write the file anew and rename it into place: one that
//! cannot be read leaves the last state standing, with a complaint on standard error.

mod calls;
mod events;
mod state;

pub use state::{Event, Gpu, Instance, State};

//! Berth's vocabulary, shared by every other crate: ids, resources, job specs, states, nodes, policy objects, verdicts,
//! the events that the engine eats and the protocol that workers speak. Types and pure functions only: no I/O, no clock.

pub mod amount;
pub mod array;
pub mod association;
pub mod component;
pub mod cores;
pub mod dependency;
pub mod environment;
pub mod event;
pub mod fault;
pub mod gres;
pub mod hostlist;
pub mod ids;
pub mod indices;
pub mod job;
pub mod layout;
pub mod license;
pub mod limit;
pub mod node;
pub mod policy;
pub mod preemption;
pub mod quota;
pub mod reservation;
pub mod resize;
pub mod resources;
pub mod script;
pub mod sluid;
pub mod state;
pub mod step;
pub mod tres;
pub mod validate;
pub mod verdict;
pub mod worker;

pub use amount::{Bytes, Seconds};
pub use fault::Fault;
pub use ids::{JobId, JobRef, JobSet, Name, NodeName, StepId};
pub use indices::Indices;
pub use sluid::RunId;

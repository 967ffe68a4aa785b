//! Jobs: submission, reading, and what users ask of them. What the scheduler does to jobs is in [`crate::plan`]; how an attempt
//! ends is in [`crate::settle`].

pub mod array;
pub mod control;
pub mod read;
mod rehearse;
pub mod submit;

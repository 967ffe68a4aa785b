//! Jobs: submission, reading, and what users ask of them. What the scheduler does to jobs is in [`crate::plan`]; how an attempt
//! ends is in [`crate::settle`].

pub(crate) mod accrual;
pub mod array;
pub mod change;
pub mod control;
pub mod priorities;
pub(crate) mod quota;
pub mod read;
mod rehearse;
mod resize;
pub mod submit;

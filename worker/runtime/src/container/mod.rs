//! Steps in OCI containers. A step's tasks on a node share one container, so that they share memory and see the same devices.
//!
//! [`images`] pulls and unpacks layers with the logins of [`auth`], [`unpack`] makes them overlay layers, [`bundle`] writes the OCI configuration with the profile
//! of `seccomp`, [`oci`] is the driver, [`steps`] what it has in common with the driver [`crate::engine`], [`shim`] looks after the running
//! container, and [`init`] is its process 1.

#[cfg(feature = "drivers")]
pub mod auth;
#[cfg(feature = "drivers")]
pub mod bundle;
#[cfg(feature = "drivers")]
pub mod images;
pub mod init;
#[cfg(feature = "drivers")]
pub mod oci;
#[cfg(feature = "drivers")]
mod seccomp;
pub mod shim;
#[cfg(feature = "drivers")]
pub mod steps;
#[cfg(feature = "drivers")]
mod unpack;

/// Folder of a step that makes it a container's.
pub const BUNDLE: &str = "bundle";
/// Folder of a step that its container sees, for `spec.json` and `result.json`.
pub const IO: &str = "io";
/// Where the container sees it.
pub const IO_INSIDE: &str = "/run/berth/step";
/// Where the container finds its process 1.
pub const INIT_INSIDE: &str = "/run/berth/init";

//! The Docker Engine API as it is spoken to: connection, versions, pulls, and whose fault an error is.

use std::path::Path;
use std::time::Duration;

use bollard::Docker;
use bollard::auth::DockerCredentials;
use bollard::errors::Error;
use bollard::models::SystemInfoCgroupDriverEnum;
use bollard::query_parameters::{CreateImageOptionsBuilder, RemoveContainerOptionsBuilder};
use futures::StreamExt;

use crate::container::auth::{Login, Logins};
use crate::container::images::ImageConfig;
use crate::tasks::fault;
use crate::{LaunchCause, LaunchError};

/// Seconds for an answer. Pulls answer piece by piece and may take longer.
const TIMEOUT_SECONDS: u64 = 120;

pub fn connect(socket: &Path) -> Result<Docker, LaunchError> {
    let version = &bollard::ClientVersion { major_version: 1, minor_version: 41 };
    Docker::connect_with_unix(&socket.to_string_lossy(), TIMEOUT_SECONDS, version).map_err(node_error)
}

/// What matters of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// `Podman Engine 4.3.1`, for people.
    pub name: String,
    /// A container can be given a group of ours as its parent.
    pub takes_cgroup_parent: bool,
    /// It knows devices by their CDI names. Older podmans take the request and start the container without the device.
    pub does_cdi: bool,
}

pub async fn about(docker: &Docker) -> Result<About, LaunchError> {
    let version = docker.version().await.map_err(node_error)?;
    let info = docker.info().await.map_err(node_error)?;
    let components = version.components.unwrap_or_default();
    let podman = components.iter().find(|c| c.name == "Podman Engine");
    let name = match podman {
        Some(podman) => format!("{} {}", podman.name, podman.version),
        None => format!("Docker {}", version.version.unwrap_or_default()),
    };
    let does_cdi = match podman {
        Some(podman) => numbers(&podman.version) >= (5, 4),
        None => info.cdi_spec_dirs.is_some_and(|dirs| !dirs.is_empty()),
    };
    Ok(About { name, takes_cgroup_parent: info.cgroup_driver == Some(SystemInfoCgroupDriverEnum::CGROUPFS), does_cdi })
}

fn numbers(version: &str) -> (u32, u32) {
    let mut parts = version.split(['.', '-']).map_while(|p| p.parse().ok());
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// Sees to it that the engine has the image. Gives the name by which it has it, and what the image says of how it is to be run.
pub async fn image(docker: &Docker, name: &str, logins: &Logins) -> Result<(String, ImageConfig), LaunchError> {
    let unavailable = |detail: String| fault(LaunchCause::ImageUnavailable, detail);
    if name.starts_with("oci:") {
        return Err(unavailable(format!("{name}: an engine takes images from its own store and from registries, not from layouts")));
    }
    let reference: oci_client::Reference =
        name.parse().map_err(|e| unavailable(format!("{name} is not an image reference: {e}; for example registry.example/torch:2.9")))?;
    let whole = reference.whole();
    let inspected = match docker.inspect_image(&whole).await {
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => {
            pull(docker, &whole, logins.of(reference.registry())?).await?;
            docker.inspect_image(&whole).await
        }
        other => other,
    };
    let config = inspected.map_err(node_error)?.config.unwrap_or_default();
    Ok((whole, ImageConfig { env: config.env.unwrap_or_default(), working_dir: config.working_dir.unwrap_or_default() }))
}

async fn pull(docker: &Docker, name: &str, login: Option<Login>) -> Result<(), LaunchError> {
    let credentials = login.map(|login| match login {
        Login::Password { user, password } => {
            DockerCredentials { username: Some(user), password: Some(password), ..DockerCredentials::default() }
        }
        Login::Token(token) => DockerCredentials { identitytoken: Some(token), ..DockerCredentials::default() },
    });
    let options = CreateImageOptionsBuilder::new().from_image(name).build();
    let mut progress = std::pin::pin!(docker.create_image(Some(options), None, credentials));
    while let Some(step) = progress.next().await {
        step.map_err(|e| pull_error(name, &e))?;
    }
    Ok(())
}

/// An image that is not there is the job's fault, a registry that is away is nobody's. Engines tell them apart in words alone.
fn pull_error(name: &str, error: &Error) -> LaunchError {
    let said = text(error);
    let lower = said.to_lowercase();
    let job_fault =
        ["manifest unknown", "name unknown", "not found", "denied", "unauthorized", "authentication required", "invalid reference"];
    let cause = match error {
        _ if job_fault.iter().any(|w| lower.contains(w)) => LaunchCause::ImageUnavailable,
        Error::DockerResponseServerError { .. } | Error::DockerStreamError { .. } => LaunchCause::RegistryError,
        _ => LaunchCause::NodeError,
    };
    fault(cause, format!("{name}: {said}"))
}

/// Tries of a removal. An engine that is just clearing up after the container's end refuses.
const REMOVALS: u32 = 10;

/// Removes a container with its anonymous volumes, running or not; one that is not there is none too many.
pub async fn remove(docker: &Docker, name: &str) -> Result<(), LaunchError> {
    let mut tries = 0;
    loop {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        tries += 1;
        match docker.remove_container(name, Some(options)).await {
            Err(Error::DockerResponseServerError { status_code: 404, .. }) | Ok(()) => return Ok(()),
            Err(Error::DockerResponseServerError { .. }) if tries < REMOVALS => tokio::time::sleep(Duration::from_millis(200)).await,
            Err(error) => return Err(node_error(error)),
        }
    }
}

/// A container that the engine would not make or start.
pub fn creation_error(error: Error) -> LaunchError {
    let said = text(&error);
    let lower = said.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|w| lower.contains(w));
    let cause = match () {
        () if has(&["no such image", "image not known"]) => LaunchCause::ImageUnavailable,
        () if has(&["device driver", "cdi", "gathering device information", "unresolvable"]) => LaunchCause::DeviceError,
        () if has(&["mount"]) && has(&["no such file", "does not exist", "not a directory"]) => LaunchCause::BadSpec,
        () => LaunchCause::NodeError,
    };
    fault(cause, format!("the container cannot be created: {said}"))
}

pub fn node_error(error: Error) -> LaunchError {
    fault(LaunchCause::NodeError, format!("the engine: {}", text(&error)))
}

/// What the engine said, without the client's words around it.
fn text(error: &Error) -> String {
    match error {
        Error::DockerResponseServerError { message, .. } => message.trim().to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_image_is_the_jobs_fault_and_a_registry_that_is_away_is_not() {
        let said = |message: &str| Error::DockerResponseServerError { status_code: 500, message: message.to_owned() };
        let cause = |message: &str| pull_error("r/x:1", &said(message)).cause;
        assert_eq!(cause("reading manifest 2 in r/x: manifest unknown"), LaunchCause::ImageUnavailable);
        assert_eq!(cause("pull access denied for x"), LaunchCause::ImageUnavailable);
        assert_eq!(cause("dial tcp 127.0.0.1:1: connect: connection refused"), LaunchCause::RegistryError);
        let device = creation_error(said("error gathering device information while adding custom device \"/dev/x\": no such file"));
        assert_eq!(device.cause, LaunchCause::DeviceError);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(numbers("4.3.1") < (5, 4) && numbers("5.10.0-dev") >= (5, 4) && numbers("?") == (0, 0));
    }
}

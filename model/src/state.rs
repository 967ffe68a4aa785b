//! States of jobs, attempts, steps and nodes. The identifiers are stable; [`JobState::slurm_code`] gives Slurm's short form.

use serde::{Deserialize, Serialize};

macro_rules! text_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:tt),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
        impl std::str::FromStr for $name {
            type Err = crate::Fault;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok($name::$variant),)+
                    _ => Err(crate::Fault::new("invalid_value", "", format!("\"{text}\" is not one of the allowed values"),
                        format!("use one of: {}", [$($text),+].join(", ")))),
                }
            }
        }
    };
}
pub(crate) use text_enum;

text_enum! {
    /// State of a job or of one attempt. The first five are live, the others are ends.
    JobState {
        Pending = "pending",
        /// Nodes are chosen and prepare.
        Allocated = "allocated",
        Running = "running",
        Suspended = "suspended",
        /// The job's own work is over; nodes clean up.
        Completing = "completing",
        Completed = "completed",
        Failed = "failed",
        Cancelled = "cancelled",
        Timeout = "timeout",
        OutOfMemory = "out_of_memory",
        NodeFail = "node_fail",
        Preempted = "preempted",
        Deadline = "deadline",
        LaunchFailed = "launch_failed",
        BootFail = "boot_fail",
    }
}

impl JobState {
    pub fn is_end(self) -> bool {
        !matches!(self, JobState::Pending | JobState::Allocated | JobState::Running | JobState::Suspended | JobState::Completing)
    }

    /// Holds nodes.
    pub fn is_active(self) -> bool {
        matches!(self, JobState::Allocated | JobState::Running | JobState::Suspended | JobState::Completing)
    }

    /// Slurm's two-letter code, for tables and Slurm-shaped output.
    pub fn slurm_code(self) -> &'static str {
        match self {
            JobState::Pending => "PD",
            JobState::Allocated => "CF",
            JobState::Running => "R",
            JobState::Suspended => "S",
            JobState::Completing => "CG",
            JobState::Completed => "CD",
            JobState::Failed => "F",
            JobState::Cancelled => "CA",
            JobState::Timeout => "TO",
            JobState::OutOfMemory => "OOM",
            JobState::NodeFail => "NF",
            JobState::Preempted => "PR",
            JobState::Deadline => "DL",
            JobState::LaunchFailed => "BF",
            JobState::BootFail => "BF",
        }
    }
}

text_enum! {
    /// Who holds a pending job.
    Hold {
        User = "user",
        Admin = "admin",
    }
}

text_enum! {
    /// Base state of a node. Allocated and mixed are derived from what runs there.
    NodeState {
        Unknown = "unknown",
        Idle = "idle",
        Allocated = "allocated",
        Mixed = "mixed",
        Down = "down",
        Future = "future",
    }
}

text_enum! {
    /// Flags on top of a node's base state.
    NodeFlag {
        Drain = "drain",
        Fail = "fail",
        Maintenance = "maintenance",
        Reserved = "reserved",
        Planned = "planned",
        Completing = "completing",
        PoweringUp = "powering_up",
        PoweringDown = "powering_down",
        PoweredDown = "powered_down",
        /// Asked to be powered down once it is idle.
        PowerDown = "power_down",
        /// Asked to be powered up, whether a job needs it or not.
        PowerUp = "power_up",
        /// To be rebooted once it is idle.
        Reboot = "reboot",
        RebootIssued = "reboot_issued",
        NotResponding = "not_responding",
    }
}

text_enum! {
    /// State of a partition, as Slurm's: `down` queues but starts nothing, `drain` refuses new jobs but starts queued ones.
    PartitionState {
        Up = "up",
        Down = "down",
        Drain = "drain",
        Inactive = "inactive",
    }
}

text_enum! {
    /// What a token may do.
    Role {
        PlatformAdmin = "platform_admin",
        TenantAdmin = "tenant_admin",
        AccountManager = "account_manager",
        User = "user",
        Viewer = "viewer",
        Worker = "worker",
        Job = "job",
    }
}

text_enum! {
    /// Which of a task's two outputs; or the input that was passed on to a whole step, kept under task 0.
    LogStream {
        Stdout = "stdout",
        Stderr = "stderr",
        Stdin = "stdin",
    }
}

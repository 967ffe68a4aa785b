//! The `sim` driver: nothing runs. A step lasts `BERTH_SIM_SECONDS` (0 if absent) and ends with `BERTH_SIM_EXIT` (0 if absent). For
//! tests of the control plane with many nodes.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::{FoundStep, LaunchCause, LaunchError, LaunchSpec, Runtime, StepExit, StepKey, StepPhase, TaskExit, Usage};

struct Step {
    spec: LaunchSpec,
    ends_at: Option<Instant>,
    /// Time left to it while it is suspended.
    left: watch::Sender<Option<Duration>>,
    /// The signal that ended it early.
    killed: watch::Sender<Option<i32>>,
}

/// The driver; its steps live in memory and end with it.
#[derive(Default)]
pub struct Sim {
    steps: Mutex<BTreeMap<StepKey, Step>>,
}

impl Sim {
    fn with<T>(&self, key: &StepKey, act: impl FnOnce(&mut Step) -> T) -> Result<T, LaunchError> {
        let mut steps = self.steps.lock().expect("no panic while the lock is held");
        steps
            .get_mut(key)
            .map(act)
            .ok_or_else(|| LaunchError { cause: LaunchCause::NodeError, detail: "the step is not prepared".to_owned() })
    }
}

fn number(spec: &LaunchSpec, name: &str) -> Option<f64> {
    spec.env.get(name).and_then(|v| v.parse().ok())
}

#[async_trait]
impl Runtime for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    async fn prepare(&self, spec: &LaunchSpec) -> Result<(), LaunchError> {
        let mut steps = self.steps.lock().expect("no panic while the lock is held");
        steps.entry(spec.key.clone()).or_insert_with(|| Step {
            spec: spec.clone(),
            ends_at: None,
            left: watch::Sender::new(None),
            killed: watch::Sender::new(None),
        });
        Ok(())
    }

    async fn start(&self, key: &StepKey) -> Result<(), LaunchError> {
        self.with(key, |step| {
            let seconds = number(&step.spec, "BERTH_SIM_SECONDS").unwrap_or(0.0).clamp(0.0, 1e9);
            step.ends_at.get_or_insert(Instant::now() + Duration::from_secs_f64(seconds));
        })
    }

    async fn signal(&self, key: &StepKey, signal: i32, _all: bool) -> Result<(), LaunchError> {
        self.with(key, |step| {
            if matches!(signal, libc::SIGTERM | libc::SIGINT | libc::SIGKILL) {
                step.killed.send_replace(Some(signal));
            }
        })
    }

    async fn suspend(&self, key: &StepKey, is_suspended: bool) -> Result<(), LaunchError> {
        self.with(key, |step| {
            let left = *step.left.borrow();
            match (left, step.ends_at) {
                (None, Some(at)) if is_suspended => _ = step.left.send_replace(Some(at.saturating_duration_since(Instant::now()))),
                (Some(left), Some(_)) if !is_suspended => {
                    step.ends_at = Some(Instant::now() + left);
                    step.left.send_replace(None);
                }
                _ => {}
            }
        })
    }

    async fn bind(&self, _key: &StepKey, _cores: &[u32]) -> Result<(), LaunchError> {
        Ok(())
    }

    async fn kill(&self, key: &StepKey) -> Result<(), LaunchError> {
        self.signal(key, libc::SIGKILL, true).await
    }

    async fn wait(&self, key: &StepKey) -> Result<StepExit, LaunchError> {
        let (spec, mut left, mut killed) = self.with(key, |s| (s.spec.clone(), s.left.subscribe(), s.killed.subscribe()))?;
        let signal = loop {
            let ends_at = self.with(key, |s| s.ends_at)?;
            let ends_at =
                ends_at.ok_or_else(|| LaunchError { cause: LaunchCause::NodeError, detail: "the step did not start".to_owned() })?;
            let is_suspended = left.borrow_and_update().is_some();
            tokio::select! {
                () = tokio::time::sleep_until(ends_at), if !is_suspended => break None,
                // Suspended or resumed: the end is another.
                changed = left.changed() => if changed.is_err() { break None },
                signal = killed.wait_for(Option::is_some) => break signal.ok().and_then(|s| *s),
            }
        };
        let code = signal.is_none().then(|| number(&spec, "BERTH_SIM_EXIT").unwrap_or(0.0) as i32);
        let tasks = spec.tasks.iter().map(|t| TaskExit { rank: t.rank, code, signal }).collect();
        Ok(StepExit { tasks, oom_killed: false, usage: Usage::default(), elapsed_ms: 0, failure: None })
    }

    async fn usage(&self, _key: &StepKey) -> Result<Usage, LaunchError> {
        Ok(Usage::default())
    }

    async fn delete(&self, key: &StepKey) -> Result<(), LaunchError> {
        self.steps.lock().expect("no panic while the lock is held").remove(key);
        Ok(())
    }

    async fn list(&self) -> Result<Vec<FoundStep>, LaunchError> {
        let steps = self.steps.lock().expect("no panic while the lock is held");
        Ok(steps
            .iter()
            .map(|(key, s)| FoundStep {
                key: key.clone(),
                phase: if s.ends_at.is_some() { StepPhase::Running } else { StepPhase::Created },
            })
            .collect())
    }
}

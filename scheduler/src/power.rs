//! Power saving: idle nodes are powered down and, when jobs are placed on them or operators ask, up again. Reboots.
//!
//! The engine takes a node that is powered down for one that can be used, after all that are up. Its job is then allocated and
//! waits until the node has registered. What is known of each node is in the database; the programs and the webhook that press the
//! buttons are told again by a new leader, so they must bear that.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use berth_engine::Membership;
use berth_model::policy::{Partition, Policy, PowerPolicy};
use berth_model::state::NodeFlag;
use berth_model::{NodeName, hostlist};
use berth_store::lease::Epoch;
use berth_store::power::PowerNode;
use berth_store::{Db, StoreError};
use serde_json::{Value, json};

/// Who presses the buttons. Each is told of all nodes of a moment at once.
#[derive(Clone, Debug, Default)]
pub struct PowerHooks {
    /// Called with a host list; `SLURM_RESUME_FILE` names a JSON file that says which job needs which nodes.
    pub resume_program: Option<PathBuf>,
    /// Called with a host list.
    pub suspend_program: Option<PathBuf>,
    /// Called with a host list of nodes that did not come up in time.
    pub resume_fail_program: Option<PathBuf>,
    /// Gets each of these as a POST: `{"action": "resume", "nodes": […], "hostlist": "n[1-2]", "jobs": […]}`.
    pub webhook: Option<String>,
}

/// What a leader keeps in mind.
pub struct Power {
    hooks: PowerHooks,
    /// Since when a node has been seen idle in this term.
    idle: BTreeMap<String, Instant>,
    is_told_again: bool,
}

/// What happened to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Suspend,
    Resume,
    ResumeFailed,
}

impl Power {
    pub fn new(hooks: PowerHooks) -> Power {
        Power { hooks, idle: BTreeMap::new(), is_told_again: false }
    }

    /// Does what is due. Called each second.
    pub async fn keep(&mut self, db: &Db, epoch: Epoch, policy: &Policy) -> Result<(), StoreError> {
        let nodes = db.power_nodes(policy.power.is_none()).await?;
        if !self.is_told_again {
            self.is_told_again = true;
            self.tell(Action::Suspend, nodes.iter().filter(|node| node.has(NodeFlag::PoweringDown)));
            self.tell(Action::Resume, nodes.iter().filter(|node| node.has(NodeFlag::PoweringUp)));
        }
        for (flag, seconds, reason) in [
            (NodeFlag::PoweringUp, policy.resume_timeout_seconds, "did not come up in time"),
            (NodeFlag::RebootIssued, policy.reboot_timeout_seconds, "did not come back from its reboot in time"),
        ] {
            if nodes.iter().any(|node| node.has(flag)) {
                let lost = db.lose_late_nodes(epoch, flag.as_str(), millis(seconds), reason).await?;
                if flag == NodeFlag::PoweringUp {
                    self.tell(Action::ResumeFailed, nodes.iter().filter(|node| lost.contains(&node.name)));
                }
            }
        }
        if nodes.iter().any(|node| node.has(NodeFlag::PoweringDown)) {
            db.end_power_down(epoch, millis(policy.suspend_timeout_seconds)).await?;
        }
        let rates = policy.power.clone().unwrap_or_default();
        let wanted = nodes
            .iter()
            .filter(|node| node.has(NodeFlag::PoweredDown) && !node.is_down && (node.has(NodeFlag::PowerUp) || !node.jobs.is_empty()));
        let wanted: Vec<String> = wanted.take(a_second(rates.resume_per_minute)).map(|node| node.name.clone()).collect();
        let begun = db.begin_power_up(epoch, &wanted).await?;
        self.tell(Action::Resume, nodes.iter().filter(|node| begun.contains(&node.name)));

        let mut down: Vec<String> = nodes.iter().filter(|node| node.has(NodeFlag::PowerDown)).map(|node| node.name.clone()).collect();
        match &policy.power {
            Some(power) => {
                let mut partitions = Vec::new();
                for name in &power.exclude_partitions {
                    partitions.extend(db.partition(name.as_str()).await.ok().map(|found| found.value));
                }
                down.extend(self.idle(&nodes, power, &partitions));
            }
            None => self.idle.clear(),
        }
        let begun = db.begin_power_down(epoch, &down).await?;
        self.tell(Action::Suspend, nodes.iter().filter(|node| begun.contains(&node.name)));

        let reboots: Vec<String> = nodes.iter().filter(|node| node.has(NodeFlag::Reboot)).map(|node| node.name.clone()).collect();
        db.issue_reboots(epoch, &reboots).await?;
        Ok(())
    }

    /// Nodes that have been idle for long enough.
    fn idle(&mut self, nodes: &[PowerNode], power: &PowerPolicy, excluded: &[Partition]) -> Vec<String> {
        let now = Instant::now();
        let is_idle = |node: &PowerNode| node.jobs.is_empty() && node.flags.is_empty() && !node.is_down;
        self.idle.retain(|name, _| nodes.iter().any(|node| node.name == *name && is_idle(node)));
        for node in nodes.iter().filter(|node| is_idle(node)) {
            self.idle.entry(node.name.clone()).or_insert(now);
        }
        let named: BTreeSet<NodeName> =
            power.exclude_nodes.as_deref().and_then(|list| hostlist::expand(list).ok()).into_iter().flatten().collect();
        let excluded: Vec<Membership> = excluded.iter().map(Membership::of).collect();
        let is_excluded = |name: &NodeName, node: &PowerNode| {
            let features = node.features.iter().cloned().collect();
            named.contains(name) || excluded.iter().any(|partition| partition.includes(name, &features))
        };
        let stays: BTreeSet<&str> = nodes
            .iter()
            .filter(|node| node.name.parse().is_ok_and(|name| is_excluded(&name, node)))
            .map(|node| node.name.as_str())
            .collect();
        // Those that stay up are the ones that have been idle for the shortest time.
        let mut idle: Vec<(&String, &Instant)> = self.idle.iter().collect();
        idle.sort_by_key(|(name, since)| (**since, *name));
        let most = idle.len().saturating_sub(power.keep_idle as usize).min(a_second(power.suspend_per_minute));
        let is_long = |since: &Instant| now.duration_since(*since) >= Duration::from_secs(power.idle_seconds);
        idle.into_iter()
            .filter(|(name, since)| is_long(since) && !stays.contains(name.as_str()))
            .take(most)
            .map(|(name, _)| name.clone())
            .collect()
    }

    fn tell<'a>(&self, action: Action, nodes: impl Iterator<Item = &'a PowerNode>) {
        let nodes: Vec<&PowerNode> = nodes.collect();
        if nodes.is_empty() {
            return;
        }
        let names: Vec<NodeName> = nodes.iter().filter_map(|node| NodeName::new(node.name.clone()).ok()).collect();
        let list = hostlist::fold(&names);
        tracing::info!(?action, nodes = list, "power");
        let mut jobs: BTreeMap<i64, Vec<NodeName>> = BTreeMap::new();
        for (node, name) in nodes.iter().zip(&names) {
            node.jobs.iter().for_each(|job| jobs.entry(*job).or_default().push(name.clone()));
        }
        let jobs: Vec<Value> = jobs.iter().map(|(job, nodes)| json!({ "job_id": job, "nodes_resume": hostlist::fold(nodes) })).collect();
        let program = match action {
            Action::Suspend => &self.hooks.suspend_program,
            Action::Resume => &self.hooks.resume_program,
            Action::ResumeFailed => &self.hooks.resume_fail_program,
        };
        if let Some(program) = program.clone() {
            let file = json!({ "all_nodes_resume": list, "jobs": jobs });
            let list = list.clone();
            tokio::spawn(async move { run(program, list, (action == Action::Resume).then_some(file)).await });
        }
        if let Some(url) = self.hooks.webhook.clone() {
            let action = match action {
                Action::Suspend => "suspend",
                Action::Resume => "resume",
                Action::ResumeFailed => "resume_failed",
            };
            let body = json!({ "action": action, "nodes": names, "hostlist": list, "jobs": jobs });
            tokio::spawn(async move { post(url, body).await });
        }
    }
}

async fn run(program: PathBuf, list: String, file: Option<Value>) {
    let mut command = tokio::process::Command::new(&program);
    command.arg(&list).stdin(std::process::Stdio::null());
    // Kept until the program has ended.
    let written = file.and_then(|file| {
        let mut written = tempfile::NamedTempFile::new().ok()?;
        std::io::Write::write_all(&mut written, file.to_string().as_bytes()).ok()?;
        command.env("SLURM_RESUME_FILE", written.path());
        Some(written)
    });
    match command.status().await {
        Ok(status) if status.success() => {}
        Ok(status) => tracing::error!(program = %program.display(), nodes = list, %status, "the power program failed"),
        Err(error) => tracing::error!(program = %program.display(), nodes = list, %error, "the power program did not run"),
    }
    drop(written);
}

/// Tries for as long as a node that was told nothing would be waited for at the least.
async fn post(url: String, body: Value) {
    let client = reqwest::Client::new();
    for pause in [1, 2, 4, 8, 0] {
        let answer = client.post(&url).timeout(Duration::from_secs(10)).json(&body).send().await;
        match answer.and_then(reqwest::Response::error_for_status) {
            Ok(_) => return,
            Err(error) => tracing::warn!(%error, "the power webhook did not take it"),
        }
        tokio::time::sleep(Duration::from_secs(pause)).await;
    }
}

/// Nodes in a call, at the most, so that there are no more than so many in a minute.
fn a_second(per_minute: u32) -> usize {
    per_minute.div_ceil(60) as usize
}

fn millis(seconds: u64) -> i64 {
    i64::try_from(seconds.saturating_mul(1000)).unwrap_or(i64::MAX)
}

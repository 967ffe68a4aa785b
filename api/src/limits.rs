//! Limits at submission: what binds the job, whether it can ever be met, and the time limit of a job that names none.

use berth_model::association::{AssociationKey, Terms};
use berth_model::limit::{Bound, Measure, Request, bounds};
use berth_model::policy::{ImpossibleLimit, Partition, Policy, Qos};
use berth_model::resources::Shape;
use berth_model::tres::{Tres, bill};
use berth_model::{Fault, Seconds};

/// All limits that bind one submission, in the order in which they are checked.
pub struct Limits {
    bounds: Vec<Bound>,
    is_safe: bool,
    is_strict: bool,
}

impl Limits {
    pub fn of(policy: &Policy, partition_qos: Option<&Qos>, qos: &Qos, chain: &[(AssociationKey, Terms)]) -> Limits {
        let partition_qos = partition_qos.filter(|q| q.name != qos.name);
        let chain: Vec<(&AssociationKey, &Terms)> = chain.iter().map(|(key, terms)| (key, terms)).collect();
        let denies = |qos: &Qos| qos.deny_on_limit;
        Limits {
            bounds: bounds(partition_qos, Some(qos), &chain),
            is_safe: policy.safe_limits,
            is_strict: policy.impossible_limit == ImpossibleLimit::Refuse || denies(qos) || partition_qos.is_some_and(denies),
        }
    }

    /// The longest time limit that a job which takes `shape` may have.
    pub fn most_time(&self, shape: &Shape) -> Option<Seconds> {
        let counts = shape.least_counts();
        let most = self.bounds.iter().filter_map(|bound| match &bound.measure {
            Measure::JobSeconds => Some(bound.limit),
            // So many whole minutes as the resources allow.
            Measure::JobTresMinutes(tres) => Some(60 * bound.limit.checked_div(*counts.get(tres)?)?),
            _ => None,
        });
        most.min()
    }

    /// `Err` for a job that a limit holds for ever, unless it may wait for the limit to be raised.
    pub fn check(&self, policy: &Policy, partition: &Partition, shape: &Shape, time_limit: Seconds) -> Result<(), Fault> {
        if !self.is_strict {
            return Ok(());
        }
        let mut tres = shape.least_counts();
        let billing = bill(&partition.billing_weights, policy.billing, &tres);
        tres.insert(Tres::Billing, billing as u64);
        let request = Request { tres, on_node: shape.least_on_node(), time_limit };
        for bound in self.bounds.iter().filter(|bound| bound.measure != Measure::SubmitJobs) {
            if let Some(asked) = bound.forbids(&request, self.is_safe) {
                let detail = format!("the limit {} of {} can never be met: the job asks for {asked}", bound.words(), bound.scope);
                let side = if matches!(bound.measure, Measure::LeastJobTres(_)) { "at least" } else { "at most" };
                let help = format!("keep to {side} {}, or use another QOS or account", bound.limit);
                return Err(Fault::new(bound.code, field(&bound.measure), detail, help));
            }
        }
        Ok(())
    }

    /// Limits on submitted jobs, which the store counts as it inserts.
    pub fn into_submit(self) -> Vec<Bound> {
        self.bounds.into_iter().filter(|bound| bound.measure == Measure::SubmitJobs).collect()
    }
}

/// The field of the job that a limit is about.
fn field(measure: &Measure) -> &'static str {
    match measure {
        Measure::Tres(tres) | Measure::JobTres(tres) | Measure::NodeTres(tres) | Measure::LeastJobTres(tres) => match tres {
            Tres::Node => "resources.nodes",
            Tres::Cpu => "resources.cpus_per_task",
            Tres::Gpu | Tres::GpuType(_) => "resources.gpus",
            Tres::Shard | Tres::Mps => "resources.gpu_share",
            _ => "resources",
        },
        Measure::Jobs | Measure::SubmitJobs => "account",
        _ => "time_limit_seconds",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Name;
    use berth_model::resources::ResourceRequest;
    use berth_model::resources::{Gpus, MemoryDemand};

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn gpus(count: u32) -> Shape {
        let gpus = Some(Gpus { kind: None, count });
        ResourceRequest { gpus, ..ResourceRequest::default() }.shape(MemoryDemand::PerCpu(berth_model::Bytes(1 << 20)))
    }

    fn limits(policy: &Policy, qos: &Qos) -> Limits {
        let user = AssociationKey::user(name("acme"), name("ml"), name("ann"));
        Limits::of(policy, None, qos, &[(user, Terms::default())])
    }

    #[test]
    fn what_can_never_be_met_is_refused_or_waits_as_policy_and_qos_say() {
        let refuse = Policy::default();
        let wait = Policy { impossible_limit: ImpossibleLimit::Wait, ..Policy::default() };
        let mut qos = Qos::named(name("normal"));
        qos.limits.grp_tres.insert(Tres::Gpu, 8);
        let partition = Partition::of_all_nodes(name("main"));
        let check = |policy: &Policy, qos: &Qos, count| limits(policy, qos).check(policy, &partition, &gpus(count), 60);
        assert!(check(&refuse, &qos, 8).is_ok());
        let fault = check(&refuse, &qos, 9).unwrap_err();
        assert_eq!((fault.code.as_str(), fault.field.as_str()), ("qos_group_tres", "resources.gpus"));
        assert_eq!(fault.detail, "the limit grp_tres gres/gpu=8 of qos/normal can never be met: the job asks for 9 gres/gpu");
        assert!(check(&wait, &qos, 9).is_ok());
        qos.deny_on_limit = true;
        assert!(check(&wait, &qos, 9).is_err());
    }

    #[test]
    fn a_job_without_a_time_limit_gets_what_its_resources_allow() {
        let mut qos = Qos::named(name("normal"));
        qos.limits.max_tres_minutes_per_job.insert(Tres::Gpu, 100);
        assert_eq!(limits(&Policy::default(), &qos).most_time(&gpus(8)), Some(12 * 60), "100 / 8 is 12 whole minutes");
        qos.max_time_seconds = Some(600);
        assert_eq!(limits(&Policy::default(), &qos).most_time(&gpus(8)), Some(600));
    }
}

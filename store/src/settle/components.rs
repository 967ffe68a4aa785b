//! Components of a heterogeneous job end together, and as the leader's script says.

use berth_model::step::AttemptEnd;

use super::OpenAttempt;

/// Gives each component the leader's end, its right to run again, and what went wrong with any of them. All components of an attempt are
/// among `judged`, or none.
pub(super) fn share_ends(judged: &mut [(OpenAttempt, AttemptEnd)]) {
    let leaders: Vec<usize> = (0..judged.len()).filter(|i| judged[*i].0.het_job_id == Some(judged[*i].0.job_id)).collect();
    for leader in leaders {
        let key = (judged[leader].0.het_job_id, judged[leader].0.attempt);
        let members: Vec<usize> = (0..judged.len()).filter(|i| (judged[*i].0.het_job_id, judged[*i].0.attempt) == key).collect();
        let failure = judged[leader].0.failure.clone().or_else(|| members.iter().find_map(|i| judged[*i].0.failure.clone()));
        let mut failed_nodes: Vec<String> = members.iter().flat_map(|i| judged[*i].0.failed_nodes.clone()).collect();
        failed_nodes.sort_unstable();
        failed_nodes.dedup();
        let (first, end) = (&judged[leader].0, judged[leader].1);
        let (stop_reason, requeue, restarts) = (first.stop_reason.clone(), first.requeue.as_ref().map(|r| r.0), first.restarts);
        let reason = first.reason.clone();
        for i in members {
            let (attempt, own) = &mut judged[i];
            *own = end;
            attempt.failure.clone_from(&failure);
            attempt.failed_nodes.clone_from(&failed_nodes);
            attempt.stop_reason.clone_from(&stop_reason);
            attempt.requeue = requeue.map(sqlx::types::Json);
            attempt.restarts = restarts;
            attempt.reason.clone_from(&reason);
        }
    }
}

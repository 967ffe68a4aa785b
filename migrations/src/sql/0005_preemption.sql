-- Preemption: who had to stop for whom, what is not lost with it, and what is held for whom.

-- Preempted of berth-model.
alter table attempts add column preempted jsonb;
-- The last checkpoint that was reported.
alter table attempts add column checkpoint_at timestamptz;
create index attempts_preempted_for on attempts (((preempted->>'for_job')::bigint)) where preempted is not null;

-- Claim of berth-model: while the job is pending.
alter table jobs add column claim jsonb;

-- Fair share and limits: what associations are given, what was used, since when jobs age.

-- Terms of berth-model: shares, priority, limits.
alter table tenants add column terms jsonb not null default '{}';
alter table accounts add column terms jsonb not null default '{}';
alter table associations add column terms jsonb not null default '{}';

-- Since when the job's age counts: since it was eligible. Null while it is held or depends on others.
alter table jobs add column accrues_since timestamptz;
alter table jobs add column site_factor integer not null default 0;
update jobs set accrues_since = greatest(submit_time, not_before) where hold is null
    and state in ('pending', 'allocated', 'running', 'suspended', 'completing');
-- For limits on submitted jobs.
create index jobs_live_by_user on jobs (tenant, account, user_name) where state in ('pending', 'allocated', 'running', 'suspended', 'completing');
create index jobs_live_by_qos on jobs (qos, tenant) where state in ('pending', 'allocated', 'running', 'suspended', 'completing');

-- What the attempt is charged for, fixed at its start; and whether its use is in usage_rows.
alter table attempts add column charge jsonb;
alter table attempts add column is_counted boolean not null default false;
update attempts set is_counted = true where ended_at is not null;
create index attempts_to_count on attempts (ended_at) where ended_at is not null and not is_counted;

-- Decayed use that has ended, as of an instant. The leader alone writes it.
create table usage_rows (
    tenant        text not null,
    account       text not null,
    user_name     text not null,
    qos           text not null,
    -- the partition's own QOS; empty: none
    partition_qos text not null default '',
    as_of         timestamptz not null,
    used          jsonb not null,
    primary key (tenant, account, user_name, qos, partition_qos)
);

-- Each tenant's part of the tree of shares as the leader last saw it: lines from the tenant down.
create table share_trees (
    tenant text primary key,
    lines  jsonb not null,
    as_of  timestamptz not null
);

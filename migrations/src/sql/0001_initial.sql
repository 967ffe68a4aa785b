-- The first schema. Names of states, phases and reasons are the identifiers of berth-model.

-- Who ---------------------------------------------------------------------------------------------------------------

create table tenants (
    name         text primary key,
    display_name text,
    is_suspended boolean not null default false,
    created_at   timestamptz not null default now(),
    version      bigint not null default 1
);

create table accounts (
    tenant      text not null references tenants on delete cascade,
    name        text not null,
    parent      text,
    description text,
    created_at  timestamptz not null default now(),
    version     bigint not null default 1,
    primary key (tenant, name),
    foreign key (tenant, parent) references accounts
);

create table users (
    tenant          text not null references tenants on delete cascade,
    name            text not null,
    default_account text,
    is_suspended    boolean not null default false,
    created_at      timestamptz not null default now(),
    version         bigint not null default 1,
    primary key (tenant, name),
    foreign key (tenant, default_account) references accounts
);

-- A user's right to charge an account; managers may also act on the jobs of the account.
create table associations (
    tenant     text not null,
    account    text not null,
    user_name  text not null,
    is_manager boolean not null default false,
    version    bigint not null default 1,
    primary key (tenant, account, user_name),
    foreign key (tenant, account) references accounts on delete cascade,
    foreign key (tenant, user_name) references users on delete cascade
);

create table idempotency_keys (
    tenant       text not null,
    subject      text not null,
    key          text not null,
    request_hash bytea not null,
    -- null while the first request is still running
    answer       json,
    created_at   timestamptz not null default now(),
    primary key (tenant, subject, key)
);

-- Policy ------------------------------------------------------------------------------------------------------------

create table partitions (
    name    text primary key,
    spec    jsonb not null,
    version bigint not null default 1
);

create table qos (
    name    text primary key,
    spec    jsonb not null,
    version bigint not null default 1
);

create table policy (
    only_row boolean primary key default true check (only_row),
    spec     jsonb not null,
    version  bigint not null default 1
);

-- Nodes -------------------------------------------------------------------------------------------------------------

create table nodes (
    name           text primary key,
    inventory      jsonb not null,
    features       text[] not null default '{}',
    weight         integer not null default 1,
    provider       text not null default 'worker',
    address        text not null default '',
    drivers        text[] not null default '{}',
    worker_version text not null default '',
    is_down        boolean not null default false,
    flags          text[] not null default '{}',
    reason         text,
    -- set when the node itself asked for its drain, so that it may take it back
    reason_is_health boolean not null default false,
    clock_skew_ms  bigint not null default 0,
    registered_at  timestamptz not null default now(),
    version        bigint not null default 1
);

-- The hot, narrow part: touched by every heartbeat.
create table node_contacts (
    node        text primary key references nodes on delete cascade,
    last_seen   timestamptz not null,
    boot_id     text not null,
    last_report bigint not null default 0
) with (fillfactor = 50);

-- Grows with every change of what a node should do; workers wait on it.
create table node_cursors (
    node   text primary key references nodes on delete cascade,
    cursor bigint not null default 1
) with (fillfactor = 50);

create table join_tokens (
    id           uuid primary key,
    token_hash   bytea not null unique,
    node_pattern text not null,
    uses_left    integer not null,
    expires_at   timestamptz not null,
    created_by   text not null,
    created_at   timestamptz not null default now()
);

-- Jobs --------------------------------------------------------------------------------------------------------------

create sequence job_ids as bigint cache 1;

create table jobs (
    job_id         bigint primary key,
    tenant         text not null,
    account        text not null,
    user_name      text not null,
    partition      text not null,
    qos            text not null,
    name           text not null,
    state          text not null default 'pending',
    hold           text,
    -- as submitted, defaults filled in; large, read only for one job at a time
    spec           json not null,
    -- what the engine needs of the spec, parsed once at submission
    planning       jsonb not null,
    labels         jsonb not null default '{}',
    time_limit     bigint not null,
    nice           integer not null default 0,
    submit_time    timestamptz not null default now(),
    not_before     timestamptz,
    deadline       timestamptz,
    start_time     timestamptz,
    end_time       timestamptz,
    exit_code      integer,
    exit_signal    integer,
    -- why it ended as it did, for people
    reason         text,
    attempt        integer not null default 0,
    restarts       integer not null default 0,
    is_expedited   boolean not null default false,
    failed_nodes   text[] not null default '{}',
    -- an array's own row: the indices not started yet, and how many its tasks are
    array_pending  int4multirange,
    array_total    integer,
    -- a task's row
    array_job_id   bigint,
    array_index    integer,
    version        bigint not null default 1
);
create index jobs_live on jobs (job_id) where state in ('pending', 'allocated', 'running', 'suspended', 'completing');
create index jobs_by_tenant on jobs (tenant, job_id);
create index jobs_by_array on jobs (array_job_id, array_index) where array_job_id is not null;

create table job_dependencies (
    job_id        bigint not null,
    on_job_id     bigint not null,
    kind          text not null,
    delay_minutes integer not null default 0,
    progress      text not null default 'waiting',
    primary key (job_id, on_job_id, kind)
);
create index job_dependencies_on on job_dependencies (on_job_id) where progress = 'waiting';

-- What the last plan said of a pending job.
create table job_verdicts (
    job_id        bigint primary key,
    verdict       jsonb not null,
    priority      bigint not null,
    planned_start timestamptz,
    as_of         timestamptz not null
);

create table attempts (
    job_id       bigint not null,
    attempt      integer not null,
    run_id       text not null unique,
    state        text not null default 'allocated',
    nodes        text[] not null,
    allocation   jsonb not null,
    allocated_at timestamptz not null default now(),
    started_at   timestamptz,
    ended_at     timestamptz,
    -- set when it is being stopped from outside
    stop_reason  text,
    exit_code    integer,
    exit_signal  integer,
    failure      text,
    primary key (job_id, attempt)
);

-- One row for each node that still has something of an attempt; deleted when the node has cleaned up or is known dead.
create table assignments (
    node          text not null,
    job_id        bigint not null,
    attempt       integer not null,
    node_index    integer not null,
    phase         text not null,
    is_prepared   boolean not null default false,
    stop_reason   text,
    grace_seconds bigint not null default 0,
    allocation    jsonb not null,
    primary key (node, job_id, attempt)
);
create index assignments_by_attempt on assignments (job_id, attempt);

create table steps (
    job_id      bigint not null,
    attempt     integer not null,
    step        integer not null,
    name        text not null,
    state       text not null default 'pending',
    spec        json,
    task_count  integer not null,
    master_port integer not null,
    created_at  timestamptz not null default now(),
    started_at  timestamptz,
    ended_at    timestamptz,
    exit_code   integer,
    exit_signal integer,
    cpu_usec    bigint not null default 0,
    memory_peak_bytes bigint not null default 0,
    primary key (job_id, attempt, step)
);

create table step_nodes (
    job_id   bigint not null,
    attempt  integer not null,
    step     integer not null,
    node     text not null,
    position integer not null,
    phase    text not null,
    here     jsonb not null,
    result   jsonb,
    primary key (job_id, attempt, step, node)
);

create table job_signals (
    id      bigserial primary key,
    job_id  bigint not null,
    attempt integer not null,
    signal  integer not null,
    step    integer,
    is_full boolean not null default false
);
create index job_signals_by_attempt on job_signals (job_id, attempt);

-- Events ------------------------------------------------------------------------------------------------------------

-- Every change of interest. Readers take only rows whose transaction is below the oldest running one, in (xid, seq) order: a
-- sequence alone would lose rows, since transactions commit out of order.
create table events (
    xid     xid8 not null default pg_current_xact_id(),
    seq     bigserial,
    at      timestamptz not null default now(),
    kind    text not null,
    tenant  text,
    job_id  bigint,
    attempt integer,
    node    text,
    detail  json
) partition by range (at);
create index events_in_order on events (xid, seq);
create index events_by_job on events (job_id, seq) where job_id is not null;
create table events_other partition of events default;

create table leases (
    name       text primary key,
    holder     text not null,
    epoch      bigint not null,
    expires_at timestamptz not null
);

-- Keys with which api replicas sign node and job tokens (Ed25519, PKCS#8). Shared by all replicas; never leaves the service.
create table signing_keys (
    kid        text primary key,
    pkcs8      bytea not null,
    created_at timestamptz not null default now()
);

-- What every cluster begins with.
insert into policy (spec) values ('{}');
insert into qos (name, spec) values ('normal', '{"name": "normal"}');
insert into partitions (name, spec) values ('main', '{"name": "main", "nodes": "ALL", "is_default": true}');

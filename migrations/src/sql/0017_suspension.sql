-- An attempt that stands still, or is about to: the present suspension, and for how long it stood still before.
alter table attempts add column suspension jsonb, add column suspended_ms bigint not null default 0;

-- What a node's part was told and what it has done: numbers of suspensions. Null: it is to run; it runs.
alter table assignments add column suspend integer, add column suspended integer;

-- All suspensions there were, half-open: [since, until). Never still: since is null. Still on: until is null.
create table suspensions (
    job_id   bigint not null,
    attempt  integer not null,
    number   integer not null,
    at       timestamptz not null default now(),
    since    timestamptz,
    until    timestamptz,
    for_job  bigint,
    by_user  text,
    primary key (job_id, attempt, number)
);
create index suspensions_for_job on suspensions (for_job) where for_job is not null;

-- For how many milliseconds an attempt has stood still up to now.
create function stood_still_ms(a attempts) returns bigint language sql stable
    return a.suspended_ms + greatest(0, extract(epoch from now() - (a.suspension->>'since')::timestamptz) * 1000)::bigint;

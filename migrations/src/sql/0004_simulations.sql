-- Replays of recorded history under changed policies.
create table simulations (
    simulation_id bigint generated always as identity primary key,
    requested_by  text not null,
    request       json not null,
    state         text not null default 'running',
    -- jobs replayed so far, under all policies together, of so many
    done          bigint not null default 0,
    total         bigint not null default 0,
    result        json,
    failure       text,
    created_at    timestamptz not null default now(),
    -- moved on while it runs: where it stands still, its replica is gone
    touched_at    timestamptz not null default now(),
    ended_at      timestamptz
);

-- What a replay of a period reads.
create index jobs_past on jobs (submit_time, job_id) where end_time is not null;

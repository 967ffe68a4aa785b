-- Reservations: nodes, or parts of nodes, that are kept for some people over a time.

create table reservations (
    name       text primary key,
    -- ReservationSpec of berth-model, as it was asked for.
    spec       jsonb not null,
    -- The present time, or the next one.
    start_time timestamptz not null,
    end_time   timestamptz not null,
    -- ReservedPart of berth-model: what was chosen.
    parts      jsonb not null,
    created_by text not null,
    created_at timestamptz not null default now(),
    -- Since when no job runs in it, for those that are removed when idle.
    idle_since timestamptz not null default now(),
    version    bigint not null default 1
);

-- In which an attempt started.
alter table attempts add column reservation text;
-- When that reservation ended while the attempt ran on.
alter table attempts add column reservation_over_at timestamptz;
create index attempts_in_reservation on attempts (reservation) where reservation is not null and ended_at is null;

-- The record of decisions: what the leader's engine was told and what it answered, in order. A chunk is a zstd frame of JSON lines;
-- the chunks of a term from one checkpoint on, one after the other, can be replayed.
create table decision_chunks (
    epoch         bigint not null,
    number        bigint not null,
    -- it begins with a checkpoint: the engine anew, told everything
    is_checkpoint boolean not null,
    first_at      timestamptz not null,
    last_at       timestamptz not null,
    body          bytea not null,
    primary key (epoch, number)
);
alter table decision_chunks alter column body set storage external;
create index decision_chunks_by_time on decision_chunks (last_at);
create index decision_checkpoints on decision_chunks (first_at) where is_checkpoint;

-- The plan that started the attempt: the leader's term, the plan's number in it, its clock.
alter table attempts add column decision jsonb;

-- Licences: what the whole cluster has a number of. What a job holds of them is among what its attempt is charged for.

create table licenses (
    name    text primary key,
    -- License of berth-model.
    spec    jsonb not null,
    version bigint not null default 1
);

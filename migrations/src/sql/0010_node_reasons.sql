-- A node's drain has its own reason, and who asked for it: a node that falls silent while it is drained is drained still when it is heard
-- again, for the reason it was, and its health check takes back only what it asked for itself. `reason_is_health` tells of being down.
alter table nodes
    add column drain_reason text,
    add column drained_by_health boolean not null default false;
update nodes set drain_reason = reason, drained_by_health = reason_is_health where flags @> array['drain'];

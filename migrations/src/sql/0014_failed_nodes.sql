-- Who avoids a node, found when it comes back.
create index jobs_failed_nodes on jobs using gin (failed_nodes) where failed_nodes <> '{}';

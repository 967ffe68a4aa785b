-- Components of heterogeneous jobs: which job is the first, the place behind it, and how many there are. Of the first itself too.
alter table jobs add column het_job_id bigint, add column het_offset int, add column het_size int;
create index jobs_components on jobs (het_job_id, het_offset) where het_job_id is not null;

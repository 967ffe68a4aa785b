-- The waiting tasks of an array as runs of indices (`0-12:4,20`): one with a step is as short as one without. How many they are stands
-- beside them. Waiting tasks that were cancelled together have no rows, only their indices here.
alter table jobs rename column array_pending to array_ranges;
alter table jobs add column array_pending text;
alter table jobs add column array_left integer;
alter table jobs add column array_cancelled text;
update jobs set
    array_pending = coalesce((select string_agg(lower(r) || '-' || upper(r) - 1, ',' order by r) from unnest(array_ranges) r), ''),
    array_left = coalesce((select sum(upper(r) - lower(r)) from unnest(array_ranges) r), 0)
where array_ranges is not null;
alter table jobs drop column array_ranges;

-- Tasks of an array that are not over: few, however many have ended.
create index jobs_live_tasks on jobs (array_job_id)
    where array_job_id is not null and state in ('pending', 'allocated', 'running', 'suspended', 'completing');

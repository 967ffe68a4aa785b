-- Power and reboots of nodes.

-- Since when it is powering up or down, or told to reboot.
alter table nodes add column power_since timestamptz;
-- The machine's boot at its last registration.
alter table nodes add column machine_boot text not null default '';
-- NodeReboot of berth-store: what was asked for, while it is to be rebooted.
alter table nodes add column reboot jsonb;
create index nodes_in_motion on nodes (name) where flags && array['power_down', 'power_up', 'powering_down', 'powering_up', 'powered_down', 'reboot', 'reboot_issued'];

#!/bin/sh
# Starts a worker inside a container: reads the join token from JOIN_TOKEN_FILE, since a variable cannot name a file, and makes room
# in the container's cgroup.
set -eu

# cgroup v2 limits no group that has processes of its own, and this container's processes are in its topmost group.
cgroup=/sys/fs/cgroup
if [ -e $cgroup/cgroup.controllers ] && [ "$(cat /proc/self/cgroup)" = "0::/" ] && [ -w $cgroup ]; then
    mkdir -p $cgroup/worker
    for process in $(cat $cgroup/cgroup.procs); do
        echo "$process" > $cgroup/worker/cgroup.procs 2>/dev/null || true
    done
fi

if [ -n "${JOIN_TOKEN_FILE:-}" ] && [ -r "$JOIN_TOKEN_FILE" ]; then
    BERTH_JOIN_TOKEN=$(cat "$JOIN_TOKEN_FILE")
    export BERTH_JOIN_TOKEN
fi
unset JOIN_TOKEN_FILE
exec berth worker "$@"

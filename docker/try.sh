#!/bin/bash
# Builds the image and tries compose.yaml without any container registry: the base image is made with debootstrap and served from
# loopback; Postgres, HAProxy and Prometheus are Debian's packages in images of the same commands. Grafana is left out.
#
#   docker/try.sh                  as root, on Debian 12; Debian's and Python's package archives must be reachable
#   KEEP=1 docker/try.sh           leaves the images and the virtual environment for the next time
#
# BERTH_BINARY: the binary to put into the image, by default target/release/berth. The builder stage is not run here.
# TRY_DIR: where everything goes, by default /tmp/berth-docker-try.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
work=${TRY_DIR:-/tmp/berth-docker-try}
registry=127.0.0.1:${REGISTRY_PORT:-5077}
binary=${BERTH_BINARY:-$root/target/release/berth}

say() { printf '\n== %s\n' "$*"; }
die() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf CONTAINERS_REGISTRIES_CONF=$work/registries.conf
compose() { "$work/venv/bin/podman-compose" -p berthtry -f "$here/compose.yaml" -f "$work/hosts.yaml" "$@"; }
name() { echo "berthtry_$1_1"; }

# ---- what is needed, and podman with folders of its own, so that nothing else on the machine is touched

prepare() {
    [ "$(id -u)" = 0 ] || die "run it as root"
    missing=""
    for need in podman:podman debootstrap:debootstrap docker-registry:docker-registry iptables:iptables netavark:netavark \
        aardvark-dns:aardvark-dns runc:runc unshare:util-linux ip:iproute2 jq:jq; do
        command -v "${need%%:*}" >/dev/null || [ -e "/usr/lib/podman/${need%%:*}" ] || missing="$missing ${need##*:}"
    done
    if [ -n "$missing" ]; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
    fi
    mkdir -p "$work/networks"
    nproc=$(ulimit -Hu)
    [ "$nproc" != unlimited ] && [ "$nproc" -le 32768 ] || nproc=32768
    nofile=$(ulimit -Hn)
    [ "$nofile" != unlimited ] || nofile=1048576
    # Limits that can be set even where root may not raise its own; no systemd is needed.
    cat > "$CONTAINERS_CONF" <<END
[containers]
default_ulimits = ["nofile=$nofile:$nofile", "nproc=$nproc:$nproc"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
tmp_dir = "$work/run/libpod"
volume_path = "$work/volumes"
[network]
network_backend = "netavark"
network_config_dir = "$work/networks"
END
    cat > "$CONTAINERS_STORAGE_CONF" <<END
[storage]
driver = "overlay"
graphroot = "$work/storage"
runroot = "$work/run/storage"
END
    cat > "$CONTAINERS_REGISTRIES_CONF" <<END
unqualified-search-registries = []
[[registry]]
location = "$registry"
insecure = true
END
    hosts_file > "$work/hosts.yaml"
    [ -x "$work/venv/bin/podman-compose" ] || { python3 -m venv "$work/venv" && "$work/venv/bin/pip" -q install podman-compose; }
}

# Fixed addresses, named in each container's hosts file: the name server of podman 4.3 sometimes leaves a question unanswered, and the
# asker then waits five seconds.
hosts_file() {
    services="postgres migrate api-1 api-2 proxy bootstrap scheduler-1 scheduler-2 worker-1 worker-2 prometheus"
    printf 'networks: {default: {ipam: {config: [{subnet: 10.89.77.0/24}]}}}\nservices:\n'
    n=10
    hosts=""
    for service in $services; do
        hosts="$hosts${hosts:+, }\"$service:10.89.77.$n\""
        n=$((n + 1))
    done
    n=10
    for service in $services; do
        printf '  %s: {networks: {default: {ipv4_address: 10.89.77.%s}}, extra_hosts: [%s]}\n' "$service" "$n" "$hosts"
        n=$((n + 1))
    done
}

stop_registry() {
    [ ! -e "$work/registry.pid" ] || kill "$(cat "$work/registry.pid")" 2>/dev/null || true
    rm -f "$work/registry.pid"
}

clean_up() {
    stop_registry
    podman ps -aq 2>/dev/null | xargs -r podman rm -f -t 2 >/dev/null 2>&1 || true
    [ -e "$work/venv/bin/podman-compose" ] || return 0
    podman volume prune -f >/dev/null 2>&1 || true
    podman network prune -f >/dev/null 2>&1 || true
    if [ -z "${KEEP:-}" ]; then
        podman rmi -af >/dev/null 2>&1 || true
        umount "$work/storage/overlay" 2>/dev/null || true
        # Only what was made here, and nothing that is still mounted below it.
        rm -rf --one-file-system "$work"
    fi
}

# ---- images

base_image() {
    mkdir -p "$work/registry"
    printf 'version: 0.1\nlog: {level: warn}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: "%s"}\n' \
        "$work/registry" "$registry" > "$work/registry.yml"
    docker-registry serve "$work/registry.yml" > "$work/registry.log" 2>&1 &
    echo $! > "$work/registry.pid"
    if ! podman image exists "$registry/debian:bookworm"; then
        say "a base image by debootstrap"
        [ -e "$work/base/etc/debian_version" ] || debootstrap --variant=minbase bookworm "$work/base" > "$work/debootstrap.log"
        tar -C "$work/base" --exclude=./var/cache/apt/archives/*.deb --exclude=./dev/* -c . | podman import -q - "$registry/debian:bookworm"
    fi
    podman push -q "$registry/debian:bookworm"
}

berth_image() {
    say "the image of Berth, with $binary"
    [ -x "$binary" ] || die "there is no binary $binary; build it, or name one with BERTH_BINARY"
    # A context that holds the binary alone, in the place where a build would leave it.
    mkdir -p "$work/context/target/release"
    cp "$binary" "$work/context/target/release/berth"
    podman build --network host --target prebuilt --build-arg BASE="$registry/debian:bookworm" \
        -f "$here/Dockerfile" -t localhost/berth:latest "$work/context"
    podman run --rm localhost/berth:latest --version
    [ "$(podman run --rm --entrypoint id localhost/berth:latest -u)" != 0 ] || die "the image runs as root by default"
}

# The other services' images, from Debian's packages.
other_images() {
    say "images for Postgres, HAProxy and Prometheus"
    podman build -q --network host -t localhost/try-postgres --build-arg BASE="$registry/debian:bookworm" -f - "$work/networks" <<'END'
ARG BASE
FROM ${BASE}
RUN mkdir -p /etc/postgresql-common && echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf \
    && apt-get update && apt-get install -y --no-install-recommends postgresql-15 \
    && install -d -o postgres -g postgres -m 700 /var/lib/postgresql/data
ENV PATH=/usr/lib/postgresql/15/bin:/usr/sbin:/usr/bin:/sbin:/bin PGDATA=/var/lib/postgresql/data
USER postgres
STOPSIGNAL SIGINT
ENTRYPOINT ["sh", "-ec", "if [ ! -s $PGDATA/PG_VERSION ]; then echo $POSTGRES_PASSWORD > /tmp/pw; initdb -U $POSTGRES_USER --pwfile=/tmp/pw -A scram-sha-256 --no-sync; rm /tmp/pw; echo 'host all all all scram-sha-256' >> $PGDATA/pg_hba.conf; echo \"create database $POSTGRES_DB\" | postgres --single -j postgres; fi; exec postgres -c listen_addresses='*' -c unix_socket_directories=/tmp"]
END
    podman build -q --network host -t localhost/try-haproxy --build-arg BASE="$registry/debian:bookworm" -f - "$work/networks" <<'END'
ARG BASE
FROM ${BASE}
RUN apt-get update && apt-get install -y --no-install-recommends haproxy
USER haproxy
STOPSIGNAL SIGUSR1
ENTRYPOINT ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
END
    podman build -q --network host -t localhost/try-prometheus --build-arg BASE="$registry/debian:bookworm" -f - "$work/networks" <<'END'
ARG BASE
FROM ${BASE}
RUN apt-get update && apt-get install -y --no-install-recommends prometheus && install -d -o nobody /prometheus
USER nobody
ENTRYPOINT ["prometheus", "--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
END
}

# ---- the files that nothing runs here

check_files() {
    say "prometheus.yml, the dashboard and its queries"
    podman run --rm -v "$here/prometheus.yml:/p.yml:ro" --entrypoint promtool localhost/try-prometheus check config /p.yml
    dashboard=$here/grafana/dashboards/berth-overview.json
    jq -e '.uid and (.panels | length > 0) and ([.panels[].id] | length == (unique | length))' "$dashboard" >/dev/null
    jq '{groups: [{name: "dashboard", rules: [.panels[].targets[].expr | gsub("\\$__rate_interval"; "1m")] | to_entries | map({record: "q\(.key)", expr: .value})}]}' \
        "$dashboard" > "$work/queries.json"
    podman run --rm -v "$work/queries.json:/q.yml:ro" --entrypoint promtool localhost/try-prometheus check rules /q.yml
    "$work/venv/bin/python" - "$here"/compose.yaml "$here"/grafana/provisioning/*/*.yml <<'END'
import sys, yaml
for path in sys.argv[1:]:
    yaml.safe_load(open(path))
    print("valid YAML:", path.rsplit("/", 1)[-1])
END
}

# ---- the stack, in a network namespace of its own

until_ok() { # seconds, what, command…
    local patience=$1 what=$2
    shift 2
    for _ in $(seq "$patience"); do "$@" >/dev/null 2>&1 && return 0; sleep 1; done
    podman ps -a
    die "$what"
}

up() { compose up -d --no-deps "$@" > "$work/up.log" 2>&1 || { cat "$work/up.log"; die "$* did not start"; }; }

# A one-shot service: it must end with 0.
once() {
    up "$1"
    code=$(timeout 120 podman wait "$(name "$1")") || die "$1 does not end"
    podman logs "$(name "$1")" 2>&1 | tail -n 5
    [ "$code" = 0 ] || die "$1 ended with $code"
}

in_api_2() { podman exec -e BERTH_TOKEN="$token" "$(name api-2)" "$@"; }
status() { curl -s -o /dev/null -w '%{http_code}' "$@"; }
targets_up() {
    curl -s http://127.0.0.1:9090/api/v1/targets | jq -r '.data.activeTargets[] | "\(.labels.job) \(.labels.instance) \(.health) \(.lastError)"' | sort > "$work/targets"
    [ "$(grep -c ' up $' "$work/targets")" = 7 ]
}
proxied() { [ "$(status http://127.0.0.1:6780/readyz)" = 200 ]; }
nodes_in() { [ "$(in_api_2 env BERTH_FORMAT=json berth nodes | jq '[.. | objects | select(.name? | strings | startswith("worker-"))] | length')" -ge 2 ]; }

# A job whose output names where it ran; submitted and read through the proxy.
job() { # a mark, sbatch options…
    local mark=$1
    shift
    in_api_2 timeout 90 berth submit --wait "$@" --wrap="echo $mark on \$SLURMD_NODENAME \$(hostname) as \$(id -u); srun --label sh -c 'echo task \$SLURM_PROCID'" | tee "$work/submitted"
    id=$(grep -oE '[0-9]+' "$work/submitted" | head -n 1)
    in_api_2 berth logs "$id" | tee "$work/log"
    grep -q "^$mark on worker-[12]" "$work/log" || die "job $id has not the output it should have"
    grep -q "as 1000$" "$work/log" || die "job $id did not run as BERTH_RUN_AS says"
}

run_stack() {
    ip link set lo up
    export POSTGRES_IMAGE=localhost/try-postgres PROXY_IMAGE=localhost/try-haproxy PROMETHEUS_IMAGE=localhost/try-prometheus
    # compose.yaml waits for health, which podman checks only where there is systemd. So the order is kept here.
    say "Postgres, migrate, API, proxy"
    up postgres
    until_ok 30 "Postgres does not come up" podman healthcheck run "$(name postgres)"
    once migrate
    up api-1
    until_ok 30 "api-1 does not become healthy" podman healthcheck run "$(name api-1)"
    up api-2
    until_ok 30 "api-2 does not become healthy" podman healthcheck run "$(name api-2)"
    up proxy
    until_ok 30 "the proxy finds no replica" proxied
    [ "$(status http://127.0.0.1:6780/metrics)" = 404 ] || die "the proxy lets metrics out"

    say "bootstrap, schedulers, workers, Prometheus"
    once bootstrap
    for service in scheduler-1 scheduler-2 worker-1 worker-2 prometheus; do up $service; done
    token=$(podman exec "$(name api-2)" berth token --subject you --tenant dev)
    until_ok 60 "the workers do not join" nodes_in
    in_api_2 berth nodes

    say "a job through the proxy"
    job first --ntasks=2 --gpus=1
    in_api_2 berth run sh -c 'for i in 1 2 3; do echo streamed $i; sleep 1; done' | tee "$work/log"
    grep -q "streamed 3" "$work/log" || die "the output was not streamed"

    say "an event stream is not held back by the proxy"
    id=$(in_api_2 berth submit --parsable --wrap='for i in 1 2 3 4 5 6; do echo tick $i; sleep 1; done' | grep -oE '[0-9]+' | head -n 1)
    curl -sN -m 20 -H "authorization: Bearer $token" "http://127.0.0.1:6780/v1/jobs/$id/logs/follow" |
        while IFS= read -r line; do case $line in data:*) echo "$(date +%s) $line" ;; esac; done > "$work/stream" || true
    cut -c 1-100 "$work/stream"
    [ "$(cut -d ' ' -f 1 "$work/stream" | sort -u | wc -l)" -ge 4 ] || die "the stream came in one piece"

    say "one API replica killed; again"
    podman kill "$(name api-1)" >/dev/null
    for n in 1 2 3 4 5; do job "second$n"; done
    podman start "$(name api-1)" >/dev/null
    until_ok 30 "api-1 does not come back" podman healthcheck run "$(name api-1)"

    say "the leading scheduler killed; again"
    podman kill "$(name scheduler-1)" >/dev/null
    job third
    podman logs "$(name scheduler-2)" > "$work/log" 2>&1
    grep -q '"message":"leading"' "$work/log" || die "the standby did not take over"
    podman start "$(name scheduler-1)" >/dev/null

    say "a worker's container started anew, with the join token gone; again"
    podman run --rm -v berthtry_bootstrap:/b --entrypoint rm localhost/berth:latest /b/join-token
    podman restart -t 10 "$(name worker-1)" >/dev/null
    sleep 3
    job fourth --nodelist=worker-1

    say "what Prometheus sees"
    until_ok 30 "Prometheus does not reach all it should" targets_up
    cat "$work/targets"
    curl -s http://127.0.0.1:9090/api/v1/label/__name__/values | jq -r '.data[]' | sort > "$work/metrics"
    jq -r '.panels[].targets[].expr' "$here/grafana/dashboards/berth-overview.json" | grep -oE 'berth_[a-z_]+' | sort -u > "$work/asked"
    # Counters by outcome are not there before their first event, so this is shown and does not fail.
    echo "metrics of the dashboard that nobody has yet: $(comm -23 "$work/asked" "$work/metrics" | tr '\n' ' ')"
    for query in 'sum(berth_job_submissions_total)' 'max by (state) (berth_nodes)' \
        'histogram_quantile(0.99, sum by (le) (rate(berth_http_request_seconds_bucket[1m])))'; do
        curl -s --get --data-urlencode "query=$query" http://127.0.0.1:9090/api/v1/query | jq -c --arg q "$query" '[$q, (.data.result[] | [.metric, .value[1]])]'
    done
    say "all of it works"
}

prepare
if [ "${1:-}" = --stack ]; then
    trap 'code=$?; [ $code = 0 ] || for c in $(podman ps -aq); do echo "--- $(podman inspect -f "{{.Name}} {{.State.Status}} {{.State.ExitCode}}" "$c")"; podman logs --tail 15 "$c" 2>&1; done; podman ps -aq | xargs -r podman rm -f -t 2 >/dev/null 2>&1; exit $code' EXIT
    run_stack
else
    trap clean_up EXIT
    base_image
    berth_image
    other_images
    stop_registry
    check_files
    unshare --net "$0" --stack
fi

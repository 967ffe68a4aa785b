#!/bin/sh
# Installs what a fresh Debian 12 lacks for building, running and testing Berth. Does nothing where all is there.
set -eu
missing=""
need() { [ -e "$1" ] || missing="$missing $2"; }
need /usr/lib/postgresql/15/bin/postgres postgresql-15
command -v cc >/dev/null || missing="$missing build-essential"
command -v cmake >/dev/null || missing="$missing cmake"
python3 -c "import ensurepip" 2>/dev/null || missing="$missing python3 python3-venv"
command -v runc >/dev/null || missing="$missing runc"
command -v crun >/dev/null || missing="$missing crun"
# For the tests of containers: an image's content, an engine, and a registry.
need /bin/busybox busybox-static
command -v podman >/dev/null || missing="$missing podman"
command -v docker-registry >/dev/null || missing="$missing docker-registry"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" != 0 ]; then
    echo "these Debian packages are missing:$missing" >&2
    echo "install them with: sudo apt-get install$missing" >&2
    exit 1
fi
apt-get update -qq
# Debian's package would start a cluster of its own; Berth makes a private one.
mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] || echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing

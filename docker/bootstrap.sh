#!/bin/bash
# For development: makes, with the development issuer's key, an administrator's token, and with that the tenant `dev` with its user
# `you`, and a join token for the workers. Runs anew at each `up`; what is there already stays, and nodes that are known do not look
# at the join token.
#
# BERTH_DEV_KEY: the key, which the first API replica has made. BERTH_SERVER: the API, as http://host:port. BOOTSTRAP_DIR: where the
# tokens go.
set -euo pipefail
umask 077
dir=${BOOTSTRAP_DIR:-/var/lib/berth/bootstrap}

# A file appears whole or not at all.
keep() {
    cat > "$dir/.$1"
    [ -s "$dir/.$1" ] && mv "$dir/.$1" "$dir/$1"
}

# A request with an administrator's token, by the shell itself: `berth` has no command for tenants. Already done counts as done.
create() { # method, path, JSON
    local address=${BERTH_SERVER#http://} status
    exec 3<>"/dev/tcp/${address%:*}/${address##*:}" || return 1
    printf '%s %s HTTP/1.0\r\nhost: %s\r\nauthorization: Bearer %s\r\ncontent-type: application/json\r\ncontent-length: %s\r\n\r\n%s' \
        "$1" "$2" "$address" "$(cat "$dir/admin-token")" "${#3}" "$3" >&3
    read -r _ status _ <&3
    exec 3>&-
    case $status in 200 | 201 | 204 | 409 | 412 | 428) ;; *) echo "$1 $2: $status" >&2 && return 1 ;; esac
}

admin_token() { berth token --subject root --tenant "" --role platform_admin --valid 30d | keep admin-token; }
tenant() { create POST /v1/tenants '{"name": "dev", "display_name": "Development"}'; }
user() { create PUT "/v1/users/you?tenant=dev" '{"default_account": "default"}'; }
# The key and --join do not go together, even where the key comes from the environment.
join_token() { env -u BERTH_DEV_KEY berth token --token-file "$dir/admin-token" --join --uses 10 | keep join-token; }

patience=60
for part in admin_token tenant user join_token; do
    until $part; do
        patience=$((patience - 1))
        [ "$patience" -gt 0 ] || { echo "giving up: $part" >&2; exit 1; }
        sleep 1
    done
done
echo "the tokens are in $dir"

#!/bin/sh
# Follows the stream of events, without a gap: after a broken connection, a restart of the server or of this
# program it goes on behind the last event that it has dealt with, whose number it keeps in a file.
#
#     SVC_URL=http://localhost:8080 SVC_KEY=... sh follow.sh last-id [Resource=Shop.OrderPlaced]
set -eu
: "${SVC_URL:?}"
state=$1

config=$(mktemp)
trap 'rm -f "$config"' EXIT
trap 'exit 130' INT TERM
if [ -n "${SVC_KEY:-}" ]; then printf 'header = "Authorization: apikey %s"\n' "$SVC_KEY" >"$config"; fi

while :; do
    last=$(cat "$state" 2>/dev/null || echo 0) # 0: the oldest that is kept
    curl --silent --show-error --no-buffer --fail --config "$config" --header 'Accept: text/event-stream' \
        --header "Last-Event-ID: $last" --speed-limit 1 --speed-time 60 --write-out '\nstatus: %{http_code}\n' \
        "$SVC_URL/Svc.Event/${2:-}" |
        while read -r name value; do
            case $name in
            id:) id=$value ;;
            event:) event=$value ;;
            data:)
                printf '%s %s\n' "$event" "$value"
                # Only now: what was under way when we crash comes again.
                printf '%s' "${id:-$last}" >"$state.new" && mv "$state.new" "$state"
                ;;
            status:) case $value in 4??) exit 1 ;; esac ;; # refused: it will be again
            esac
        done || exit 1
    sleep 1
done

#!/bin/sh
# Raises an event once, however often it has to be tried: the ClientId tells the server which one it is.
#
#     SVC_URL=http://localhost:8080 SVC_KEY=... sh raise.sh Shop.OrderPlaced order-17 '{"Total":12.50}'
#
# The key goes through a file that curl reads, so that it is in no list of processes.
set -eu
: "${SVC_URL:?}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/config"
if [ -n "${SVC_KEY:-}" ]; then printf 'header = "Authorization: apikey %s"\n' "$SVC_KEY" >"$work/config"; fi
printf '{"Resource":"%s","ClientId":"%s","Payload":%s}' "$1" "$2" "$3" >"$work/event"

for wait in 1 2 4 8 ''; do
    status=$(curl --silent --show-error --config "$work/config" --header 'Content-Type: application/json' \
        --max-time 30 --data-binary "@$work/event" --output "$work/answer" --write-out '%{http_code}' \
        "$SVC_URL/Svc.Event") || status=000
    case $status in
    201) cat "$work/answer" && exit ;;
    000 | 408 | 429 | 5??) if [ -n "$wait" ]; then sleep "$wait"; fi ;; # the next try finds out whether it arrived
    *) break ;;                                                       # what else is refused stays refused
    esac
done
cat "$work/answer" >&2 || true
exit 1

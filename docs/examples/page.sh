#!/bin/sh
# Goes through the log of attempts page by page, oldest first. Nothing is left out and nothing comes twice,
# whatever is added meanwhile: the next page begins behind the last ObjectNo. Prints a JSON array a page.
#
#     SVC_URL=http://localhost:8080 SVC_KEY=... sh page.sh 'IsSuccess=false'
set -eu
: "${SVC_URL:?}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
: >"$work/config"
if [ -n "${SVC_KEY:-}" ]; then printf 'header = "Authorization: apikey %s"\n' "$SVC_KEY" >"$work/config"; fi

target=/Svc.Admin.WebhookLog/${1:-_}/limit=500
while [ -n "$target" ]; do
    curl --silent --show-error --fail-with-body --config "$work/config" --max-time 30 \
        --dump-header "$work/headers" "$SVC_URL$target"
    target=$(tr -d '\r' <"$work/headers" | sed -n 's/^Svc-pager: //Ip') # empty on the last page
done

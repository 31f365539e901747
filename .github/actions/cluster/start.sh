#!/usr/bin/env bash
# Starts `steadfast cluster` in the background, waits until it is up, and writes its
# addresses to the outputs and the environment of the workflow.
set -euo pipefail
printed=$(mktemp)
nohup steadfast cluster --json "$@" >"$printed" 2>"$printed.errors" </dev/null &
cluster=$!
until [ -s "$printed" ]; do
    if ! kill -0 "$cluster" 2>/dev/null; then
        cat "$printed.errors" >&2
        exit 1
    fi
    sleep 0.1
done
field() { sed -n "1s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$printed"; }
echo "connect=$(field connect)" >>"$GITHUB_OUTPUT"
echo "control=$(field control)" >>"$GITHUB_OUTPUT"
echo "STEADFAST_CONTROL=$(field control)" >>"$GITHUB_ENV"
echo "steadfast cluster $cluster: $(field connect)"

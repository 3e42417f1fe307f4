#!/bin/sh
# Tells Prometheus which pods to scrape: one file per pod in a folder that it watches. Debian builds
# Prometheus without Kubernetes service discovery, so this does the same with a watch.
# Arguments: kubectl, kubeconfig, template, folder.
kubectl=$1 kubeconfig=$2 template=$3 targets=$4
trap 'trap - TERM; kill 0' TERM
set -f
mkdir -p "$targets"

# One line of the template: event, pod, address, scheme, path, then labels as name=value.
handle() {
    event=$1 pod=$2 address=$3 scheme=$4 path=$5
    file=$targets/$(printf %s "$pod" | tr / _).json
    if [ "$event" = DELETED ] || [ "$address" = - ]; then
        rm -f "$file"
        return
    fi
    shift 5
    labels="\"__scheme__\":\"$scheme\",\"__metrics_path__\":\"$path\""
    for label in "$@"; do
        name=$(printf %s "${label%%=*}" | tr -c 'a-zA-Z0-9_' _)
        labels="$labels,\"$name\":\"${label#*=}\""
    done
    printf '[{"targets":["%s"],"labels":{%s}}]\n' "$address" "$labels" >"$file.new"
    mv "$file.new" "$file"
}

while :; do
    # What vanished while nobody watched is not told again: begin with nothing.
    find "$targets" -name '*.json' -delete
    "$kubectl" --kubeconfig="$kubeconfig" get pods -A --watch --output-watch-events \
        -o "go-template-file=$template" |
        while read -r line; do
            # Splitting is the point; no field holds a blank, and `set -f` keeps patterns from meaning anything.
            # shellcheck disable=SC2086
            handle $line
        done &
    # A shell heeds signals while it waits, but not while a pipeline is in its foreground.
    wait $!
    sleep 1
done

#!/usr/bin/env bash
# Runs "go build" with arguments, and counts on stderr the packages that it compiles: the
# first build compiles Kubernetes, which takes some minutes. Off a terminal it prints the
# count every 30 seconds.
set -euo pipefail

for arg in "$@"; do
	[[ $arg != ./cmd/* ]] || echo "building $arg" >&2
done

# Lines without spaces are packages that begin to compile, the others are errors.
count() {
	local n=0 line status last=$SECONDS
	while true; do
		status=0
		IFS= read -r -t 5 line || status=$?
		if [[ $status == 0 && $line == *" "* ]]; then
			((n == 0)) || [[ ! -t 2 ]] || echo >&2
			echo "$line" >&2
		elif [[ $status == 0 ]]; then
			n=$((n + 1))
			[[ ! -t 2 ]] || printf '\r  compiling: package %d ' "$n" >&2
		elif ((status <= 128)); then # the end, and not the time
			break
		fi
		if [[ ! -t 2 ]] && ((n > 0 && SECONDS - last >= 30)); then
			last=$SECONDS
			printf '  compiling: package %d\n' "$n" >&2
		fi
	done
	((n == 0)) || [[ ! -t 2 ]] || echo >&2
}

go build -v "$@" 2>&1 | count

#!/usr/bin/env bash
# Runs every fuzz target for some time, one after the other, and prints at the end which
# failed. What makes a target fail is kept in its testdata/fuzz, from where "go test"
# runs it again.
#
#   FUZZTIME=1m  how long each runs
#   RUN=REGEXP   only targets whose name matches
set -euo pipefail
cd "$(dirname "$0")/.."

time=${FUZZTIME:-1m}
failed=() ran=0
while IFS=: read -r file target; do
	[[ $target =~ ${RUN:-.} ]] || continue
	package=./$(dirname "$file")
	echo "== $package $target"
	ran=$((ran + 1))
	go test -run='^$' -fuzz="^$target\$" -fuzztime="$time" "$package" || failed+=("$package $target")
done < <(git ls-files '*_test.go' | xargs grep -Ho '^func Fuzz[A-Za-z0-9_]*' | sed 's/func //' | sort)

if ((ran == 0)); then
	echo "no fuzz target matches ${RUN:-.}" >&2
	exit 1
fi
if ((${#failed[@]})); then
	printf 'FAILED: %s\n' "${failed[@]}" >&2
	exit 1
fi
echo "$ran fuzz targets ran for $time each: none failed"

#!/usr/bin/env bash
# Runs "go build" with arguments, and counts on stderr the packages that it compiles: the
# first build compiles Kubernetes, which takes some minutes.
set -euo pipefail

for arg in "$@"; do
	[[ $arg != ./cmd/* ]] || echo "building $arg" >&2
done
terminal=$([[ ! -t 2 ]] || echo 1)
# Lines without spaces are packages that begin to compile, the others are errors.
go build -v "$@" 2>&1 | awk -v terminal="$terminal" '
	/^[^ ]+$/ {
		count++
		if (terminal) printf "\r  compiling: package %d ", count
		else if (count % 200 == 0) printf "  compiling: package %d\n", count
		fflush()
		next
	}
	{ if (terminal && count) print ""; print; fflush() }
	END { if (terminal && count) print "" }
' >&2

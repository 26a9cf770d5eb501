#!/usr/bin/env bash
# Writes what "karmadactl plan" prints into a file, as a comment in Markdown.
#
#   plan.sh FILE FLAG...   the flags are those of plan, such as -f DIRECTORY or -k DIRECTORY
#
# The exit code is 0 whether or not something changes; if there is no plan, it is that of plan, and nothing is written.
set -euo pipefail

limit=60000 # bytes of the plan; a comment on GitHub has at most 65,536 characters

file=$1
shift
plan=$(mktemp)
trap 'rm -f "$plan"' EXIT
code=0
karmadactl plan "$@" >"$plan" || code=$?
if [ "$code" != 0 ] && [ "$code" != 2 ]; then
	exit "$code"
fi

# The last line is the summary. Lines are indented: no text of an object ends the block of code.
{
	echo "<!-- karmadactl plan -->"
	echo "### $(tail -n 1 "$plan")"
	echo
	sed -e '$d' -e 's/^/    /' "$plan" | LC_ALL=C awk -v limit="$limit" '
		{ size += length($0) + 1 }
		size <= limit { print; next }
		{ more++ }
		END { if (more) print "\n" more " more lines are left out. See them with `karmadactl plan`." }'
} >"$file"

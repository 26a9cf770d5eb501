#!/usr/bin/env bash
# Checks that generated files, formatting and module files are current, and that no linter is suppressed which is not
# enabled.
#
#   FULL=1   runs every generator, also when the hash of what is generated is that of hack/generate.sum
set -euo pipefail
cd "$(dirname "$0")/.."

before=$(git status --porcelain)
if [[ -n "$before" ]]; then
	echo "verify compares with the last commit: commit or remove these first" >&2
	echo "$before" >&2
	exit 1
fi

unformatted=$(git ls-files '*.go' | xargs gofmt -l)
if [[ -n "$unformatted" ]]; then
	echo "not formatted (run gofmt -w):" >&2
	echo "$unformatted" >&2
	exit 1
fi

# Every suppression is of a linter that is enabled.
enabled=$(sed -n '/^  enable: \[$/,/^  \]$/p' .golangci.yml | sed 's/#.*//' | grep -oE '[a-z0-9]+' | grep -vx enable)
suppressed=$(git grep -hoE '//nolint:[a-z0-9,]+' -- '*.go' | sed 's/.*://' | tr , '\n' | sort -u)
unknown=$(comm -23 <(echo "$suppressed") <(sort -u <<<"$enabled"))
if [[ -n "$unknown" ]]; then
	echo "nolint comments for linters that are not enabled:" "$unknown" >&2
	exit 1
fi

go mod tidy -diff
(cd test/metrics && go mod tidy -diff)
if [[ -n ${FULL:-} ]]; then hack/generate.sh; else hack/generate.sh --changed; fi >/dev/null

if ! git diff --exit-code --stat || [[ -n "$(git status --porcelain)" ]]; then
	git status --short >&2
	echo "generated files are not current: run \"make generate\" and commit" >&2
	exit 1
fi
echo "verify: everything is current"

#!/usr/bin/env bash
# Runs every test and says what ran. Needs Go and nothing else.
#
# The pure packages run under the race detector; what links Kubernetes' servers,
# or starts them, runs without it: it would take longer than everything else
# together.
set -euo pipefail
cd "$(dirname "$0")/.."

started=$SECONDS
failed=()

stage() {
	local name=$1 from=$SECONDS
	shift
	echo "==> $name"
	if ! "$@"; then
		failed+=("$name")
	fi
	echo "==> $name: $((SECONDS - from)) s"
}

mapfile -t all < <(go list ./...)
unit=() servers=()
for pkg in "${all[@]}"; do
	case "$pkg" in
	*/internal/kubelite | */internal/kubelite/* | */internal/testenv* | */cmd/kubelite) servers+=("$pkg") ;;
	*/test/e2e | */test/integration* | */test/bench*) ;;
	*) unit+=("$pkg") ;;
	esac
done

stage "programs" make --no-print-directory build
bin=$PWD/bin
export KARMADA_TEST_BIN_DIR=$bin
if command -v gcc >/dev/null; then
	stage "unit, contract, conformance (race detector on)" go test -race "${unit[@]}"
else
	echo "gcc is missing: the race detector is off"
	stage "unit, contract, conformance" go test "${unit[@]}"
fi
mapfile -t integration < <(git grep -l '^//go:build integration' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's#^#./#')
stage "kstatus" go test -modfile=go.kstatus.mod -tags kstatus ./pkg/controlplane/conditions/testdata/kstatus
stage "kubelite" go test "${servers[@]}"
stage "integration, against real API servers" go test -count=1 -tags integration "${integration[@]}"
stage "end to end" env E2E_BIN="$bin" E2E_LOGS="$PWD/_output/e2e-logs" go test -count=1 -timeout 30m -v ./test/e2e
stage "end to end, members in Pull mode" env E2E_PULL=2 E2E_BIN="$bin" E2E_LOGS="$PWD/_output/e2e-pull-logs" go test -count=1 -timeout 30m -v -skip '^Test(Pull|Register)$' ./test/e2e

echo
if ((${#failed[@]})); then
	printf 'FAILED after %d s:\n' $((SECONDS - started))
	printf '  %s\n' "${failed[@]}"
	exit 1
fi
printf 'passed: everything, in %d s\n' $((SECONDS - started))

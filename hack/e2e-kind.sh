#!/usr/bin/env bash
# Runs the end-to-end tests on kind clusters: real nodes, real pods. Needs Docker.
# `make e2e-kind` builds what it tests.
#
#   KIND_NODE_IMAGE=…   image of the nodes; default kind's own
#   KIND_CONFIG=FILE    kind configuration that every cluster is made from
#   E2E_PULL=N          how many of the two members are in Pull mode; default 1
#   E2E_CUT=DURATION    how long the network of a member is cut; default 2m
#   E2E_UNTIL=SECONDS   since 1970: no group of tests is begun that may take longer
#   E2E_NAME=NAME       name of the federation of the tests; default e2e
#   RUN=REGEXP          only these tests
set -euo pipefail
cd "$(dirname "$0")/.."

if ! docker info >/dev/null 2>&1; then
	echo "the end-to-end tests on kind need a Docker engine, and none answers" >&2
	exit 1
fi
export PATH="$PWD/_output/tools:$PATH"
for tool in kind=sigs.k8s.io/kind kubectl=k8s.io/kubernetes/cmd/kubectl; do
	if ! command -v "${tool%%=*}" >/dev/null; then
		echo "building ${tool%%=*}, which is not on the PATH"
		CGO_ENABLED=0 go build -modfile=go.helm.mod -o "_output/tools/${tool%%=*}" "${tool#*=}"
	fi
done

CGO_ENABLED=0 go build -modfile=go.helm.mod -o _output/tools/helm helm.sh/helm/v4/cmd/helm

# The clusters of the tests. What is left of them after an interruption goes.
federation=karmada-${E2E_NAME:-e2e}
clusters=("$federation"-{host,member1,member2,member3} cluster01 cluster02)
existing=$(kind get clusters 2>/dev/null)
for cluster in "${clusters[@]}"; do
	if grep -qx "$cluster" <<<"$existing"; then
		echo "there is a kind cluster $cluster already; remove it with \"kind delete cluster --name $cluster\"" >&2
		exit 1
	fi
done
kubeconfig=$(mktemp)
# shellcheck disable=SC2317 # the trap calls it
cleanup() {
	local cluster
	for cluster in "${clusters[@]}"; do
		kind delete cluster --name "$cluster" --kubeconfig "$kubeconfig" >/dev/null 2>&1 || true
	done
	rm -f "$kubeconfig"
}
trap cleanup EXIT

echo "nodes: ${KIND_NODE_IMAGE:-the default of $(kind version)}"
export E2E_PULL=${E2E_PULL-1} E2E_CUT=${E2E_CUT-2m} E2E_BIN=$PWD/bin E2E_IMAGE=$PWD/_output/karmada.tar E2E_LOGS=$PWD/_output/e2e-kind-logs
tests=(go test -count=1 -tags kind -timeout 40m -v ./test/e2e)
if [[ -n "${RUN:-}" ]]; then
	"${tests[@]}" -run "$RUN"
	exit
fi
# group runs tests that may take some minutes if there is time for them.
failed=0
group() {
	local what=$1 minutes=$2
	if [[ -n "${E2E_UNTIL:-}" ]] && (($(date +%s) + minutes * 60 > E2E_UNTIL)); then
		echo "NOT RUN: on kind, $what: it may take $minutes minutes, and $(((E2E_UNTIL - $(date +%s)) / 60)) are left"
		return
	fi
	"${tests[@]}" "${@:3}" || failed=1
}

# One after the other: five clusters at once are too many for a small machine. What needs kind
# comes before what the tests on processes run, too.
only=$(git grep -hE '^func Test' -- $(git grep -l '^//go:build kind$' -- test/e2e) | sed 's/^func \(Test[A-Za-z0-9_]*\)(.*/\1/' | grep -vE '^Test(Tour|Pull)$' | paste -sd'|')
group "the README's tour" 8 -run '^TestTour$'
group "what needs kind" 28 -run "^($only)$"
if [[ "${E2E_PULL:-0}" == 0 ]]; then
	echo "NOT RUN: TestPull, since E2E_PULL=0 leaves no member in Pull mode"
else
	group "TestPull" 10 -run '^TestPull$'
fi
group "what the tests on processes run, too" 25 -skip "^(TestTour|$only|TestPull)$"
exit $failed

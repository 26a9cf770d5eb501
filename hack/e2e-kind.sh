#!/usr/bin/env bash
# Runs end-to-end tests on kind clusters: real nodes, real pods. Needs Docker. `make e2e-kind`
# builds what it tests. Without ALL and RUN: the README's tour with an installation that is
# killed and goes on, join, register and unjoin, an addon, the chart, the operator, adopt, and autoscaling under real
# load, in 45 minutes at most.
#
#   KIND_NODE_IMAGE=…   image of the nodes; default kind's own
#   KIND_CONFIG=FILE    kind configuration that every cluster is made from
#   E2E_PULL=N          how many of the two members are in Pull mode; default 1
#   E2E_CUT=DURATION    how long the network of a member is cut; default 2m
#   E2E_NAME=NAME       name of the federation of the tests; default e2e
#   RUN=REGEXP          only these tests
#   ALL=1               every test
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
# The tests build it again, from the cache.
CGO_ENABLED=0 go build -C test/metrics -ldflags '-s -w' -o "$PWD/_output/tools/metrics-server" sigs.k8s.io/metrics-server/cmd/metrics-server

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
tests=$PWD/_output/e2e-kind.test
go test -c -vet=off -tags kind -o "$tests" ./test/e2e
cd test/e2e

# run runs tests, until the time for all is over.
failed=0 until=$((SECONDS + 45 * 60))
run() {
	"$tests" -test.v -test.timeout=$((until > SECONDS ? until - SECONDS : 1))s "$@" || failed=1
}

if [[ -n "${ALL:-}${RUN:-}" ]]; then
	export E2E_ALL=1
	until=$((SECONDS + 60 * 120))
fi
if [[ -n "${RUN:-}" ]]; then
	run -test.run "$RUN"
	exit $failed
fi
# One after the other: five clusters at once are too many for a small machine.
run -test.run '^TestTour$'
if [[ -z "${ALL:-}" ]]; then
	run -test.run '^Test(Adopt(_Chart|_Operator)?|Autoscaling_RealLoad|Chart|Operator)$'
	exit $failed
fi
if [[ "${E2E_PULL:-0}" == 0 ]]; then
	echo "NOT RUN: TestPull, since E2E_PULL=0 leaves no member in Pull mode"
	run -test.skip '^Test(Tour|Pull)$'
else
	run -test.skip '^TestTour$'
fi
exit $failed

#!/usr/bin/env bash
# Prints the figures that the project is measured by.
#
#   PROPBENCH=FILE   the load generator for propagation (default: the one beside the checkout)
#   FLOOR=FILE       the program that creates the same in the members alone (default: the one beside the checkout)
#   N=200            how many Deployments they create
#   PAIRS=5          how often both are run, one after the other
#   STUBS=DIR        sources of the program whose stub members why is asked about (default: those beside the checkout)
#   AGENT_WORKS=500  how many Works the agent has when its memory is measured
set -euo pipefail
cd "$(dirname "$0")/.."

N=${N:-200}
PAIRS=${PAIRS:-5}
FLOOR=${FLOOR:-../shared/tools/floor}
AGENT_WORKS=${AGENT_WORKS:-500}
STUBS=${STUBS:-../shared/tools/stubs}
PROPBENCH=${PROPBENCH:-../shared/tools/propbench}
ctl=$PWD/bin/karmadactl
dir=$(mktemp -d)
trap '"$ctl" local down --purge --dir "$dir" >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT

headline() { printf '\n== %s\n' "$*"; }
seconds() { awk -v a="$1" -v b="$(date +%s.%N)" 'BEGIN {printf "%.2f s\n", b - a}'; }
writes() {
	"$kubectl" --kubeconfig "$KUBECONFIG" get --raw /metrics |
		awk '/^apiserver_request_total\{/ && /verb="(POST|PUT|PATCH|APPLY|DELETE)"/ && !/resource="(leases|events|tokenreviews|subjectaccessreviews)"/ {n += $NF} END {print n + 0}'
}

headline "decisions, divisions, interpretations (one core)"
GOMAXPROCS=1 go test -run '^$' -bench . -benchmem -benchtime 1s \
	./pkg/controlplane/scheduler/... ./pkg/domain/replicas ./pkg/domain/interpreter/... ./pkg/domain/override \
	./pkg/domain/estimate |
	grep -E '^(Benchmark|pkg:)'

headline "a key of one namespace in a queue, while another namespace floods it: 99th percentiles"
go test -run '^$' -bench OtherTenant -benchtime 3x ./internal/controllers | grep '^Benchmark'

headline "bindings a second in a namespace with 100 quotas, and in one without"
go test -tags integration -run '^$' -bench Enforcement -benchtime 1x ./test/integration/controllers | grep '^Benchmark'

headline "Services that span 5 clusters: change to consumer, writes, 200 Services with 50 endpoints each"
go test -tags integration -run '^$' -bench Services -benchtime 1x ./test/integration/controllers | grep '^Benchmark'

headline "resident memory of the metrics adapter, 5 members with 2,000 pods each"
go test -tags integration -run '^$' -bench Adapter -benchtime 1x ./test/integration/servers | grep '^Benchmark'

headline "the role search: 10,000 Pods in 5 clusters, watches, start with 100,000 ConfigMaps in 20 clusters"
go test -tags integration -run '^$' -bench Search -benchtime 1x ./test/integration/servers | grep '^Benchmark'

headline "the dashboard: 1,000 workloads in each of 50 clusters"
go test -tags integration -run '^$' -bench Dashboard -benchtime 1x ./test/integration/servers | grep '^Benchmark'

headline "a decision over ten clusters, with and without estimators"
go test -run '^$' -bench Schedule -benchtime 3s ./pkg/controlplane/estimator | grep -E '^Benchmark'

headline "an estimator with 1,000 nodes and 30,000 pods"
go run ./hack/estimates --karmada bin/karmada

headline "the command line"
stat -c %s bin/kubectl-karmada | awk '{printf "kubectl-karmada: %.1f MB\n", $1 / 1e6}'
for _ in 1 2 3; do
	from=$(date +%s.%N)
	bin/kubectl-karmada --help >/dev/null
	printf 'kubectl-karmada --help: '
	seconds "$from"
done

headline "local up --members 2, until both are Ready"
for _ in 1 2 3; do
	from=$(date +%s.%N)
	"$ctl" local up --members 2 --nodes 3 --dir "$dir" >/dev/null 2>&1
	seconds "$from"
	"$ctl" local down --purge --dir "$dir" >/dev/null 2>&1
done

# plan measures a plan, and counts the requests that write.
plan() {
	for _ in 1 2 3; do
		from=$(date +%s.%N)
		"$ctl" plan "$@" -v=6 >"$dir/plan.out" 2>"$dir/plan.log" || (($? == 2))
		printf '%s; writes: %s: ' "$(tail -1 "$dir/plan.out")" "$(grep -c 'verb="\(POST\|PUT\|PATCH\|DELETE\)"' "$dir/plan.log")"
		seconds "$from"
	done
}

# insight explains a Deployment that 20 clusters have, and that is Healthy in none, so that each is asked; and shows the status of 50
# clusters with 1,000 Deployments, each in two of them.
insight() {
	local serving admin
	"$ctl" local up --members 0 --dir "$dir" >/dev/null 2>&1
	KUBECONFIG=$("$ctl" local kubeconfig --dir "$dir")
	export KUBECONFIG
	"$dir/stub" serve -members 50 -status-lag 1h -dir "$dir/stubs" >"$dir/stub.log" 2>&1 &
	serving=$!
	sleep 3
	"$dir/stub" join -n 20 -dir "$dir/stubs" >/dev/null && "$dir/stub" ready -n 20 -dir "$dir/stubs" >/dev/null
	"$dir/stub" dup -name all -dir "$dir/stubs" >/dev/null
	sleep 10
	admin=$(grep -o 'https://[0-9.:]*' "$dir/stub.log" | head -1)/admin
	for hangs in 0 1; do
		((!hangs)) || curl -sk "$admin/hang?from=3&count=1" >/dev/null
		for _ in 1 2 3; do
			from=$(date +%s.%N)
			"$ctl" why deployment all -n bench >/dev/null
			printf '%s of 20 hang: ' "$hangs"
			seconds "$from"
		done
	done
	headline "status of 50 clusters with 1,000 workloads"
	curl -sk "$admin/unhang?from=3&count=1" >/dev/null
	"$dir/stub" join -from 20 -n 50 -dir "$dir/stubs" >/dev/null && "$dir/stub" ready -n 50 -dir "$dir/stubs" >/dev/null
	"$dir/stub" load -members 50 -n 1000 -dir "$dir/stubs" >/dev/null
	sleep 60 # until the control plane is at rest
	for _ in 1 2 3; do
		from=$(date +%s.%N)
		"$ctl" status >/dev/null || true # its problems are the result
		seconds "$from"
	done
	headline "plan of 500 objects in 20 clusters"
	for i in $(seq 499); do
		"$ctl" create deployment "plan-$i" --image nginx:1.19.0 --replicas 2 -n bench --dry-run=client -o yaml
		echo ---
	done >"$dir/plan.yaml"
	printf '{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: plan, namespace: bench}, spec: {resourceSelectors: [%s], placement: {clusterAffinity: {clusterNames: [%s]}}}}\n' \
		'{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchExpressions: [{key: app, operator: Exists}]}}' \
		"$("$ctl" get clusters -o name | head -20 | sed 's#.*/##' | paste -sd,)" >>"$dir/plan.yaml"
	plan -f "$dir/plan.yaml" -n bench
	headline "plan of the loss of a cluster, with 5,000 bindings and 50 clusters"
	"$dir/stub" load -members 50 -from 1000 -n 5000 -dir "$dir/stubs" >/dev/null
	sleep 60 # until the control plane is at rest
	cat >"$dir/taint.yaml" <<-'YAML'
		apiVersion: policy.karmada.io/v1alpha1
		kind: ClusterTaintPolicy
		metadata: {name: lost}
		spec:
		  addOnConditions: [{conditionType: Ready, operator: NotIn, statusValues: ["True"]}]
		  taints: [{key: lost, effect: NoExecute}]
	YAML
	plan -f "$dir/taint.yaml" --lose "$("$ctl" get clusters -o name | head -1 | sed 's#.*/##')" --enable-no-execute-taint-eviction
	kill "$serving"
	"$ctl" local down --purge --dir "$dir" >/dev/null 2>&1
	unset KUBECONFIG
}

headline "why over 20 clusters, without and with one that hangs"
if [[ -e $STUBS/go.mod ]] && (cd "$STUBS" && CGO_ENABLED=0 go build -o "$dir/stub" .); then
	insight
else
	echo "not measured: there is no program of stub members in $STUBS (set STUBS)"
fi

kubectl=$(command -v kubectl || true)
if [[ -z $kubectl ]]; then
	kubectl=$dir/kubectl
	CGO_ENABLED=0 go build -modfile=go.helm.mod -o "$kubectl" k8s.io/kubernetes/cmd/kubectl
fi

# propagate propagates N Deployments in the federation of KUBECONFIG. CPU is that of the roles, the API server, and the members.
propagate() {
	"$PROPBENCH" --kubectl "$kubectl" --karmada "$KUBECONFIG" --karmada-context karmada-apiserver \
		--members "$KUBECONFIG@member1,$KUBECONFIG@member2" -n "$N" --procs 'bin/karmada ,name karmada-apiserver,name member'
}

# pairs compares propagation with what the members alone need for the same Deployments, each in a federation of its own: members that
# hold more are slower.
pairs() {
	local fresh=$dir/fresh what
	for _ in $(seq "$PAIRS"); do
		for what in alone propagated; do
			"$ctl" local up --members 2 --nodes 3 --dir "$fresh" >/dev/null 2>&1
			(
				KUBECONFIG=$("$ctl" local kubeconfig --dir "$fresh")
				export KUBECONFIG
				if [[ $what == propagated ]]; then
					propagate
				else
					PATH=$PATH:$dir "$FLOOR" --members "$KUBECONFIG@member1,$KUBECONFIG@member2" -n "$N"
				fi
			)
			"$ctl" local down --purge --dir "$fresh" >/dev/null 2>&1
		done
	done
}

headline "propagation of $N Deployments to 2 members, and the members alone: $PAIRS pairs"
if [[ -x $PROPBENCH && -x $FLOOR ]]; then
	pairs
else
	echo "not measured: there is no load generator at $PROPBENCH or $FLOOR (set PROPBENCH and FLOOR)"
fi

headline "500 evictions from a dead cluster"
"$ctl" local up --members 2 --node-pods 1000 --dir "$dir" --feature-gates Failover=true \
	--set controller-manager.enable-no-execute-taint-eviction=true --set controller-manager.resource-eviction-rate=10000 >/dev/null 2>&1
pid() { awk -F'[:,]' '{print $2}' "$dir/default/processes/$1.json"; }
go run ./hack/evictions --kubeconfig "$("$ctl" local kubeconfig --dir "$dir")" --pid "$(pid member2)" \
	--cpu "API server=$(pid karmada-apiserver)" --cpu "roles=$(pid karmada)" --cpu "member1=$(pid member1)"
"$ctl" local down --purge --dir "$dir" >/dev/null 2>&1

"$ctl" local up --members 3 --nodes 3 --dir "$dir" >/dev/null 2>&1
KUBECONFIG=$("$ctl" local kubeconfig --dir "$dir")
export KUBECONFIG

headline "a ConfigMap of one namespace until its Work, while another namespace makes 20 and 100 changes a second"
for rate in 20 100; do
	go run ./hack/tenants --kubeconfig "$KUBECONFIG" --rate "$rate"
	"$ctl" wait namespace/tenants-quiet namespace/tenants-flood --for=delete --timeout 5m >/dev/null 2>&1 || true
done

headline "unjoin and join of a reachable cluster, until it is Ready"
"$ctl" unjoin member3 --cluster-kubeconfig "$KUBECONFIG" --cluster-context member3 >/dev/null 2>&1
from=$(date +%s.%N)
"$ctl" join member3 --cluster-kubeconfig "$KUBECONFIG" --cluster-context member3 >/dev/null 2>&1
seconds "$from"
"$ctl" unjoin member3 --cluster-kubeconfig "$KUBECONFIG" --cluster-context member3 >/dev/null 2>&1

headline "50 changes a second to a member: from the template's change to the member's"
go run ./hack/changes --kubeconfig "$KUBECONFIG" --member member1 --namespace changes-push
"$ctl" local up --members 4 --pull 1 --nodes 3 --dir "$dir" >/dev/null 2>&1
go run ./hack/changes --kubeconfig "$KUBECONFIG" --member member4 --namespace changes-pull

headline "the agent's resident memory with $AGENT_WORKS Works"
{
	cat <<-'POLICY'
		apiVersion: policy.karmada.io/v1alpha1
		kind: PropagationPolicy
		metadata: {name: agent, namespace: default}
		spec:
		  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
		  placement: {clusterAffinity: {clusterNames: [member4]}}
	POLICY
	for i in $(seq "$AGENT_WORKS"); do
		cat <<-DEPLOYMENT
			---
			apiVersion: apps/v1
			kind: Deployment
			metadata: {name: a$i, namespace: default}
			spec:
			  selector: {matchLabels: {app: a$i}}
			  template: {metadata: {labels: {app: a$i}}, spec: {containers: [{name: c, image: "nginx:1.27"}]}}
		DEPLOYMENT
	done
} | "$ctl" create -f - >/dev/null
sleep 60
awk '/^VmRSS/ {printf "%.0f MB\n", $2 / 1e3}' "/proc/$(awk -F'[:,]' '{print $2}' "$dir/default/processes/member4-agent.json")/status"
"$ctl" delete deployments --all -n default >/dev/null
"$ctl" delete propagationpolicy agent -n default >/dev/null

if [[ ! -x $PROPBENCH ]]; then
	echo "propagation is not measured: there is no load generator at $PROPBENCH (set PROPBENCH)"
	exit 0
fi

headline "the same with a third member that answers everything with a body without end"
go build -o "$dir/hostile" ./hack/hostile
"$dir/hostile" >"$dir/hostile.yaml" &
hostile=$!
trap 'kill "$hostile" 2>/dev/null || true; "$ctl" local down --purge --dir "$dir" >/dev/null 2>&1 || true; rm -rf "$dir"' EXIT
until grep -q impersonatorSecretRef "$dir/hostile.yaml"; do sleep 0.1; done
"$kubectl" apply -f "$dir/hostile.yaml" >/dev/null
"$kubectl" wait --for=condition=Ready clusters/hostile --timeout=60s >/dev/null
propagate
"$ctl" unjoin hostile --force --wait 30s >/dev/null 2>&1 || true
kill "$hostile"

headline "restart of the roles with $N Deployments unchanged: API writes in the first minute"
"$kubectl" create namespace restart >/dev/null
{
	cat <<-'POLICY'
		apiVersion: policy.karmada.io/v1alpha1
		kind: PropagationPolicy
		metadata: {name: all, namespace: restart}
		spec:
		  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
		  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
	POLICY
	for i in $(seq "$N"); do
		cat <<-DEPLOYMENT
			---
			apiVersion: apps/v1
			kind: Deployment
			metadata: {name: d$i, namespace: restart}
			spec:
			  selector: {matchLabels: {app: d$i}}
			  template: {metadata: {labels: {app: d$i}}, spec: {containers: [{name: c, image: "nginx:1.27"}]}}
		DEPLOYMENT
	done
} | "$kubectl" create -f - >/dev/null
for _ in $(seq 120); do
	ready=$("$kubectl" get deployments -n restart -o jsonpath='{.items[*].status.readyReplicas}' | tr ' ' '\n' | grep -c '^2$' || true)
	[[ $ready == "$N" ]] && break
	sleep 1
done
echo "$ready of $N are ready"
sleep 15
kill "$(awk -F'[:,]' '{print $2}' "$dir/default/processes/karmada.json")"
sleep 3
before=$(writes)
"$ctl" local up --dir "$dir" >/dev/null 2>&1
sleep 60
echo "writes: $(($(writes) - before))"

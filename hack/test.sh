#!/usr/bin/env bash
# Runs every test and reports what ran. Needs Go and nothing else.
#
# Nothing but the race detector needs cgo: without it the programs and the tests share
# every compiled package. The race detector is on for the packages that run goroutines of
# their own: those that import sync or an errgroup, or whose files have a go statement. The
# stages run in lanes beside one another, because those with clusters mostly wait; unit
# tests, which mostly compile, give way to them.
#
# A stage with clusters is skipped when it passed before with the same programs, tests,
# data, environment and toolchain. Never in CI.
#
#   CI=1        run every stage
#   RERUN=1     the same
#   RUN=REGEXP  only stages whose name matches
set -euo pipefail
cd "$(dirname "$0")/.."

started=$SECONDS
root=$PWD
work=$root/_output/test
bin=$work/bin
passed=$root/_output/passed
rm -rf "$work/logs"
mkdir -p "$work/logs" "$work/tests" "$bin" "$passed"
export CGO_ENABLED=0 KARMADA_TEST_BIN_DIR=$bin RELEASE_FLAGS=

# wanted is whether RUN matches one of the names of stages.
wanted() {
	local name
	for name; do
		[[ ! $name =~ ${RUN:-.} ]] || return 0
	done
	return 1
}

# stage runs a command, prints what it printed when it has ended, and records a failure.
stage() {
	local name=$1 log=$work/logs/${1//[^a-zA-Z0-9]/-} from=$SECONDS
	shift
	wanted "$name" || return 0
	echo "--> $name"
	local TIMEFORMAT='%U + %S' cpu
	cpu=$({ time "$@" >"$log" 2>&1 || echo "$name" >>"$work/logs/failed"; } 2>&1)
	{
		flock 9
		echo "==> $name"
		cat "$log"
		echo "==> $name: $((SECONDS - from)) s, CPU $cpu s"
	} 9>"$work/logs/lock"
}

# once is a stage that is skipped when it has passed with the same inputs: the programs, and
# the files and NAME=VALUE settings before "--".
once() {
	local name=$1 inputs=() hash=""
	shift
	while [[ $1 != -- ]]; do
		inputs+=("$1")
		shift
	done
	shift
	wanted "$name" || return 0
	local record=$passed/${name//[^a-zA-Z0-9]/-}
	if [[ -z ${CI:-} ]]; then
		hash=$(fingerprint "${inputs[@]}")
		if [[ -z ${RERUN:-} && -f $record && $(<"$record") == "$hash" ]]; then
			echo "==> $name: SKIPPED, it passed with the same programs, tests, data, environment and toolchain (RERUN=1 runs it)"
			return
		fi
	fi
	rm -f "$record"
	stage "$name" "$@"
	if [[ -n $hash ]] && ! grep -qsxF "$name" "$work/logs/failed"; then
		echo "$hash" >"$record"
	fi
}

# fingerprint hashes what a stage with clusters depends on.
fingerprint() {
	{
		printf '%s\n' "$@"
		go version
		uname -srvm
		env | grep -E '^(E2E_|GO|PATH=)' | sort
		for input in "$@"; do
			[[ ! -f $input ]] || sha256sum "$input"
		done
		sha256sum "$bin"/*
		{
			git ls-files -coz --exclude-standard -- ':!*.md' ':!*.go'
			git ls-files -coz --exclude-standard -- test hack docs/examples
		} | sort -zu | xargs -0 sha256sum
	} 2>/dev/null | sha256sum
}

# integration runs the compiled tests of a package in its directory, as "go test" does, and
# prints what they printed if they fail.
integration() {
	local from=$SECONDS out
	if out=$(cd "$1" && "$work/tests/${1##*/}.test" -test.timeout=60m 2>&1); then
		echo "ok    $1  $((SECONDS - from)) s"
	else
		echo "$out"
		echo "FAIL  $1  $((SECONDS - from)) s"
		return 1
	fi
}

# all_integration runs three packages at a time, which mostly wait.
all_integration() {
	printf '%s\n' "${integration[@]}" | xargs -P 3 -I {} bash -c 'integration {}'
}

# e2e runs the end-to-end tests: the number of members in Pull mode, the directory of logs, flags.
e2e() {
	(cd test/e2e && E2E_PULL=$1 E2E_BIN=$bin E2E_LOGS=$root/_output/$2 "$work/tests/e2e.test" -test.timeout=60m -test.v "${@:3}")
}

# programs builds what the stages need. The programs carry no version: the same sources are the
# same bytes.
programs() {
	if wanted "$push" "$failures" "$agents" "$registration" "$pull"; then
		go build -buildvcs=false -ldflags '-s -w' -o "$bin/" ./cmd/... &&
			go test -c -vet=off -ldflags '-s -w' -o "$work/tests/" ./test/e2e
	else
		go build -buildvcs=false -ldflags '-s -w' -o "$bin/" ./cmd/kubelite
	fi
}

# integration_tests builds those of each package.
integration_tests() {
	go test -c -vet=off -ldflags '-s -w' -tags integration -o "$work/tests/" "${integration[@]}"
}

# The names of stages, and the end-to-end tests that some have to themselves.
push="end to end" failures="end to end, failures" agents="end to end, agents"
registration="end to end, registration" pull="end to end, members in Pull mode"
against="integration, against real API servers"
of_failures='^Test(Crash|Estimator|Failover|HostileMember|Local|Member|Restored)(_.*)?$'
of_agents='^Test(Pull|Register)$'
# What the control plane alone does is the same with members in Pull mode.
same_in_pull='^Test(BadInput|Claims|Completion|Cordon|CustomMetrics|Descheduler|Division|Docs|Estimator|GateWarnings|HostileMember|Next|NoPolicy|Placement|PlanTruth|Quota|Rebalancer|Refused|Samples|Taints|Why)(_.*)?$|^TestFailover_(BadInput|ClusterTaintPolicy|RemedyRequestsActions|UnhealthyApplicationMoves)$'

# concurrent are the directories of packages with a goroutine of their own.
concurrent=$(git grep -lE '^\s+go (func\(|[a-zA-Z_.]+\()|^\s*(_ )?"(sync|sync/atomic|golang.org/x/sync/errgroup)"$' -- '*.go' | xargs -n1 dirname | sort -u)
# Tests that link an API server run without the race detector too, which would compile and
# link it once more. Those of a package that starts one come with the clusters.
unit=() racing=() servers=()
while read -r dir deps; do
	dir=${dir#"$root/"}
	case "$dir" in
	internal/kubelite | internal/kubelite/* | internal/testenv*) servers+=("./$dir") ;;
	test/e2e | test/release) ;;
	*)
		if [[ " $deps" != *" k8s.io/apiserver/pkg/server "* ]] && grep -qxF "$dir" <<<"$concurrent"; then
			racing+=("./$dir")
		else
			unit+=("./$dir")
		fi
		;;
	esac
done < <(go list -test -f '{{if and (eq .Name "main") (not .ForTest)}}{{.ImportPath}} {{.Dir}} {{range .Deps}}{{.}} {{end}}{{end}}' ./... | sed -n 's/^[^ ]*\.test //p')
# The largest come first, which mostly take longest.
mapfile -t integration < <(git grep -l '^//go:build integration' -- '*_test.go' | xargs wc -c |
	awk '$2 != "total" {sub("/[^/]*$", "", $2); size[$2] += $1} END {for (dir in size) print size[dir], "./" dir}' | sort -rn | cut -d' ' -f2)
race=(env CGO_ENABLED=1 go test -vet=off -race -timeout 60m)
if ! command -v gcc >/dev/null; then
	echo "gcc is missing: the race detector is off"
	race=(go test -vet=off -timeout 60m)
fi
export -f integration
export work

RUN='' stage "programs" programs
if [[ -s $work/logs/failed ]]; then
	exit 1
fi

lane_unit() {
	renice -n 10 -p "$BASHPID" >/dev/null
	stage "unit, contract, conformance" go test -vet=off -timeout 60m "${unit[@]}"
	stage "unit, with the race detector" "${race[@]}" "${racing[@]}"
	stage "chart" go test -modfile=go.helm.mod -tags helm ./hack/chart/testdata/render
	stage "kstatus" go test -modfile=go.kstatus.mod -tags kstatus ./pkg/domain/conditions/testdata/kstatus
}

lane_push() {
	once "$push" "$work/tests/e2e.test" -- e2e 0 e2e-logs -test.skip "$of_failures|$of_agents"
	once "$registration" "$work/tests/e2e.test" -- e2e 0 e2e-registration-logs -test.run '^TestRegister$'
	once "$agents" "$work/tests/e2e.test" -- e2e 0 e2e-agent-logs -test.run '^TestPull$'
}

lane_pull() {
	once "$pull" "$work/tests/e2e.test" -- e2e 2 e2e-pull-logs -test.skip "$same_in_pull|$of_agents"
	once "$failures" "$work/tests/e2e.test" -- e2e 0 e2e-failures-logs -test.run "$of_failures"
}

lane_integration() {
	! wanted "$against" || RUN='' stage "integration tests" integration_tests
	once "$against" "$work/tests/"*.test -- all_integration
	once "release" -- go test -vet=off -timeout 60m -count=1 ./test/release
	stage "kubelite" go test -vet=off -timeout 60m "${servers[@]}"
}

lanes=()
trap 'trap - INT TERM; kill -- "${lanes[@]/#/-}" 2>/dev/null; exit 130' INT TERM
set -m
for lane in lane_push lane_pull lane_integration lane_unit; do
	"$lane" &
	lanes+=($!)
done
set +m
for lane in "${lanes[@]}"; do
	wait "$lane" || echo "a lane of stages ended early" >>"$work/logs/failed"
done

# slowest prints the tests of end-to-end stages and the packages of others that took longest.
slowest() {
	grep -hE '^(--- PASS: |ok )' "$work"/logs/* | grep -v '(cached)' |
		sed -E 's/^--- PASS: (.*) \((.*)s\)$/\2 s\t\1/; s/^ok\s+(\S+)\s+([0-9.]+) ?s.*/\2 s\t\1/' | sort -rn | head -20
}

# why prints what the failed tests of a stage printed, and how its output ended.
why() {
	awk '/^=== RUN +[^\/]+$/ {n = 0}
		/^--- FAIL|^FAIL/ {for (i = n > 30 ? n - 30 : 0; i < n; i++) print line[i]; print; n = 0; next}
		!/^=== |^ *--- (PASS|SKIP)|^(ok|---) / {line[n++] = substr($0, 1, 400)}' "$1" | tail -n 60
	echo "  ..."
	tail -n 5 "$1"
}

echo
echo "the slowest:"
slowest || true
echo
if [[ -s $work/logs/failed ]]; then
	while read -r name; do
		echo "==> $name FAILED:"
		why "$work/logs/${name//[^a-zA-Z0-9]/-}" || true
	done <"$work/logs/failed"
	echo
	echo "FAILED after $((SECONDS - started)) s:"
	while read -r name; do
		echo "  $name"
		grep -hE '^ *--- FAIL|^FAIL\s+\S|^panic: ' "$work/logs/${name//[^a-zA-Z0-9]/-}" | cut -c1-200 | head -8 | sed 's/^/    /' || true
	done <"$work/logs/failed"
	exit 1
fi
echo "passed: ${RUN:-everything}, in $((SECONDS - started)) s"

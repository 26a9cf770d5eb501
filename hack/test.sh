#!/usr/bin/env bash
# Runs every test and reports what ran. Needs Go, and Chromium for the test of the dashboard: without it that is skipped,
# and fails in CI.
#
# Nothing but the race detector needs cgo: without it the programs and the tests share
# every compiled package. The race detector is on for the packages that
# test/contract/race.yaml lists. The stages run in lanes beside one another, because those
# with clusters mostly wait; what mostly compiles, such as unit tests, gives way to them.
#
# A stage with clusters is skipped when it passed before with the same programs, tests,
# data, environment and toolchain. Never in CI. One with a module file of its own is skipped
# there too, when hack/passed.sum says that it passed.
#
#   CI=1        run every stage
#   RERUN=1     the same
#   RUN=REGEXP  only stages whose name matches
#   RACE=all    run every unit test with the race detector
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
		printf '%6d s  CPU %7s + %6s s  %s\n' $((SECONDS - from)) ${cpu/+/} "$name" >>"$work/logs/times"
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

# recorded is a stage with a module file of its own, which compiles much for little: the module file, the tag,
# the package and the directories that its tests read. It is skipped, in CI too, when hack/passed.sum has the
# hash of its inputs. A run that passes, but for one in CI, writes that: commit it.
recorded() {
	local name=$1 file=$2 tag=$3 package=$4 hash
	wanted "$name" || return 0
	hash=$({
		go version
		{
			go list -e -deps -test -tags "$tag" -f '{{if and .Module .Module.Main (not .ForTest)}}{{$d := .Dir}}
				{{- range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .TestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}
				{{- range .XTestGoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .EmbedFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}' "$package" 2>/dev/null | sed "s#^$root/##"
			git ls-files "$file" "${file%.mod}.sum" "${@:5}"
		} | grep -v '//\|^$' | sort -u | xargs sha256sum # without the generated main package of the tests
	} | sha256sum | cut -d' ' -f1)
	if [[ -z ${RERUN:-} ]] && grep -qsxF "$name $hash" hack/passed.sum; then
		echo "==> $name: SKIPPED, hack/passed.sum has its inputs (RERUN=1 runs it)"
		return
	fi
	stage "$name" go test -vet=off -modfile="$file" -tags "$tag" "$package"
	if [[ -z ${CI:-} ]] && ! grep -qsxF "$name" "$work/logs/failed"; then
		{
			grep -sv "^$name " hack/passed.sum || true
			echo "$name $hash"
		} >"$work/passed.sum" && mv "$work/passed.sum" hack/passed.sum
	fi
}

# fingerprint hashes what a stage with clusters depends on.
fingerprint() {
	{
		printf '%s\n' "$@"
		go version
		uname -srvm
		command -v chromium chromium-browser google-chrome || true
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
# prints what they printed if they fail. Three tests of a room run at a time.
integration() {
	local from=$SECONDS out
	if out=$(cd "$1" && "$work/tests/${1##*/}.test" -test.timeout=60m -test.parallel=2 2>&1); then
		echo "ok    $1  $((SECONDS - from)) s"
	else
		echo "$out"
		echo "FAIL  $1  $((SECONDS - from)) s"
		return 1
	fi
}

# all_integration runs two packages at a time, which mostly wait.
all_integration() {
	printf '%s\n' "${integration[@]}" | xargs -P 2 -I {} bash -c 'integration {}'
}

# e2e runs the end-to-end tests: the directory of logs, flags.
e2e() {
	(cd test/e2e && E2E_BIN=$bin E2E_LOGS=$root/_output/$1 "$work/tests/e2e.test" -test.timeout=60m -test.v "${@:2}")
}

# programs builds what the stages need. The programs carry no version: the same sources are the
# same bytes.
programs() {
	go build -buildvcs=false -ldflags '-s -w' -o "$bin/" ./cmd/... || return
	if wanted "$stories" "$failures"; then
		go test -c -vet=off -ldflags '-s -w' -o "$work/tests/" ./test/e2e
	fi
}

# integration_tests builds those of each package.
integration_tests() {
	nice -n 10 go test -c -vet=off -ldflags '-s -w' -tags integration -o "$work/tests/" "${integration[@]}"
}

# The names of stages, and the end-to-end tests that one has to itself: they take members,
# agents and the control plane down.
stories="end to end" failures="end to end, failures" against="integration, against real API servers"
of_failures='^Test(Crash|Estimator|Failover|HostileMember|Local|Member|Pull|Restored)(_.*)?$'

# concurrent are the directories of packages that are tested with the race detector.
concurrent=$(sed -n '/^race:/,/^$/s/^  - //p' test/contract/race.yaml)
# Tests that link an API server run without the race detector too, which would compile and
# link it once more. Those of a package that starts one come with the clusters.
unit=() racing=() servers=()
while read -r dir deps; do
	dir=${dir#"$root/"}
	case "$dir" in
	internal/kubelite | internal/kubelite/* | internal/testenv*) servers+=("./$dir") ;;
	test/e2e | test/release) ;;
	*)
		if [[ " $deps" != *" k8s.io/apiserver/pkg/server "* ]] && { [[ ${RACE:-} == all ]] || grep -qxF "$dir" <<<"$concurrent"; }; then
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
	recorded "chart" go.helm.mod helm ./hack/chart/testdata/render charts hack/chart
	recorded "kstatus" go.kstatus.mod kstatus ./pkg/domain/conditions/testdata/kstatus pkg/domain/conditions
}

lane_stories() {
	once "$stories" "$work/tests/e2e.test" -- e2e e2e-logs -test.skip "$of_failures"
}

lane_failures() {
	E2E_SERVICES=true once "$failures" "$work/tests/e2e.test" -- e2e e2e-failures-logs -test.run "$of_failures"
}

lane_integration() {
	! wanted "$against" || RUN='' stage "integration tests" integration_tests
	once "$against" "$work/tests/"*.test -- all_integration
	once "release" -- nice -n 10 go test -vet=off -timeout 60m -count=1 ./test/release
	stage "kubelite" go test -vet=off -timeout 60m "${servers[@]}"
	stage "unit, with the race detector" nice -n 10 "${race[@]}" "${racing[@]}"
}

lanes=()
trap 'trap - INT TERM; kill -- "${lanes[@]/#/-}" 2>/dev/null; exit 130' INT TERM
set -m
for lane in lane_stories lane_failures lane_integration lane_unit; do
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
echo "the stages, which ran beside one another:"
sort -rn "$work/logs/times" || true
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

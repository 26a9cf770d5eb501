#!/usr/bin/env bash
# Checks what changed, in a minute or two: formatting, linters, tests. Lists what it leaves to CI.
#
# A package is changed if one of its files is: Go, what it embeds, what its tests read. Unit tests
# also run in packages that import a changed one directly. After a failed step the others run too.
#
#   BASE=COMMIT  compare with the merge base of HEAD and COMMIT; default HEAD: what is not committed
set -euo pipefail
cd "$(dirname "$0")/.."

started=$SECONDS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0

# step runs a command and prints its time, and what it printed if it fails.
step() {
	local name=$1 what=$2 from=$SECONDS result=ok
	shift 2
	"$@" >"$work/$name" 2>&1 || result=FAILED
	{
		flock 9
		printf '%-12s %-6s %3d s  %s\n' "$name" "$result" $((SECONDS - from)) "$what"
		[[ $result == ok ]] || tee -a "$work/failed" <"$work/$name"
	} 9>"$work/lock"
}

formatted() {
	local unformatted
	unformatted=$(gofmt -l "$@") || return
	[[ -z $unformatted ]] || { printf 'run gofmt -w:\n%s\n' "$unformatted" && return 1; }
}

tidy() { go mod tidy -diff && (cd test/metrics && go mod tidy -diff); }

base=$(git merge-base HEAD "${BASE:-HEAD}")
mapfile -td '' files < <(git diff -z --name-only --no-renames "$base" && git ls-files -oz --exclude-standard)
if ((${#files[@]} == 0)); then
	echo "nothing changed since $(git log -1 --format='%h (%s)' "$base")"
	exit
fi

# The packages, with what they and their unit tests import.
module=$(go list -m)
fields='{{range .Imports}} {{.}}{{end}}{{range .TestImports}} {{.}}{{end}}{{range .XTestImports}} {{.}}{{end}}'
declare -A imports=() exported=() changed=() linted=() tested=() integrated=() rooms=() left=()
while read -r dir list; do
	imports[$dir]="$list "
done < <(go list -e -f "{{if or .GoFiles .TestGoFiles .XTestGoFiles}}{{.ImportPath}}$fields{{end}}" ./... | sed "s#$module/#./#g")

# Tests against API servers are in rooms. Each of their files names the packages that it covers.
for dir in test/integration/*; do imports[./$dir]=" "; done

gofiles=() mod='' kind=''
for file in "${files[@]}"; do
	case $file in
	*.md)
		tested[./pkg/cli]=1 left["commands in documents"]=1
		for dir in $(git grep -lF "/$file" -- '*_test.go' | xargs -r dirname); do tested[./$dir]=1; done
		continue
		;;
	go.mod | go.sum | test/metrics/go.*) mod=1 left["lint and tests of what uses changed modules"]=1 ;;
	.golangci.yml | go.lint.*) left["lint of other packages"]=1 ;;
	pkg/apis/* | hack/generate.sh | hack/proto/* | *.proto) left["generated files: make generate, then make verify"]=1 ;;
	charts/* | hack/chart/* | go.helm.*) left["charts: RUN=chart make test"]=1 ;;
	pkg/domain/conditions/* | go.kstatus.*) left["kstatus: RUN=kstatus make test"]=1 ;;
	test/e2e/*.go)
		left["end-to-end tests"]=1
		grep -qs '^//go:build !kind' "$file" || kind=1 left["end-to-end tests on kind: make e2e-kind"]=1
		;;
	test/release/*) left["release tests: RUN=release make test"]=1 ;;
	esac
	dir=./$file
	dir=${dir%/*}
	# Data belongs to the package above it.
	while [[ ($file != *.go || $dir == */testdata*) && $dir == */* && -z ${imports[$dir]:-} ]]; do
		dir=${dir%/*}
	done
	[[ $dir == . || $file == *_test.go || $file == */testdata/* ]] || exported[$dir]=1
	[[ $file != *.go || ! -f $file ]] || gofiles+=("$file")
	[[ $file != *.go || -z ${imports[$dir]:-} ]] || linted[$dir]=1
	[[ -z ${imports[$dir]:-} ]] || changed[$dir]=1
done

# The contract has its own step; the other two start clusters.
own=(./test/contract ./test/e2e ./test/release)
for dir in "${own[@]}"; do unset "changed[$dir]"; done
for dir in "${!changed[@]}"; do
	if grep -qs '^//go:build integration' "$dir"/*_test.go; then integrated[$dir]=1; else tested[$dir]=1; fi
done
for dir in "${!changed[@]}"; do
	for file in $(git grep -lE "^// Covers (.*, )?${dir#./}(, .*)?\.$" -- 'test/integration/*_test.go'); do
		room=./${file%/*}
		[[ -n ${integrated[$room]:-} ]] || rooms[$room]+=$(sed -n 's/^func \(Test[^(]*\)(.*/|\1/p' "$file" | tr -d '\n')
	done
done
for dir in "${!imports[@]}"; do
	for dependency in ${imports[$dir]}; do
		[[ -z ${exported[$dependency]:-} || -n ${integrated[$dir]:-} ]] || tested[$dir]=1
	done
done
for dir in "${own[@]}"; do unset "tested[$dir]"; done

# against runs tests against API servers: those of rooms that cover what changed, and those of whole packages.
against() {
	local room result=0
	for room in "${!rooms[@]}"; do
		go test -vet=off -tags integration -parallel 3 -run "^(${rooms[$room]:1})\$" "$room" || result=1
	done
	((${#integrated[@]} == 0)) || go test -vet=off -tags integration -parallel 3 "${!integrated[@]}" || result=1
	return $result
}

# They mostly wait: they run beside the rest.
if ((${#integrated[@]} + ${#rooms[@]})); then
	set -m
	step integration "packages: ${#integrated[@]}, with their unit tests${rooms[*]:+; in rooms:${rooms[*]//|/ }}" against &
	lane=$!
	trap 'trap - INT TERM; kill -- "-$lane" 2>/dev/null || true; exit 130' INT TERM
	set +m
fi
lint=(go tool -modfile=go.lint.mod golangci-lint run --allow-parallel-runners)
((${#gofiles[@]} == 0)) || step gofmt "files: ${#gofiles[@]}" formatted "${gofiles[@]}"
[[ -z $mod ]] || step tidy "go.mod, test/metrics/go.mod" tidy
((${#linted[@]} == 0)) || step lint "packages: ${#linted[@]}" "${lint[@]}" "${!linted[@]}"
[[ -z $kind ]] || step lint-kind "test/e2e" "${lint[@]}" --build-tags kind ./test/e2e
step contract "test/contract" go test -vet=off -count=1 ./test/contract
many=''
((${#tested[@]} <= 40)) || many=", because so many import the changed ones"
((${#tested[@]} == 0)) || step unit "packages: ${#tested[@]}$many" go test -vet=off "${!tested[@]}"
wait

((${#changed[@]} == 0)) || left["race detector"]=1
((${#gofiles[@]} == 0)) || left["suppressions of linters: make verify"]=1
if ((${#exported[@]})); then
	left["lint of other packages"]=1 left["unit tests of packages that import the changed ones indirectly"]=1
	left["integration tests of other packages"]=1 left["end-to-end tests"]=1
	[[ -n ${tested[./test/conformance]:-} ]] || left["conformance"]=1
fi
[[ -z ${left[*]:-} ]] || { echo "left to CI:" && printf '  %s\n' "${!left[@]}" | sort; }
if [[ -s $work/failed ]]; then
	echo "FAILED after $((SECONDS - started)) s"
	exit 1
fi
echo "passed in $((SECONDS - started)) s"

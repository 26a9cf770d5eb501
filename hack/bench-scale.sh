#!/usr/bin/env bash
# Prints how a control plane does with many clusters, as a table with a column for each number of them.
#
#   STUBS=DIR             sources of the program whose stub members are joined (default: those beside the checkout)
#   CLUSTERS="10 100 1000"
#   WIDE=20               Deployments for all clusters that change at the same time
#   OUT=DIR               directory for what the measurements print (default: none is kept)
#
# A thousand clusters need about 8 GB of memory, and half an hour on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."

STUBS=${STUBS:-../shared/tools/stubs}
CLUSTERS=${CLUSTERS:-10 100 1000}
WIDE=${WIDE:-20}
ctl=$PWD/bin/karmadactl
dir=$(mktemp -d)
OUT=${OUT:-$dir/out}
mkdir -p "$OUT"
served=
clean() {
	[[ -z $served ]] || kill "$served" 2>/dev/null || true
	"$ctl" local down --purge --dir "$dir/federations" >/dev/null 2>&1 || true
}
trap 'clean; rm -rf "$dir"' EXIT

if [[ ! -e $STUBS/go.mod ]]; then
	echo "there is no program of stub members in $STUBS (set STUBS)" >&2
	exit 1
fi
(cd "$STUBS" && CGO_ENABLED=0 go build -o "$dir/stub" .)

# stub runs a command of the program against the federation that is measured.
stub() { "$dir/stub" "$@" -dir "$dir/stubs"; }
# sample measures while a command runs, or for some seconds.
sample() { "$dir/stub" sample -dir "$dir/stubs" -match "$dir" -metrics "$metrics" "$@"; }
# field prints what follows a text in the line of a process: field FILE PROCESS TEXT.
field() { awk -v p="$2" -v t="$3" '$1 == p {i = index($0, t); split(substr($0, i + length(t)), a, /[^0-9.]+/); print a[1]; exit}' "$1"; }
# cores prints how many cores a process takes.
cores() { sed -nE "s/^ *$2 .*\(([0-9.]+) cores\).*/\1/p" "$1" | head -1; }
# cpu prints the seconds of CPU of API server and roles together.
cpu() { sed -nE 's/^ *(kubelite|karmada) .*cpu ([0-9.]+)s.*/\2/p' "$1" | awk '{n += $1} END {print n}'; }
# writes prints the number of writes, events aside.
writes() { awk '/ETCD (create|update|delete)/ && !/events|leases/ {n += $1} END {print n + 0}' "$1"; }
# ready prints the seconds from the first join until all are Ready.
ready() { awk '$1 == "created" {sub(/s$/, "", $5); t = $5} $3 == "ready" {r = $1 + 0} END {printf "%.1f", t + r}' "$1"; }
quantile() { sed -nE "s/.*arrivals:.* $2 ([0-9]+) ms.*; the patch.*/\1/p" "$1"; }

table=$dir/table
row() { printf '%s\t%s\n' "$1" "$2" >>"$table"; }

measure() {
	local n=$1 out=$OUT/$1
	"$ctl" local up --members 0 --dir "$dir/federations" >"$out.up" 2>&1
	KUBECONFIG=$("$ctl" local kubeconfig --dir "$dir/federations")
	export KUBECONFIG
	metrics=http://127.0.0.1:$(sed -nE 's/.*"metrics": ([0-9]+).*/\1/p' "$dir/federations/default/federation.json")/metrics
	"$dir/stub" serve -members "$n" -dir "$dir/stubs" >"$out.serve" 2>&1 &
	served=$!
	sleep 3

	sample bash -c "'$dir/stub' join -n $n -dir '$dir/stubs' && '$dir/stub' ready -n $n -dir '$dir/stubs'" >"$out.join"
	row "joining, until all are Ready (s)" "$(ready "$out.join")"
	row "CPU of API server and roles for each (ms)" "$(awk -v c="$(cpu "$out.join")" -v n="$n" 'BEGIN {printf "%.0f", c * 1000 / n}')"
	sleep 30
	sample -seconds 60 >"$out.rest"
	row "at rest: cores of the roles" "$(cores "$out.rest" karmada)"
	row "at rest: memory of the roles (MiB)" "$(field "$out.rest" karmada "rss ")"
	row "at rest: memory of the API server (MiB)" "$(field "$out.rest" kubelite "rss ")"
	row "at rest: writes a minute" "$(writes "$out.rest")"
	row "at rest: goroutines for each cluster" "$(awk -v n="$n" '/roles: goroutines/ {printf "%.0f", $3 / n}' "$out.rest")"
	row "at rest: watches / connections for each cluster" "$(awk -v n="$n" '/members: watches/ {printf "%.1f / %.1f", $3 / n, $5 / n}' "$out.rest" | tr -d ,)"

	stub load -members "$n" -n 100 >"$out.load"
	stub done -objects 200 -ready 4 >>"$out.load"
	stub change -n 50 -of 100 -gap 200ms >"$out.change"
	row "change of a Deployment in two clusters, p50 / p99 (ms)" "$(quantile "$out.change" p50) / $(quantile "$out.change" p99)"

	stub dup -name all >/dev/null
	stub done -prefix all -objects $((200 + n)) -ready $((2 * n)) >"$out.all"
	stub change -name all -n 1 -expect "$n" -wait 5m >>"$out.all"
	row "change of a Deployment in all clusters, last arrival (ms)" "$(quantile "$out.all" max)"

	stub dup -name wide -n "$WIDE" >/dev/null
	sample bash -c "'$dir/stub' change -n 50 -of 100 -gap 500ms -wait 9m -dir '$dir/stubs' && '$dir/stub' done -prefix wide -objects $((200 + n + WIDE * n)) -ready $((2 * n)) -dir '$dir/stubs'" >"$out.wide"
	row "change of a Deployment in two clusters behind $WIDE in all, p99 (ms)" "$(quantile "$out.wide" p99)"
	row "memory of the API server at its highest (MiB)" "$(field "$out.wide" kubelite "peak ")"

	"$ctl" local restart karmada --dir "$dir/federations" >"$out.restarting" 2>&1
	sample -seconds 60 >"$out.restart"
	row "writes in the first minute after a restart of the roles" "$(writes "$out.restart")"
	row "CPU of the roles in it (s)" "$(field "$out.restart" karmada "cpu ")"

	clean
	wait "$served" 2>/dev/null || true
	served=
	rm -rf "$dir/stubs" "$dir/federations"
}

columns=()
for n in $CLUSTERS; do
	: >"$table"
	measure "$n"
	mv "$table" "$table.$n"
	columns+=("$n")
done

printf '| clusters |'
printf ' %s |' "${columns[@]}"
printf '\n|---|'
printf -- '---|%.0s' "${columns[@]}"
printf '\n'
cut -f1 "$table.${columns[0]}" | while IFS= read -r name; do
	printf '| %s |' "$name"
	for n in "${columns[@]}"; do
		printf ' %s |' "$(awk -F'\t' -v name="$name" '$1 == name {print $2}' "$table.$n")"
	done
	printf '\n'
done

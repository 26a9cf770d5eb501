#!/usr/bin/env bash
# Audits what the programs are built from: the licenses of all modules, and known
# vulnerabilities in code that is reached. Exits with 1 for a finding, and with 3 when
# nothing was found but the database of vulnerabilities could not be reached.
#
#   GOVULNDB=URL  database of vulnerabilities; default https://vuln.go.dev, file:///DIR for a copy
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
echo "licenses:"
go run ./hack/licenses ./cmd/... || failed=1
# The files of others in the dashboard, by their notice.
awk -F' \\| ' '/^\| `/ {print $2, $3 "  " $4}' pkg/cli/dashboard/assets/vendor/NOTICE.md

echo "vulnerabilities:"
database=${GOVULNDB:-https://vuln.go.dev}
case $database in
file://*) [[ -e ${database#file://}/index/db.json ]] && reached=yes || reached=no ;;
*) curl --silent --fail --location --max-time 20 --output /dev/null "$database/index/db.json" && reached=yes || reached=no ;;
esac
if [[ $reached == no ]]; then
	echo "NOT CHECKED: the database $database cannot be reached; run this where it can, or name a copy with GOVULNDB=file:///DIR" >&2
	((failed)) && exit 1
	exit 3
fi
go tool -modfile=go.audit.mod govulncheck -db "$database" ./cmd/... || failed=1
exit $failed

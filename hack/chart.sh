#!/usr/bin/env bash
# Lints the Helm chart and packages it into _output/ (OUT=DIR), with the version as its own and as the tag of the images.
# Helm is built from go.helm.mod into _output/tools.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$1
out=${OUT:-_output}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]] || version=v0.0.0-$version
helm=_output/tools/helm
CGO_ENABLED=0 go build -modfile=go.helm.mod -o "$helm" helm.sh/helm/v4/cmd/helm
"$helm" lint --strict --quiet charts/karmada
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r charts/karmada "$work/karmada"
# The same commit is the same archive.
sed -i "s/^karmadaImageVersion: .*/karmadaImageVersion: $1/" "$work/karmada/values.yaml"
# The copy of the defaults has it, too.
CGO_ENABLED=0 go run ./hack/chart -out "$work/karmada"
find "$work" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" {} +
mkdir -p "$out"
"$helm" package "$work/karmada" --version "${version#v}" --app-version "$1" --destination "$out"

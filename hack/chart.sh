#!/usr/bin/env bash
# Lints the Helm charts and packages them into _output/ (OUT=DIR), with the version as their own and as the tag of the images.
# Helm is built from go.helm.mod into _output/tools.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$1
out=${OUT:-_output}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+ ]] || version=v0.0.0-$version
helm=_output/tools/helm
CGO_ENABLED=0 go build -modfile=go.helm.mod -o "$helm" helm.sh/helm/v4/cmd/helm
"$helm" lint --strict --quiet charts/karmada charts/karmada-operator
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r charts/karmada charts/karmada-operator "$work/"
# No registry has the images of a commit: whoever brings them sets their version.
images=$1
[[ $1 =~ ^v[0-9]+\.[0-9]+\.[0-9]+ && ! $1 =~ (-[0-9]+-g[0-9a-f]+|-dirty|-master)$ ]] || images='""'
sed -i "s/^karmadaImageVersion: .*/karmadaImageVersion: $images/" "$work/karmada/values.yaml"
sed -i "s/\"karmadaImageVersion\": *\"[^\"]*\"/\"karmadaImageVersion\": \"${images//\"/}\"/" "$work/karmada/defaults.json"
sed -i "s/^karmadaOperatorImageVersion: .*/karmadaOperatorImageVersion: $images/" "$work/karmada-operator/values.yaml"
# The same commit is the same archive.
find "$work" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" {} +
mkdir -p "$out"
"$helm" package "$work/karmada" "$work/karmada-operator" --version "${version#v}" --app-version "$1" --destination "$out"

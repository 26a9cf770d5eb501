#!/usr/bin/env bash
# Builds the files of a release into dist/: an archive of each program for each
# platform, bills of materials, checksums, and the manifest for krew.
# `make release` sets VERSION and LDFLAGS.
#
#   VERSION=v1.2.3              version of the release; default the tag of the commit
#   PLATFORMS="linux/amd64 …"   platforms; default all
#   URL=https://…               where the files will be downloaded from
#   OUT=dist                    directory of the release, which is emptied
#   WORK=_output/release        directory of the programs, which is emptied
#   SIGNING_KEY=FILE            private key that signs the checksums; see docs/release.md
#   RELEASE_FLAGS="…"           flags of "go build"; by default -trimpath, for the same bytes on every machine, and no
#                               inlining: the programs are a tenth smaller, and no slower where they wait for servers
set -euo pipefail
cd "$(dirname "$0")/.."

version=${VERSION:-$(git describe --tags --exact-match)}
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}
url=${URL:-https://github.com/karmada-toolkit/karmada/releases/download/$version}
out=${OUT:-dist}
work=${WORK:-_output/release}
read -ra flags <<<"${RELEASE_FLAGS--trimpath -gcflags=all=-l}"

rm -rf "$work" "$out"
for platform in $platforms; do
	os=${platform%/*} arch=${platform#*/}
	from=$SECONDS
	mkdir -p "$work/$os-$arch"
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build "${flags[@]}" -ldflags "${LDFLAGS:--s -w}" \
		-o "$work/$os-$arch/" ./cmd/karmadactl ./cmd/kubectl-karmada
	echo "$os/$arch: $((SECONDS - from)) s"
done
OUT=$work/chart hack/chart.sh "$version"
go run ./hack/release -programs "$work" -out "$out" -version "$version" -url "$url" \
	-chart "$work/chart/karmada-${version#v}.tgz" -key "${SIGNING_KEY:-}" -created "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}"
if [[ -z "${SIGNING_KEY:-}" ]]; then
	echo "the checksums are NOT SIGNED: set SIGNING_KEY for a release that others get; see docs/release.md" >&2
fi
(cd "$out" && stat -c '%s %n' ./*) | awk '{printf "%8.1f MB  %s\n", $1 / 1e6, substr($2, 3)}'

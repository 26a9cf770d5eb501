#!/usr/bin/env bash
# Builds the image of the control plane FROM scratch: as an archive, and into
# docker if an engine answers.
#
#   IMAGE=karmada/karmada:TAG   name of the image
#   OUT=_output/karmada.tar     the archive
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(git describe --tags --dirty --always 2>/dev/null || echo v0.0.0-master)
commit=$(git rev-parse HEAD 2>/dev/null || true)
image=${IMAGE:-karmada/karmada:$version}
out=${OUT:-_output/karmada.tar}
package=github.com/karmada-toolkit/karmada/internal/version

mkdir -p _output/image
CGO_ENABLED=0 GOOS=linux go build -trimpath \
	-ldflags "-s -w -X $package.gitVersion=$version -X $package.gitCommit=$commit" \
	-o _output/image/karmada ./cmd/karmada
go run ./hack/image -program _output/image/karmada -out "$out" -tag "$image" -version "$version" -commit "$commit"

if command -v docker >/dev/null && docker info >/dev/null 2>&1; then
	docker load -i "$out"
else
	echo "no docker engine answers: load the archive with \"docker load -i $out\" or \"kind load image-archive $out\""
fi

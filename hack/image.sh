#!/usr/bin/env bash
# Builds the image of the control plane FROM scratch: as an archive, and into
# docker if an engine answers. `make image` sets VERSION, COMMIT and LDFLAGS.
#
#   REPOSITORY=karmada/karmada  name of the image without its tag, which is the version
#   OUT=_output/karmada.tar     the archive
#   GOARCH=arm64                architecture of the image; default that of this machine
set -euo pipefail
cd "$(dirname "$0")/.."

version=${VERSION:-$(git describe --tags --dirty --always 2>/dev/null || echo v0.0.0-master)}
commit=${COMMIT:-$(git rev-parse HEAD 2>/dev/null || true)}
out=${OUT:-_output/karmada.tar}
arch=${GOARCH:-$(go env GOARCH)}

mkdir -p _output/image
CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -ldflags "${LDFLAGS:--s -w}" -o _output/image/karmada ./cmd/karmada
env -u GOARCH go run ./hack/image -program _output/image/karmada -out "$out" -arch "$arch" \
	-repository "${REPOSITORY:-karmada/karmada}" -version "$version" -commit "$commit" \
	-created "${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}"

if command -v docker >/dev/null && docker info >/dev/null 2>&1; then
	docker load -i "$out"
else
	echo "no docker engine answers: load the archive with \"docker load -i $out\" or \"kind load image-archive $out\""
fi

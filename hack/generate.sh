#!/usr/bin/env bash
# Regenerates deepcopy functions, CRDs, OpenAPI definitions, clients and the chart, and writes the
# hash of all that they are made from and of what is made, except the chart, to hack/generate.sum.
#
#   --changed    the chart, and the others only if their hash is not that of hack/generate.sum
set -euo pipefail
cd "$(dirname "$0")/.."

digest() {
	git ls-files -co --exclude-standard -- go.mod go.tools.mod go.tools.sum hack/generate.sh hack/proto \
		pkg/apis pkg/generated pkg/controlplane/estimator/pb ':!*_test.go' |
		while read -r file; do [[ ! -f $file ]] || echo "$file"; done | sort -u | xargs sha256sum | sha256sum | cut -d' ' -f1
}

chart() {
	echo "chart"
	go run ./hack/chart
}

if [[ ${1:-} == --changed && $(digest) == "$(<hack/generate.sum)" ]]; then
	echo "what is made from pkg/apis is that of hack/generate.sum"
	chart
	exit
fi

module=github.com/karmada-toolkit/karmada
tool() { go tool -modfile=go.tools.mod "$@"; }

mapfile -t apis < <(find pkg/apis -name doc.go -printf './%h\n' | sort)
crd_apis=()
for api in "${apis[@]}"; do
	case "$api" in
	*/cluster/* | */search/*) ;; # served by the aggregated API server
	*/operator/*) ;;             # served by host clusters
	*) crd_apis+=("$api") ;;
	esac
done

echo "deepcopy"
tool deepcopy-gen --output-file zz_generated.deepcopy.go --go-header-file /dev/null "${apis[@]}"

echo "crds"
rm -f pkg/apis/crds/bases/*.yaml
tool controller-gen crd "paths=$(IFS=';'; echo "${crd_apis[*]}")" output:crd:dir=pkg/apis/crds/bases
tool controller-gen crd:maxDescLen=0,generateEmbeddedObjectMeta=true paths=./pkg/apis/operator/... output:crd:dir=charts/karmada-operator/files

echo "openapi"
mkdir -p pkg/generated/openapi
tool openapi-gen \
	--output-dir pkg/generated/openapi --output-pkg "$module/pkg/generated/openapi" \
	--output-file zz_generated.openapi.go --go-header-file /dev/null \
	--output-model-name-file zz_generated.model_name.go \
	--report-filename /dev/null \
	./pkg/apis/cluster/v1alpha1 ./pkg/apis/search/v1alpha1 ./pkg/apis/policy/v1alpha1 \
	k8s.io/apimachinery/pkg/api/resource \
	k8s.io/apimachinery/pkg/apis/meta/v1 \
	k8s.io/apimachinery/pkg/runtime \
	k8s.io/apimachinery/pkg/version \
	k8s.io/api/core/v1 \
	k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 \
	k8s.io/metrics/pkg/apis/metrics/v1beta1 \
	k8s.io/metrics/pkg/apis/custom_metrics/v1beta1 \
	k8s.io/metrics/pkg/apis/custom_metrics/v1beta2 \
	k8s.io/metrics/pkg/apis/external_metrics/v1beta1

echo "clients"
inputs=$(printf '%s\n' "${apis[@]}" | sed 's#^\./pkg/apis/##' | paste -sd, -)
rm -rf pkg/generated/clientset pkg/generated/listers pkg/generated/informers
tool client-gen --go-header-file /dev/null --clientset-name versioned \
	--input-base "$module/pkg/apis" --input "$inputs" \
	--output-dir pkg/generated/clientset --output-pkg "$module/pkg/generated/clientset" \
	--plural-exceptions "Remedy:Remedies" --fake-clientset=false
tool lister-gen --go-header-file /dev/null \
	--output-dir pkg/generated/listers --output-pkg "$module/pkg/generated/listers" \
	"${apis[@]}"
tool informer-gen --go-header-file /dev/null \
	--versioned-clientset-package "$module/pkg/generated/clientset/versioned" \
	--listers-package "$module/pkg/generated/listers" \
	--output-dir pkg/generated/informers --output-pkg "$module/pkg/generated/informers" \
	"${apis[@]}"

echo "estimator messages"
go run -modfile=go.tools.mod hack/proto/main.go pkg/controlplane/estimator/pb messages.proto service.proto

chart
digest >hack/generate.sum

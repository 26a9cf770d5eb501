# Targets are documented by the text after "##"; `make help` prints them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

MODULE  := github.com/karmada-toolkit/karmada
BIN     := bin
VERSION ?= $(shell git describe --tags --dirty --always 2>/dev/null || echo v0.0.0-master)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || true)
STATE   ?= $(shell test -z "$$(git status --porcelain 2>/dev/null)" && echo clean || echo dirty)
# That of the commit: the same sources are the same bytes, and nothing is linked again when nothing changed.
DATE    ?= $(shell TZ=UTC0 git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || date -u +%Y-%m-%dT%H:%M:%SZ)
KUBE    := $(shell awk '$$1 == "k8s.io/kubernetes" {print $$2}' go.mod)
LDFLAGS := -s -w \
	-X $(MODULE)/internal/version.gitVersion=$(VERSION) \
	-X $(MODULE)/internal/version.gitCommit=$(COMMIT) \
	-X $(MODULE)/internal/version.gitTreeState=$(STATE) \
	-X $(MODULE)/internal/version.buildDate=$(DATE) \
	-X k8s.io/component-base/version.gitVersion=$(KUBE)
# What compiles is counted on stderr; a build with nothing to compile prints the names of the programs only.
GOBUILD := hack/build.sh -ldflags '$(LDFLAGS)'
TOOL    := go tool -modfile=go.tools.mod
LINT    := go tool -modfile=go.lint.mod golangci-lint
# Nothing needs cgo but the race detector, and without it all targets share compiled packages.
export CGO_ENABLED := 0
# Clones and worktrees share what they compile, and results of tests.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: cli
cli: ## Build karmadactl and kubectl-karmada into bin/
	@$(GOBUILD) -o $(BIN)/ ./cmd/karmadactl ./cmd/kubectl-karmada

.PHONY: build
build: ## Build karmadactl, kubectl-karmada, karmada and kubelite into bin/
	@$(GOBUILD) -o $(BIN)/ ./cmd/karmadactl ./cmd/kubectl-karmada ./cmd/karmada ./cmd/kubelite

.PHONY: demo
demo: build ## Start a federation of two members, propagate nginx, show it, leave it running
	hack/demo.sh

.PHONY: check
check: ## Check what changed, before a commit: formatting, linters, tests; BASE=COMMIT also what is committed since
	hack/check.sh

.PHONY: test
test: ## Run every test: unit, contract, conformance, integration, end-to-end; no Docker; RERUN=1 also what passed unchanged; RACE=all with the race detector
	hack/test.sh

.PHONY: e2e-kind
e2e-kind: cli image ## Run the end-to-end tests of CI on kind clusters; ALL=1 runs all; KIND_NODE_IMAGE takes another image of the nodes
	@$(GOBUILD) -o $(BIN)/ ./cmd/karmada
	hack/e2e-kind.sh

.PHONY: conformance
conformance: ## Replay the recorded cases; DATA=DIR takes another directory of them
	CONFORMANCE_DATA='$(abspath $(DATA))' go test -count=1 -v ./test/conformance | grep -v '^=== RUN'

.PHONY: lint
lint: ## Run the linters
	$(LINT) run ./...
	$(LINT) run --build-tags kind ./test/e2e

.PHONY: audit
audit: ## Check what the programs are built from: known vulnerabilities and licenses
	hack/audit.sh

.PHONY: fuzz
fuzz: ## Run every fuzz target for a minute; FUZZTIME=10s changes that, RUN=REGEXP chooses
	hack/fuzz.sh

.PHONY: faults
faults: ## Run longer random histories of faults against the invariants; FAULTS=N takes N times the usual, SEED=N one history
	FAULTS=$${FAULTS:-20} go test -count=1 -timeout=60m -tags integration ./test/history
	FAULTS=$${FAULTS:-20} go test -count=1 -timeout=60m -run History ./pkg/controlplane/controllers/federatedquota

.PHONY: generate
generate: ## Regenerate deepcopy functions, CRDs, OpenAPI definitions and clients
	hack/generate.sh

.PHONY: verify
verify: ## Check generated files, formatting, module files
	hack/verify.sh

.PHONY: bench
bench: build ## Measure: decisions, propagation, start-up; prints the figures
	hack/bench.sh

.PHONY: plan-truth
plan-truth: build ## Make N random changes (default 500), one after the other, and compare what plan printed with what happens; SEED=M for others
	cd test/e2e && PLAN_TRUTH=$(or $(N),500) PLAN_TRUTH_SEED=$(or $(SEED),1) E2E_MEMBERS=3 E2E_NAME=truth E2E_BIN=$(abspath $(BIN)) go test -count=1 -tags e2e -timeout 6h -v -run '^TestPlanTruth$$' .

.PHONY: bench-scale
bench-scale: build ## Measure with 10, 100 and 1,000 clusters; STUBS=DIR has the sources of the stub members
	hack/bench-scale.sh

.PHONY: chart
chart: ## Lint the Helm chart and package it into _output/; VERSION=v1.2.3 is also the tag of the images
	hack/chart.sh "$(VERSION)"

.PHONY: image
image: ## Build the image of the control plane, as an archive in _output/ and for docker if it answers
	VERSION='$(VERSION)' COMMIT='$(COMMIT)' LDFLAGS='$(LDFLAGS)' hack/image.sh

.PHONY: release
release: ## Build the archives of a release for every platform into dist/; VERSION=v1.2.3 SIGNING_KEY=FILE
	VERSION='$(VERSION)' LDFLAGS='$(LDFLAGS)' hack/release.sh

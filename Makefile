# SPDX-License-Identifier: Apache-2.0
#
# `make` lists what there is to make. ARGS reaches muster and the benchmark: make up ARGS="--nodes 5"

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
export GOWORK := off
# Ordinary users' PATH on Debian lacks sbin, where programs are that tests run.
export PATH := $(PATH):/usr/sbin:/sbin

# What the build compiled serves lint and stories too, as long as they ask for it in the same way.
AS_BUILT := env CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false -gcflags=all=-dwarf=false'
# A process with the race detector would sleep for a second before it ends.
RACE := env CGO_ENABLED=1 GOFLAGS=-gcflags=all=-dwarf=false GORACE=atexit_sleep_ms=50

ARGS ?=
GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.9.0
GOLANGCI_LINT := $(CURDIR)/.tools/bin/golangci-lint-$(GOLANGCI_LINT_VERSION)

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build all programs and images into bin/ (what is up to date is left alone)
	@tools/build.sh

.PHONY: addons
addons: ## build what add-ons need that few clusters have, into bin/addons: Traefik, the snapshot-controller (minutes, once)
	@tools/build.sh addons

.PHONY: up
up: build ## run a cluster on this machine and wait until its nodes are Ready
	@bin/muster up $(ARGS)

.PHONY: down
down: ## stop it; ARGS=--delete removes all of it
	@if [[ -x bin/muster ]]; then bin/muster down $(ARGS); else echo 'nothing is built here, so nothing runs from here' >&2; fi

STORIES := ^muster.dev/muster/test(/|$$)
# Packages for which the race detector would be work for nothing: the pure ones (ARCHITECTURE.md lists them), which start no goroutine, and
# what links EC2's client, which takes more than a minute to compile with it.
PURE := $(shell awk '/^    internal\//{wing=substr($$1,10)} /^      pure /{print wing $$2}' ARCHITECTURE.md | paste -sd '|')
PLAIN := ^muster.dev/muster($$|/(api|cmd|deploy)(/|$$)|/internal/(certificates/certificatecontroller|certificates/facts/ec2instances|$(PURE))$$)

# Three stories hold up to 180 inotify instances. A host that has not been told otherwise allows 128, and runs two at a time.
STORIES_AT_ONCE = $(shell [[ $$(cat /proc/sys/fs/inotify/max_user_instances 2>/dev/null || echo 0) -ge 256 ]] && echo 3 || echo 2)

# Lint vets; doing it again here would cost minutes on a cold cache.
# Stories mostly wait: the race detector's packages are compiled meanwhile, by whatever processor is idle; nothing but that runs beside
# stories, which are about time. Some run at the same time, but for those that measure. None is taken from the cache: they are about real
# processes on this machine.
.PHONY: test
test: build ## unit tests with the race detector, stories on real components
	@tools/testneeds.sh
	@$(AS_BUILT) go build -o .build/testcount ./tools/testcount
	@plain=$$(go list ./... | grep -E '$(PLAIN)'); race=$$(go list ./... | grep -Ev '$(STORIES)|$(PLAIN)'); \
	.build/testcount -log .build/logs/test.log -ahead .build/logs/ahead.log \
		-- $(RACE) tools/yield.sh go list -export -race -test -deps $$race \
		-- $(AS_BUILT) go test -json -vet=off -count=1 -p=1 -parallel=$(STORIES_AT_ONCE) -timeout=60m ./test/... \
		-- $(AS_BUILT) go test -json -vet=off $$plain \
		-- $(RACE) go test -json -vet=off -race $$race \
		-- $(RACE) go -C images test -json -vet=off -race ./archive ./workload \
		-- $(RACE) go -C pkcs11 test -json -vet=off -race ./... \
		-- $(RACE) go -C egress test -json -vet=off -race ./... \
		-- $(AS_BUILT) go -C egress test -json -vet=off -run TestRightsAreGivenUp ./... \
		-- $(AS_BUILT) go -C deploy/render test -json -vet=off ./... \
		-- $(AS_BUILT) go -C test/bench/iam test -json -vet=off ./... \
		-- $(AS_BUILT) go -C test/awssdk test -json -vet=off ./... \
		-- $(AS_BUILT) go -C test/csi test -json -vet=off ./...

.PHONY: soak
soak: build addons ## the stories that take too long for every change: a rotation of kubelets' authority, rounds of certificates, a request that nobody signs, image, manifests and charts as pods, two clusters by one run of Terraform, the service killed a hundred times while clusters come and go, and two hundred times between a request and its effect, volumes through a hundred kills, Ingress and Gateway by Traefik, snapshots of volumes, and the key of service account tokens replaced for ten minutes under load (112 minutes)
	@$(AS_BUILT) go test -tags soak -vet=off -count=1 -v -timeout=145m -run "TestRotationOfKubeletsAuthority|TestRoundsOfRotation|TestARequestThatNobodySigns|TestInstalledAsPods|TestTerraformTwoClusters|TestKilledWhileClustersComeAndGo|TestKilledBetweenRequestAndEffect|TestVolumes|TestVolumeSnapshots|TestIngress|TestIssuerKeyRotation" ./test/stories

# FOCUS and SKIP are regular expressions, so they go by the environment and not through a shell.
.PHONY: conformance
conformance: export FOCUS ?=
conformance: export SKIP ?=
conformance: build ## upstream's e2e suite on a cluster of its own: all of [Conformance] (about 50 minutes), or what FOCUS and SKIP choose of it
	@tools/conformance.sh -focus "$$FOCUS" -skip "$$SKIP" $(ARGS)

.PHONY: conformance-more
conformance-more: export FOCUS ?=
conformance-more: export SKIP ?=
conformance-more: build ## the rest of upstream's e2e suite without what is slow, serial, disruptive, flaky or of a feature, or what FOCUS and SKIP choose of it
	@tools/conformance.sh -rest -focus "$$FOCUS" -skip "$$SKIP" $(ARGS)

FUZZTIME ?= 10s

.PHONY: fuzz
fuzz: ## fuzz each target in turn for FUZZTIME=10s; what is found stays in testdata/fuzz as a test
	@tools/fuzz.sh $(FUZZTIME)

.PHONY: lint
lint: $(GOLANGCI_LINT) ## vet and golangci-lint (fetched into .tools/ once)
	@$(AS_BUILT) $(GOLANGCI_LINT) run ./...
	@cd images && $(AS_BUILT) $(GOLANGCI_LINT) run --config ../.golangci.yml ./...
	@cd pkcs11 && $(AS_BUILT) CGO_ENABLED=1 $(GOLANGCI_LINT) run --config ../.golangci.yml ./...
	@cd egress && $(AS_BUILT) $(GOLANGCI_LINT) run --config ../.golangci.yml ./...
	@cd deploy/render && $(AS_BUILT) $(GOLANGCI_LINT) run --config ../../.golangci.yml ./...
	@cd test/bench/iam && $(AS_BUILT) $(GOLANGCI_LINT) run --config ../../../.golangci.yml ./...
	@cd test/awssdk && $(AS_BUILT) $(GOLANGCI_LINT) run --config ../../.golangci.yml ./...
	@cd test/csi && $(AS_BUILT) $(GOLANGCI_LINT) run --config ../../.golangci.yml ./...

$(GOLANGCI_LINT):
	@echo 'building golangci-lint $(GOLANGCI_LINT_VERSION)' >&2
	@mkdir -p $(@D)
	@GOBIN=$(@D)/new $(AS_BUILT) go install -ldflags='-s -w' github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv $(@D)/new/golangci-lint $@ && rmdir $(@D)/new

.PHONY: vuln
vuln: ## look up known vulnerabilities of all modules (needs a way to Go's vulnerability database)
	@for module in . ./kubernetes ./etcd ./runtime/containerd ./runtime/runc ./runtime/cni ./images ./images/metricsserver ./images/snapshotcontroller ./images/traefik ./pkcs11 ./egress ./deploy/render ./test/bench/iam ./test/awssdk ./test/csi ./test/conformance; do \
		echo "$$module" >&2; go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) -C "$$module" ./...; done

.PHONY: bench
bench: build ## measure: time to Ready nodes, memory, joins per second
	@go run ./test/bench $(ARGS)

.PHONY: image
image: build ## pack muster as a container image, dist/muster-VERSION.tar (an OCI archive)
	@tools/image.sh

.PHONY: manifests
manifests: ## rewrite deploy/manifests and the chart's files from their sources
	@$(AS_BUILT) go -C deploy/render run . -deploy ..

.PHONY: generate
generate: ## rewrite generated code, CRDs and the tables of the AWS APIs
	@$(AS_BUILT) go generate ./api/...
	@$(AS_BUILT) go -C test/awssdk run ./tables

.PHONY: clean
clean: ## remove what was built (not the state of a cluster, nor Go's own cache)
	@rm -rf bin .build dist

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
WITH_RACE := env CGO_ENABLED=1 GOFLAGS=-gcflags=all=-dwarf=false GORACE=atexit_sleep_ms=50

ARGS ?=
GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.9.0
GOLANGCI_LINT := $(CURDIR)/.tools/bin/golangci-lint-$(GOLANGCI_LINT_VERSION)
CONTROLLER_GEN_VERSION := v0.21.0
export CONTROLLER_GEN := $(CURDIR)/.tools/bin/controller-gen-$(CONTROLLER_GEN_VERSION)

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build all programs and images into bin/ (what is up to date is left alone)
	@tools/build.sh

.PHONY: addons
addons: ## build what add-ons need that few clusters have, into bin/addons: Traefik, the snapshot-controller (minutes, once)
	@tools/build.sh addons

.PHONY: karpenter
karpenter: ## build Karpenter for its add-on and for control planes, into bin/addons, with a newer Go that it fetches itself (minutes and GiB of Go's caches, once)
	@tools/build.sh karpenter

.PHONY: logs
logs: ## build what keeps and searches the logs of control planes, VictoriaLogs (about a minute, once)
	@tools/build.sh logs

.PHONY: eksctl
eksctl: ## build eksctl, unmodified, into bin/ from a checkout of its public repository: DIR=DIRECTORY (about 5 minutes and 3 GiB of Go's caches, once)
	@tools/eksctl.sh "$(DIR)"

.PHONY: cluster-api
cluster-api: ## build Cluster API, its AWS provider, clusterctl and clusterawsadm, unmodified, into bin/cluster-api (minutes and GiB of Go's caches, once)
	@tools/build.sh cluster-api

.PHONY: kubernetes
kubernetes: ## build another minor of Kubernetes than the default, into bin/MINOR: MINOR=1.37 (minutes, once)
	@tools/build.sh kubernetes "$(MINOR)"

.PHONY: postgresql
postgresql: ## install PostgreSQL from the system's packages, for the story that copies a database
	@tools/testneeds.sh postgresql

.PHONY: up
up: ## build what nodes need, run a cluster on this machine, wait until its nodes are Ready, and build the rest
	@tools/build.sh node
	@bin/muster up $(ARGS)
	@tools/build.sh rest

.PHONY: down
down: ## stop it; ARGS=--delete removes all of it
	@if [[ -x bin/muster ]]; then bin/muster down $(ARGS); else echo 'nothing is built here, so nothing runs from here' >&2; fi

# Packages of the stories and of what they stand on, which run real components.
REAL := ^muster.dev/muster/test(/|$$)
# Packages for which the race detector would be work for nothing: the pure ones (ARCHITECTURE.md lists them), which start no goroutine, and
# what links EC2's client, which takes more than a minute to compile with it.
PURE := $(shell awk '/^    internal\//{wing=substr($$1,10)} /^      pure /{print wing $$2}' ARCHITECTURE.md | paste -sd '|')
PLAIN := ^muster.dev/muster($$|/(api|cmd|deploy|tools)(/|$$)|/internal/(certificates/certificatecontroller|certificates/facts/ec2instances|$(PURE))$$)

# RACE=1 has the race detector in the unit tests of packages that have goroutines, which compiles these once more. `.ci/run` asks for it.
RACE ?=
ifeq ($(RACE),1)
RACED := $(WITH_RACE) go
RACE_FLAG := -race
else
RACED := $(AS_BUILT) go
RACE_FLAG :=
endif
# BESIDE is a process group that stands still while a story runs alone.
BESIDE ?= 0

# Lint vets; doing it again here would cost minutes on a cold cache. No story is taken from Go's cache: stories are about real processes on this
# machine. The promises come first, and alone, before anything compiles.
.PHONY: test
test: build .build/testcount .build/stories ## unit tests, and the core stories on real components (RACE=1: unit tests with the race detector)
	@tools/testneeds.sh
	@all=$$(go list ./...); \
	real=$$(grep -E '$(REAL)' <<<"$$all" | grep -v '/stories$$'); plain=$$(grep -E '$(PLAIN)' <<<"$$all"); race=$$(grep -Ev '$(REAL)|$(PLAIN)' <<<"$$all"); \
	.build/testcount -log .build/logs/test.log \
		-- $(AS_BUILT) .build/stories -core -beside $(BESIDE) \
		-- $(AS_BUILT) go test -json -vet=off -count=1 -p=1 $$real \
		-- $(AS_BUILT) go test -json -vet=off $$plain \
		-- $(RACED) test -json -vet=off $(RACE_FLAG) $$race \
		-- $(RACED) -C images test -json -vet=off $(RACE_FLAG) ./archive ./workload \
		-- $(WITH_RACE) go -C pkcs11 test -json -vet=off $(RACE_FLAG) ./... \
		-- $(RACED) -C egress test -json -vet=off $(RACE_FLAG) ./... \
		-- $(RACED) -C mcp test -json -vet=off $(RACE_FLAG) ./... \
		$(if $(RACE_FLAG),-- $(AS_BUILT) go -C egress test -json -vet=off -run TestRightsAreGivenUp ./...) \
		-- $(AS_BUILT) go -C runtime/containerd test -json -vet=off ./shim \
		-- $(AS_BUILT) go -C deploy/render test -json -vet=off ./... \
		-- $(AS_BUILT) go -C test/bench/iam test -json -vet=off ./... \
		-- $(AS_BUILT) go -C test/awssdk test -json -vet=off ./... \
		-- $(AS_BUILT) go -C test/csi test -json -vet=off ./...

.PHONY: .build/testcount .build/stories
.build/testcount .build/stories: .build/%:
	@$(AS_BUILT) go build -o $@ ./tools/$*

.PHONY: stories
stories: build .build/testcount .build/stories ## every story but those of `make soak`; rewrites their times in test/stories/times.txt
	@tools/testneeds.sh
	@.build/testcount -log .build/logs/stories.log -- $(AS_BUILT) .build/stories -all
	@$(AS_BUILT) go run ./tools/causetable .build/logs/stories.log

.PHONY: causes
causes: ## each cause of docs/causes.md: whether it is named, after how many seconds and from where, by the log of `make stories` (LOG= for another)
	@$(AS_BUILT) go run ./tools/causetable $(or $(LOG),.build/logs/stories.log)

.PHONY: headlamp-plugin
headlamp-plugin: ## check, test and build the plugin for Headlamp, into .build/headlamp; needs Node.js and fetches the npm packages of its lock file (minutes, once)
	@tools/headlamp-plugin.sh

.PHONY: console-test
console-test: ## the pages of muster console in a real Chromium, which it installs if need be: hostile texts, a thousand machines, barriers by axe-core; pictures in .build/console
	@$(AS_BUILT) tools/console-test.sh $(ARGS)

.PHONY: soak
soak: build ## the stories that take too long for every change: a rotation of kubelets' authority, rounds of certificates, a request that nobody signs, image, manifests and charts as pods, two clusters by one run of Terraform, the service killed a hundred times while clusters come and go, and two hundred times between a request and its effect, volumes through a hundred kills, the key of service account tokens replaced for ten minutes under load, an upgrade of Muster under a PostgreSQL, killed again and again, a plane of which each process is killed at each step of a change, 5,000 nodes that are held for ten minutes, an update of three hundred simulated machines with pods, a pod that waits ten minutes for what the host has not, and 20 busy healthy machines whose monitors have nothing to say (215 minutes; BUSY=1440 listens to those for a day, with SOAK_TIMEOUT=30h)
	@tools/build.sh kubernetes 1.37
	@tools/build.sh karpenter
	@$(AS_BUILT) go test -tags soak -vet=off -count=1 -v -timeout=$(or $(SOAK_TIMEOUT),270m) -run "TestRotationOfKubeletsAuthority|TestRoundsOfRotation|TestARequestThatNobodySigns|TestInstalledAsPods|TestTerraformTwoClusters|TestKilledWhileClustersComeAndGo|TestKilledBetweenRequestAndEffect|TestVolumes|TestIssuerKeyRotation|TestUpgradedWithADatabase|TestPlaneKilledAtEachStep|TestManyNodesHeld|TestBusyHealthyMachines|TestUpdateOfThreeHundred|TestNoRoomForTenMinutes" ./test/stories $(if $(BUSY),-busyminutes $(BUSY))

.PHONY: terraform-modules
terraform-modules: build ## examples of terraform-aws-modules' eks, vpc and kms, made, changed and destroyed: MODULES=DIR has a checkout of each (PLUGINS=DIR, a mirror of providers)
	@MUSTER_TERRAFORM_MODULES="$(MODULES)" MUSTER_TERRAFORM_PLUGINS="$(PLUGINS)" \
		$(AS_BUILT) go test -tags soak -vet=off -count=1 -v -timeout=60m -run TestTerraformModules ./test/stories

.PHONY: conformance
conformance: export FOCUS ?=
conformance: export SKIP ?=
conformance: export MINOR ?=
conformance: build ## upstream's e2e suite on a cluster of its own: all of [Conformance] (about 50 minutes), or what FOCUS and SKIP choose of it; MINOR=1.37: of another minor than the default
	@[[ -z $$MINOR ]] || tools/build.sh kubernetes "$$MINOR"
	@tools/conformance.sh -focus "$$FOCUS" -skip "$$SKIP" $(ARGS)

.PHONY: conformance-more
conformance-more: export FOCUS ?=
conformance-more: export SKIP ?=
conformance-more: export MINOR ?=
conformance-more: build ## the rest of upstream's e2e suite without what is slow, serial, disruptive, flaky or of a feature, or what FOCUS and SKIP choose of it (MINOR too)
	@[[ -z $$MINOR ]] || tools/build.sh kubernetes "$$MINOR"
	@tools/conformance.sh -rest -focus "$$FOCUS" -skip "$$SKIP" $(ARGS)

.PHONY: karpenter-suites
karpenter-suites: build ## Karpenter's own suites against an installation of its own, after make karpenter; ARGS='-part 1/5', '-suite provider-drift -focus AMIs', or -list, which counts specs
	@tools/karpenter-suites.sh $(ARGS)

FUZZTIME ?= 10s

.PHONY: fuzz
fuzz: ## fuzz each target in turn for FUZZTIME=10s; what is found stays in testdata/fuzz as a test
	@tools/fuzz.sh $(FUZZTIME)

# Modules that are linted, besides the one with cgo.
LINTED := . images egress mcp deploy/render test/bench/iam test/awssdk test/csi test/console

.PHONY: lint
lint: $(GOLANGCI_LINT) ## vet and golangci-lint (fetched into .tools/ once)
	@for module in $(LINTED); do (cd $$module && $(AS_BUILT) $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./...); done
	@cd pkcs11 && $(AS_BUILT) CGO_ENABLED=1 $(GOLANGCI_LINT) run --config ../.golangci.yml ./...

.PHONY: fetch
fetch: $(GOLANGCI_LINT) $(CONTROLLER_GEN) ## fetch all that `make generate` and `make lint` need: neither asks the network after it
	@for module in $(LINTED) pkcs11; do $(AS_BUILT) go -C $$module list -deps -test ./... >/dev/null; done

# tool NAME VERSION PACKAGE builds one.
define tool
	@echo 'building $(1) $(2)' >&2
	@mkdir -p $(@D)
	@GOBIN=$(@D)/new.$(1) $(AS_BUILT) go install -ldflags='-s -w' $(3)@$(2)
	@mv $(@D)/new.$(1)/$(1) $@ && rmdir $(@D)/new.$(1)
endef

$(GOLANGCI_LINT):
	$(call tool,golangci-lint,$(GOLANGCI_LINT_VERSION),github.com/golangci/golangci-lint/v2/cmd/golangci-lint)

$(CONTROLLER_GEN):
	$(call tool,controller-gen,$(CONTROLLER_GEN_VERSION),sigs.k8s.io/controller-tools/cmd/controller-gen)

.PHONY: vuln
vuln: ## look up known vulnerabilities of all modules (needs a way to Go's vulnerability database)
	@for module in . $(patsubst %/go.mod,./%,$(sort $(wildcard kubernetes/*/go.mod))) ./etcd ./runtime/containerd ./runtime/runc ./runtime/cni ./images $(patsubst %/go.mod,./%,$(sort $(wildcard images/*/go.mod))) ./pkcs11 ./egress ./mcp ./clusterapi ./deploy/render ./test/bench/iam ./test/awssdk ./test/csi ./test/console ./test/terminationhandler $(patsubst %/go.mod,./%,$(sort $(wildcard test/conformance/*/go.mod))); do \
		echo "$$module" >&2; flags=; \
		case $$module in ./kubernetes/* | ./test/conformance/*) flags="-modfile=$(CURDIR)/$$module/go.mod" module=$${module%/*} ;; esac; \
		GOBIN=$(CURDIR)/.tools/bin go install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION); \
		GOFLAGS="$$flags" .tools/bin/govulncheck -C "$$module" ./...; done

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
generate: $(CONTROLLER_GEN) ## rewrite generated code, CRDs and the tables of the AWS APIs
	@$(AS_BUILT) go generate ./api/...
	@$(AS_BUILT) go -C test/awssdk run ./tables

.PHONY: clean
clean: ## remove what was built (not the state of a cluster, nor Go's own cache)
	@rm -rf bin .build dist

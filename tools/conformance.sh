#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs upstream's e2e suite against a cluster of its own (docs/conformance.md): builds the suite, what runs it and the programs that its
# images hold into .build/conformance/bin, and calls test/conformance, which does the rest. Arguments are that program's: -h tells them.
# The suite is of the module k8s.io/kubernetes that the cluster is built from, and nothing of it is in what `make build` makes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly out=$PWD/.build/conformance/bin v=k8s.io/component-base/version
# As the rest is built (tools/build.sh), so that what both need is compiled once.
export GOWORK=off CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false -gcflags=all=-dwarf=false'
# What the specs do does not depend on what is beyond the machines.
export MUSTER_EGRESS=None
export PATH="$PATH:/usr/sbin:/sbin"
source tools/packages.sh

die() { printf '%s\n' "$*" >&2; exit 1; }

# free_gib: what the file system of .build has left.
free_gib() { df --output=avail -BG .build | tail -1 | tr -dc '0-9'; }

((EUID == 0)) || die "machines need root: run make conformance as root"
[[ -x bin/muster ]] || die "there is no bin/muster to run a cluster with: make build"
mkdir -p "$out"
(($(free_gib) >= 12)) || die "suite, images and machines need 12 GiB of disk, and .build has $(free_gib) GiB left"
command -v mmdebstrap >/dev/null || { may_install && install_packages mmdebstrap; } ||
	die "the images are made of Debian packages by mmdebstrap; install it (Debian's name): apt-get install mmdebstrap"

version=$(awk '$1 == "k8s.io/kubernetes" {print $2}' test/conformance/go.mod)
minor=${version#v1.} minor=${minor%%.*}
printf 'building upstream'\''s e2e suite %s (minutes at first, seconds later)\n' "$version" >&2
go -C test/conformance test -c -vet=off -o "$out/e2e.test" \
	-ldflags "-s -w -X $v.gitVersion=$version -X $v.gitMajor=1 -X $v.gitMinor=$minor -X $v.gitTreeState=clean" k8s.io/kubernetes/test/e2e
go -C test/conformance build -ldflags '-s -w' -o "$out/" . ./sh github.com/onsi/ginkgo/v2/ginkgo k8s.io/sample-apiserver \
	k8s.io/kubernetes/test/images/{agnhost,nonewprivs,regression-issue-74839}
go -C images build -ldflags '-s -w' -o "$out/" ./coredns ./pause

go -C test/conformance test -vet=off ./... >&2 # nothing else compiles it, so nothing else tests it

exec "$out/conformance" -root "$PWD" "$@"

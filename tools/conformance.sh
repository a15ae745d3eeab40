#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs upstream's e2e suite against a cluster of its own (docs/conformance.md): builds the suite, what runs it and the programs that its
# images hold into .build/conformance/MINOR/bin, and calls test/conformance, which does the rest. Arguments are that program's: -h tells them.
# MINOR in the environment is that of the cluster, or else the default. The suite is of the module k8s.io/kubernetes that the cluster is built
# from, whose go.mod is in test/conformance/MINOR, and nothing of it is in what `make build` makes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
default=$(readlink test/conformance/go.mod)
readonly minor=${MINOR:-${default%/*}} v=k8s.io/component-base/version
readonly out=$PWD/.build/conformance/$minor/bin module=-modfile=$minor/go.mod
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
[[ -e test/conformance/$minor/go.mod ]] || die "there is no suite of MINOR=$minor: test/conformance has $(cd test/conformance && echo 1.*)"
[[ -x bin/muster ]] || die "there is no bin/muster to run a cluster with: make build"
[[ -x bin/$minor/kubectl ]] || die "Kubernetes $minor is not built: make kubernetes MINOR=$minor"
mkdir -p "$out"
(($(free_gib) >= 12)) || die "suite, images and machines need 12 GiB of disk, and .build has $(free_gib) GiB left"
command -v mmdebstrap >/dev/null || { may_install && install_packages mmdebstrap; } ||
	die "the images are made of Debian packages by mmdebstrap; install it (Debian's name): apt-get install mmdebstrap"

version=$(awk '$1 == "k8s.io/kubernetes" {print $2}' "test/conformance/$minor/go.mod")
printf 'building upstream'\''s e2e suite %s (minutes at first, seconds later)\n' "$version" >&2
go -C test/conformance test -c "$module" -vet=off -o "$out/e2e.test" \
	-ldflags "-s -w -X $v.gitVersion=$version -X $v.gitMajor=${minor%.*} -X $v.gitMinor=${minor#*.} -X $v.gitTreeState=clean" k8s.io/kubernetes/test/e2e
go -C test/conformance build "$module" -ldflags '-s -w' -o "$out/" . ./sh github.com/onsi/ginkgo/v2/ginkgo k8s.io/sample-apiserver \
	k8s.io/kubernetes/test/images/{agnhost,nonewprivs,regression-issue-74839}
go -C images build -ldflags '-s -w' -o "$out/" ./coredns ./pause

go -C test/conformance test "$module" -vet=off ./... >&2 # nothing else compiles it, so nothing else tests it

exec "$out/conformance" -root "$PWD" "$@"

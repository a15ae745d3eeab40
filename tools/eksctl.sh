#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds eksctl, unmodified, from a checkout of its public repository into bin/eksctl: tools/eksctl.sh DIRECTORY
# The module of eksctl is not in Go's proxy, so it is no step of build.sh. A checkout without .git works, and has no commit in its version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly repository=https://github.com/eksctl-io/eksctl module=github.com/weaveworks/eksctl
readonly enough=3072 # MiB that the build takes in Go's caches, where both are empty

say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

[[ ${1-} ]] || die "usage: make eksctl DIR=DIRECTORY, a checkout of eksctl: git clone --depth 1 $repository DIRECTORY"
[[ $(awk '$1 == "module" {print $2}' "$1/go.mod" 2>/dev/null) == "$module" ]] ||
	die "$1 is not a checkout of eksctl, whose go.mod has the module $module: git clone --depth 1 $repository DIRECTORY"
directory=$(cd "$1" && pwd)
version=$(awk -F '"' '/^var Version = / {print $2}' "$directory/pkg/version/release.go" 2>/dev/null || true)
commit=$(git -C "$directory" rev-parse --short HEAD 2>/dev/null || true)
free=$(df --output=avail -m "$(go env GOCACHE 2>/dev/null)" 2>/dev/null | tail -1 || true)
[[ ! $free ]] || ((free >= enough)) || die "eksctl takes up to $enough MiB in the caches of Go, where $((free)) MiB are free: free some, or set GOCACHE and GOMODCACHE"
say "building eksctl ${version:-of an unknown version}${commit:+ ($commit)} from $directory: about 5 minutes on 2 idle processors, $enough MiB in the caches of Go, 200 MB in bin/, once"

start=$SECONDS
mkdir -p bin .build
new=$PWD/.build/new.eksctl.$$
trap 'rm -f "$new"' EXIT
CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly go -C "$directory" build -trimpath -o "$new" \
	-ldflags "-s -w -X $module/pkg/version.gitCommit=$commit -X $module/pkg/version.buildDate=$(date -u +%Y-%m-%dT%H:%M:%SZ)" ./cmd/eksctl
mv -fT "$new" bin/eksctl
say "bin/eksctl: $((SECONDS - start)) s"

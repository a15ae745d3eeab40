#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the pages of muster console in Debian's Chromium, and looks for barriers with axe-core. Both are fetched if they are not there.
# Pictures of all pages are in .build/console, or where MUSTER_SCREENSHOTS says.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly axe_version=4.14.1
readonly dir=$PWD/.build/console

if ! command -v chromium >/dev/null; then
	echo 'installing chromium from the packages of the system' >&2
	apt-get update -q >&2
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium >&2
fi
mkdir -p "$dir"
export MUSTER_AXE=$dir/axe-$axe_version.js MUSTER_SCREENSHOTS=${MUSTER_SCREENSHOTS:-$dir}
if [[ ! -s $MUSTER_AXE ]]; then
	command -v npm >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends npm >&2
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	(cd "$work" && npm pack --silent "axe-core@$axe_version" >/dev/null && sha512sum --check --quiet <<<"1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5  axe-core-$axe_version.tgz")
	tar -xzf "$work/axe-core-$axe_version.tgz" -C "$work" package/axe.min.js
	mv "$work/package/axe.min.js" "$MUSTER_AXE"
fi
exec go -C test/console test -vet=off -count=1 -v -timeout=20m ./... "$@"

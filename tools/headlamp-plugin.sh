#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks, tests and builds the plugin for Headlamp, by Headlamp's own tool, in a copy below .build: the packages of the tool hold sources of other
# projects, which are no part of this tree.
set -euo pipefail
cd "$(dirname "$0")/.."
readonly copy=$PWD/.build/headlamp fixtures=internal/explain/explainapi/testdata

command -v npm >/dev/null || { echo 'npm is missing: install Node.js 20 or later with npm' >&2; exit 1; }
mkdir -p "$copy/headlamp" "$copy/$fixtures"
rm -rf "$copy/headlamp/src" "$copy/headlamp/dist"
cp -r headlamp/. "$copy/headlamp/"
gunzip -f "$copy/headlamp/package-lock.json.gz"
cp "$fixtures"/*.json "$copy/$fixtures/"
cd "$copy/headlamp"
if ! cmp -s package-lock.json node_modules/.installed.json; then
	npm ci --ignore-scripts
	cp package-lock.json node_modules/.installed.json
fi
for step in lint tsc test build; do
	npm run --silent "$step"
done
cp package.json dist/
echo "$copy/headlamp/dist is the plugin: copy it to muster-explain in Headlamp's directory of plugins"

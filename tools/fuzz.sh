#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Fuzzes every target of this module for so long, one after the other as go test does it. What is found stays as a case in testdata/fuzz.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

found=0
while IFS=: read -r file target; do
	target=${target#func }
	printf '%s %s\n' "${file%/*}" "$target"
	go test -vet=off -run='^$' -fuzz="^$target\$" -fuzztime="$1" "./${file%/*}" </dev/null || found=1
done < <(grep -rHoE --include='*_test.go' '^func Fuzz\w*' api cmd internal | sort)
exit "$found"

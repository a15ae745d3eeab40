#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Packs bin/muster-certificate-controller and bin/muster, which is the authenticator too, as one container image,
# dist/muster-VERSION.tar: an OCI archive that `ctr images import`, `skopeo copy oci-archive:…` and `crane push` take. It needs no
# container engine, and the same programs always give the same archive. By itself it runs the certificate controller; the
# authenticator's chart and manifests name /muster.
# The version is the charts' appVersion, which is what charts and manifests run. IMAGE=NAME:TAG gives it another name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C GOWORK=off

version=$(awk '$1 == "appVersion:" {print $2}' deploy/charts/muster-certificate-controller/Chart.yaml)
image=${IMAGE:-muster.dev/muster:$version}
output=$PWD/dist/muster-$version.tar

programs=("$PWD/bin/muster-certificate-controller" "$PWD/bin/muster")
for program in "${programs[@]}"; do
	name=bin/${program##*/}
	[[ -x $program ]] || { echo "there is no $name to pack: make build" >&2; exit 1; }
	if [[ $(go version -m "$program") != *CGO_ENABLED=0* ]]; then
		echo "$name is not static, so it would not run in an image that holds nothing else: make build" >&2
		exit 1
	fi
	arch=$(go version -m "$program" | awk '$2 ~ /^GOARCH=/ {sub(/^GOARCH=/, "", $2); print $2}')
	[[ $arch == "${first_arch:=$arch}" ]] || { echo "$name is for $arch, the program before it for $first_arch: make build" >&2; exit 1; }
done
revision=$(git --no-optional-locks describe --tags --always --dirty 2>/dev/null) || revision=unknown

mkdir -p dist
CGO_ENABLED=0 go -C images run -trimpath -buildvcs=false -gcflags=all=-dwarf=false ./archive -output "$output" -name "$image" -arch "$arch" -roots \
	-label org.opencontainers.image.title=muster \
	-label "org.opencontainers.image.version=$version" \
	-label "org.opencontainers.image.revision=$revision" \
	-label org.opencontainers.image.licenses=Apache-2.0 \
	-label 'org.opencontainers.image.description=Approves and signs the certificate requests of kubelets, and authenticates by AWS IAM' \
	"${programs[@]}"
echo "dist/muster-$version.tar: $image for linux/$arch"

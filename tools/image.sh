#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Packs bin/muster-certificate-controller as a container image, dist/muster-VERSION.tar: an OCI archive that `ctr images import`, `skopeo copy
# oci-archive:…` and `crane push` take. It needs no container engine, and the same program always gives the same archive.
# The version is the chart's appVersion, which is what the chart and the manifests run. IMAGE=NAME:TAG gives it another name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C GOWORK=off

version=$(awk '$1 == "appVersion:" {print $2}' deploy/charts/muster-certificate-controller/Chart.yaml)
image=${IMAGE:-muster.dev/muster:$version}
output=$PWD/dist/muster-$version.tar

[[ -x bin/muster-certificate-controller ]] || { echo 'there is no bin/muster-certificate-controller to pack: make build' >&2; exit 1; }
if [[ $(go version -m bin/muster-certificate-controller) != *CGO_ENABLED=0* ]]; then
	echo 'bin/muster-certificate-controller is not static, so it would not run in an image that holds nothing else: make build' >&2
	exit 1
fi
arch=$(go version -m bin/muster-certificate-controller | awk '$2 ~ /^GOARCH=/ {sub(/^GOARCH=/, "", $2); print $2}')
revision=$(git --no-optional-locks describe --tags --always --dirty 2>/dev/null) || revision=unknown

mkdir -p dist
CGO_ENABLED=0 go -C images run -trimpath -buildvcs=false ./archive -output "$output" -name "$image" -arch "$arch" -roots \
	-label org.opencontainers.image.title=muster \
	-label "org.opencontainers.image.version=$version" \
	-label "org.opencontainers.image.revision=$revision" \
	-label org.opencontainers.image.licenses=Apache-2.0 \
	-label 'org.opencontainers.image.description=Approves and signs the certificate requests of kubelets' \
	"$PWD/bin/muster-certificate-controller"
echo "dist/muster-$version.tar: $image for linux/$arch"

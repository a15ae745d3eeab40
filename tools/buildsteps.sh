# SPDX-License-Identifier: Apache-2.0
#
# To be sourced by build.sh: how each step is built. build_NAME writes into $out what is to appear in bin/, and keeps everything else in $tmp.

# version MODULE DIRECTORY: the version of a module that the go.mod there requires.
version() { awk -v m="$1" '{sub(/^require /, "")} $1 == m {print $2}' "$2/go.mod"; }

# gobuild DIRECTORY OUTPUT ARGS...: builds, and tells the progress display how many packages there are to compile. In the mode share it only
# says how much there is to compile, and in the mode ahead it only compiles; a step comes no further then.
gobuild() {
	local directory=$1 output=$2
	shift 2
	case $mode in
	share) missing_share "$directory" "$@" && exit ;;
	ahead) exec go -C "$directory" list -export -deps "${reproducibly[@]}" -p $(((cores + 1) / 2)) "$@" ;;
	esac
	[[ -z $counted ]] || go -C "$directory" list -deps "${reproducibly[@]}" -f '{{if .Stale}}{{.ImportPath}}{{end}}' "$@" | wc -l >>"$tmp/packages"
	go -C "$directory" build -v "${reproducibly[@]}" -o "$output" "$@"
}

# build_kubernetes MINOR: all minors have the same sources, and each its go.mod and go.sum. The default's kubectl is people's, too, and
# machines that were booted before there were folders look for theirs beside Muster's own programs until their next boot.
build_kubernetes() {
	local minor=$1 v=k8s.io/component-base/version version link
	version=$(version k8s.io/kubernetes "kubernetes/$minor")
	CGO_ENABLED=0 gobuild kubernetes "$out/$minor/" -modfile="$minor/go.mod" -ldflags \
		"-s -w -X $v.gitVersion=$version -X $v.gitMajor=${minor%.*} -X $v.gitMinor=${minor#*.} -X $v.gitTreeState=clean" \
		. k8s.io/kubernetes/cmd/kubectl
	for link in generic-apiserver kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubeadm kubelet kubelet-config-check; do
		ln -s kubernetes "$out/$minor/$link"
	done
	[[ $minor == "$default" ]] || return 0
	ln "$out/$minor/kubectl" "$out/kubectl" # kubectl cp would copy a symbolic link as it is
	for link in kubelet kube-proxy kubelet-config-check; do
		ln -s "$minor/$link" "$out/$link"
	done
}

build_etcd() { CGO_ENABLED=0 gobuild etcd "$out/etcd" -ldflags '-s -w' .; }

# The tags are those of upstream's static release, less snapshotters and exporters that muster never turns on.
build_containerd() {
	local m=github.com/containerd/containerd/v2 flags tags
	flags="-s -w -X $m/version.Package=$m -X $m/version.Version=$(version $m runtime/containerd)"
	tags=osusergo,netgo,static_build,urfave_cli_no_docs,no_btrfs,no_zfs,no_devmapper,no_tracing
	CGO_ENABLED=0 gobuild runtime/containerd "$out/" -tags $tags -ldflags "$flags" $m/cmd/containerd $m/cmd/ctr
	# Upstream's, with a little of Muster's around it: runtime/containerd/shim says what.
	CGO_ENABLED=0 gobuild runtime/containerd "$out/containerd-shim-runc-v2" -tags $tags,no_grpc -ldflags "$flags" ./shim
}

# Without the tag seccomp, every container that has a seccomp profile fails.
build_runc() {
	CGO_ENABLED=1 gobuild runtime/runc "$out/runc" -tags seccomp,osusergo,netgo,urfave_cli_no_docs \
		-ldflags "-s -w -linkmode external -extldflags -static" github.com/opencontainers/runc
}

build_cni() {
	local m=github.com/containernetworking/plugins p
	p=$m/plugins
	CGO_ENABLED=0 gobuild runtime/cni "$out/cni/" -ldflags "-s -w -X $m/pkg/utils/buildversion.BuildVersion=$(version $m runtime/cni)" \
		$p/ipam/host-local $p/main/bridge $p/main/loopback $p/main/ptp $p/meta/portmap
}

# image NAME TAG ARGS...: builds images/NAME and packs it as muster.dev/NAME:TAG.
image() {
	local name=$1 tag=$2
	shift 2
	CGO_ENABLED=0 gobuild images "$tmp/$name" -ldflags '-s -w' "./$name"
	pack "$name" "$tag" "$@"
}

# pack NAME TAG ARGS...: packs the program $tmp/NAME as muster.dev/NAME:TAG.
pack() {
	local name=$1 tag=$2
	shift 2
	mkdir "$out/images"
	CGO_ENABLED=0 go -C images run "${reproducibly[@]}" ./archive -output "$out/images/$name.tar" -name "muster.dev/$name:$tag" "$@" "$tmp/$name"
}
build_pause() { image pause v1; }
build_workload() { image workload v1 -args serve; }
build_coredns() { image coredns "$(version github.com/coredns/coredns images)"; }

build_metrics_server() {
	local m=sigs.k8s.io/metrics-server v=k8s.io/client-go/pkg/version version
	version=$(version $m images/metricsserver)
	CGO_ENABLED=0 gobuild images/metricsserver "$tmp/metrics-server" -ldflags "-s -w -X $v.gitVersion=$version" $m/cmd/metrics-server
	pack metrics-server "$version"
}

# Traefik, and the kinds of the Gateway API as the module has them that Traefik is built with: standard channel, without the policy about upgrades.
build_traefik() {
	local m=github.com/traefik/traefik/v3 version gateway
	version=$(version $m images/traefik)
	CGO_ENABLED=0 gobuild images/traefik "$tmp/traefik" -ldflags "-s -w -X $m/pkg/version.Version=${version#v}" $m/cmd/traefik
	pack traefik "$version"
	mv "$out/images" "$out/addons"
	gateway=$(go -C images/traefik list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)
	awk 'FNR == 1 {print "---"} {print}' "$gateway"/config/crd/standard/gateway.networking.k8s.io_[!v]*.yaml >"$out/addons/gateway-api.yaml"
}

# The snapshot-controller, and the kinds of snapshots as the module has them that it is built with.
build_snapshot_controller() {
	local m=github.com/kubernetes-csi/external-snapshotter version client
	version=$(version $m/v8 images/snapshotcontroller)
	CGO_ENABLED=0 gobuild images/snapshotcontroller "$tmp/snapshot-controller" -ldflags "-s -w -X main.version=$version" $m/v8/cmd/snapshot-controller
	pack snapshot-controller "$version"
	mv "$out/images" "$out/addons"
	client=$(go -C images/snapshotcontroller list -m -f '{{.Dir}}' $m/client/v8)
	cat "$client"/config/crd/snapshot.storage.k8s.io_*.yaml >"$out/addons/snapshot-kinds.yaml"
}

# Karpenter, as an image and as a program of control planes, and its kinds as the module has them that it is built with.
build_karpenter() {
	local m=github.com/aws/karpenter-provider-aws v=sigs.k8s.io/karpenter/pkg/operator.Version version own
	version=$(version $m images/karpenter)
	CGO_ENABLED=0 gobuild images/karpenter "$tmp/karpenter" -ldflags "-s -w -X $v=${version#v}" $m/cmd/controller
	pack karpenter "$version"
	mv "$out/images" "$out/addons"
	install -m 0755 "$tmp/karpenter" "$out/addons/karpenter"
	own=$(go -C images/karpenter list -m -f '{{.Dir}}' $m)
	awk 'FNR == 1 && $0 != "---" {print "---"} {print}' "$own"/pkg/apis/crds/*.yaml >"$out/addons/karpenter-kinds.yaml"
}

# It loads a vendor's library, so it is linked dynamically, and is a process of its own.
build_pkcs11() { CGO_ENABLED=1 gobuild pkcs11 "$out/muster-pkcs11" -ldflags '-s -w' .; }

# Upstream's program, with its version, which the log tells first.
build_victoria_logs() {
	local m=github.com/VictoriaMetrics/VictoriaLogs v=github.com/VictoriaMetrics/VictoriaMetrics/lib/buildinfo.Version
	CGO_ENABLED=0 gobuild victorialogs "$out/victoria-logs" -ldflags "-s -w -X $v=victoria-logs-$(version $m victorialogs)" $m/app/victoria-logs
}

# Upstream's managers and command lines, and the manifests of the managers as releases have them: kubectl, of the group node, renders them.
build_cluster_api() {
	local capi=sigs.k8s.io/cluster-api capa=sigs.k8s.io/cluster-api-provider-aws/v2 flags='-s -w' m v core infrastructure
	for m in $capi $capa; do
		v=$(version $m clusterapi)
		flags+=" -X $m/version.gitVersion=$v -X $m/version.gitMajor=${v:1:1} -X $m/version.gitMinor=$(cut -d . -f 2 <<<"$v") -X $m/version.gitTreeState=clean"
	done
	CGO_ENABLED=0 gobuild clusterapi "$tmp/" -ldflags "$flags" $capi $capi/cmd/clusterctl $capa $capa/cmd/clusterawsadm
	mkdir "$out/cluster-api"
	mv "$tmp/clusterctl" "$tmp/clusterawsadm" "$out/cluster-api/"
	mv "$tmp/cluster-api" "$out/cluster-api/cluster-api-manager"
	mv "$tmp/cluster-api-provider-aws" "$out/cluster-api/cluster-api-provider-aws-manager"
	core=$(go -C clusterapi list -m -f '{{.Dir}}' $capi) infrastructure=$(go -C clusterapi list -m -f '{{.Dir}}' $capa)
	(cd "$core/config/default" && "$root/bin/kubectl" kustomize .) >"$out/cluster-api/core-components.yaml"
	(cd "$infrastructure/config/default" && "$root/bin/kubectl" kustomize .) >"$out/cluster-api/infrastructure-components.yaml"
	cp "$core/metadata.yaml" "$out/cluster-api/core-metadata.yaml"
	cp "$infrastructure/metadata.yaml" "$out/cluster-api/infrastructure-metadata.yaml"
}

# Its network stack is in a program of its own, so that no other process has it.
build_egress() {
	CGO_ENABLED=0 gobuild egress "$build/muster-egress" -ldflags '-s -w' .
	cp "$build/muster-egress" "$out/muster-egress"
}

# The protocol's libraries are in a program of its own, so that no other process has them.
build_mcp() {
	CGO_ENABLED=0 gobuild mcp "$build/muster-mcp" -ldflags '-s -w' .
	cp "$build/muster-mcp" "$out/muster-mcp"
}

# Go itself knows best whether muster is up to date; it then does not even link, as long as it finds what it wrote last.
build_muster() {
	local version name names=(muster muster-certificate-controller muster-plane-front muster-registry muster-token-signer muster-webhook-proxy)
	version=$(awk '$1 == "const" && $2 == "Release" {gsub(/"/, "", $4); print $4}' internal/platform/version/version.go)
	version+=+$(git --no-optional-locks describe --exclude '*' --always --dirty=.dirty 2>/dev/null) || version=${version%%+*}
	CGO_ENABLED=0 gobuild . "$build/" -ldflags "-s -w -X muster.dev/muster/internal/platform/version.Version=$version" \
		"${names[@]/#/./cmd/}"
	for name in "${names[@]}"; do cp "$build/$name" "$out/"; done
}

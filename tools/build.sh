#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds all that muster runs into bin/, skipping what is up to date: a step is, when its sources, its commands below, the
# toolchain and the flags hash to what its stamp says, and its outputs are there.
# Everything is made elsewhere and renamed into place, so it may be interrupted at any time, and programs that run keep running.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly root=$PWD build=$PWD/.build
# With the argument addons it builds into bin/addons what add-ons need that few clusters have, and nothing else.
case ${1-} in
'') readonly steps=12 ;;
addons) readonly steps=2 ;;
*) printf 'usage: tools/build.sh [addons]\n' >&2 && exit 2 ;;
esac
# Nothing is built with debugging information, which no linker here keeps: compiling it would take a fifth of the time.
readonly reproducibly=(-trimpath -buildvcs=false -gcflags=all=-dwarf=false)
export LC_ALL=C GOWORK=off PATH="$PATH:/usr/sbin:/sbin" # ordinary users' PATH on Debian lacks sbin, where nft is
step_number=0 job='' ticker=''
source tools/packages.sh

say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# ---- what the system must have ----

# have_lib NAME: headers and the static library; runc is linked statically so that it needs nothing from where it runs.
have_lib() { pkg-config --exists "$1" && [[ $(gcc -print-file-name="$1.a") == /* ]]; }

check_system() {
	local missing=() later=()
	command -v gcc >/dev/null || missing+=(gcc)
	[[ -e /usr/include/stdlib.h ]] || missing+=(libc6-dev)
	command -v pkg-config >/dev/null || missing+=(pkg-config)
	{ ((${#missing[@]} == 0)) && have_lib libseccomp; } || missing+=(libseccomp-dev)
	command -v nft >/dev/null || later+=(nftables)
	command -v ip >/dev/null || later+=(iproute2)
	command -v nsenter >/dev/null && command -v flock >/dev/null || later+=(util-linux)
	((${#missing[@]} + ${#later[@]})) || return 0

	if may_install; then
		install_packages "${missing[@]}" "${later[@]}"
	elif ((${#missing[@]})); then
		die "this system lacks what the build needs; install as root (Debian's names): apt-get install ${missing[*]} ${later[*]}"
	else # simulated machines do without
		say "local machines will need more; install as root (Debian's names): apt-get install ${later[*]}"
	fi
}

# check_go settles on one toolchain for all modules: an older Go fetches a newer one itself, but then only one.
check_go() {
	local want have
	want=$(awk '$1 == "go" {print $2}' go.mod ./*/go.mod runtime/*/go.mod | sort -V | tail -1)
	command -v go >/dev/null || die "Go $want or newer is needed to build muster; see https://go.dev/dl"
	have=$(go env GOVERSION)
	if ! at_least "$want" "${have#go}"; then
		have=$(GOTOOLCHAIN=go$want go env GOVERSION 2>/dev/null </dev/null) && at_least "$want" "${have#go}" ||
			die "Go $want or newer is needed to build muster, this is $(go env GOVERSION); see https://go.dev/dl"
		export GOTOOLCHAIN=$have
	fi
	readonly toolchain="$have $(go env GOOS GOARCH GOAMD64 GOARM64 GOFLAGS GOEXPERIMENT CC | tr '\n' ' ')"
}

at_least() { [[ $(printf '%s\n' "$1" "$2" | sort -V | head -1) == "$1" ]]; }

# version MODULE DIRECTORY: the version of a module that the go.mod there requires.
version() { awk -v m="$1" '{sub(/^require /, "")} $1 == m {print $2}' "$2/go.mod"; }

# ---- the steps: each writes into $out what is to appear in bin/ ----

# gobuild DIRECTORY OUTPUT ARGS...: builds and tells the progress display how many packages there are to compile.
gobuild() {
	local directory=$1 output=$2
	shift 2
	go -C "$directory" list -deps "${reproducibly[@]}" -f '{{if .Stale}}{{.ImportPath}}{{end}}' "$@" | wc -l >>"$tmp/packages"
	go -C "$directory" build -v "${reproducibly[@]}" -o "$output" "$@"
}

build_kubernetes() {
	local v=k8s.io/component-base/version version minor
	version=$(version k8s.io/kubernetes kubernetes)
	minor=${version#v1.} minor=${minor%%.*}
	CGO_ENABLED=0 gobuild kubernetes "$out/" -ldflags \
		"-s -w -X $v.gitVersion=$version -X $v.gitMajor=1 -X $v.gitMinor=$minor -X $v.gitTreeState=clean" . k8s.io/kubernetes/cmd/kubectl
	local link
	for link in generic-apiserver kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubeadm kubelet kubelet-config-check; do
		ln -s kubernetes "$out/$link"
	done
}

build_etcd() { CGO_ENABLED=0 gobuild etcd "$out/etcd" -ldflags '-s -w' .; }

# The tags are those of upstream's static release, less snapshotters and exporters that muster never turns on.
build_containerd() {
	local m=github.com/containerd/containerd/v2 flags tags
	flags="-s -w -X $m/version.Package=$m -X $m/version.Version=$(version $m runtime/containerd)"
	tags=osusergo,netgo,static_build,urfave_cli_no_docs,no_btrfs,no_zfs,no_devmapper,no_tracing
	CGO_ENABLED=0 gobuild runtime/containerd "$out/" -tags $tags -ldflags "$flags" $m/cmd/containerd $m/cmd/ctr
	CGO_ENABLED=0 gobuild runtime/containerd "$out/" -tags $tags,no_grpc -ldflags "$flags" $m/cmd/containerd-shim-runc-v2
}

# Without the tag seccomp, every container that has a seccomp profile fails.
build_runc() {
	CGO_ENABLED=1 gobuild runtime/runc "$out/runc" -tags seccomp,osusergo,netgo,urfave_cli_no_docs \
		-ldflags "-s -w -linkmode external -extldflags -static" github.com/opencontainers/runc
}

build_cni() {
	local m=github.com/containernetworking/plugins p
	p=$m/plugins
	mkdir "$out/cni"
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

# It loads a vendor's library, so it is linked dynamically, and is a process of its own.
build_pkcs11() { CGO_ENABLED=1 gobuild pkcs11 "$out/muster-pkcs11" -ldflags '-s -w' .; }

# Its network stack is in a program of its own, so that no other process has it.
build_egress() {
	CGO_ENABLED=0 go -C egress build -v "${reproducibly[@]}" -o "$build/muster-egress" -ldflags '-s -w' .
	cp "$build/muster-egress" "$out/muster-egress"
}

# Go itself knows best whether muster is up to date; it then does not even link, as long as it finds what it wrote last.
build_muster() {
	local version program
	version=$(awk '$1 == "const" && $2 == "Release" {gsub(/"/, "", $4); print $4}' internal/platform/version/version.go)
	version+=+$(git --no-optional-locks describe --exclude '*' --always --dirty=.dirty 2>/dev/null) || version=${version%%+*}
	for program in muster muster-certificate-controller; do
		CGO_ENABLED=0 go build -v "${reproducibly[@]}" -o "$build/$program" \
			-ldflags "-s -w -X muster.dev/muster/internal/platform/version.Version=$version" "./cmd/$program"
		cp "$build/$program" "$out/$program"
	done
}

# ---- running a step ----

# step NAME TITLE SOURCES...: builds NAME unless it is up to date; with no sources it is never taken for that.
step() {
	local name=$1 title stamp=$build/stamps/$1 log=$build/logs/$1.log hash start=$SECONDS status=0
	title="[$((++step_number))/$steps] $2"
	shift 2
	hash=$(fingerprint "$name" "$@")
	if (($#)) && fresh "$stamp" "$hash"; then
		say "$title: up to date"
		return
	fi
	tmp=$build/tmp.$$ out=$build/tmp.$$/out
	rm -rf "$tmp"
	mkdir -p "$out" "$tmp/go"
	export GOTMPDIR=$tmp/go # on the file system of what is built, so that Go, too, puts it in place by renaming

	set -m # a process group of its own, so that all of it can be ended
	(set -e; "build_$name") >"$log" 2>&1 </dev/null &
	job=$!
	set +m
	progress "$title" "$log" "$start" 9>&- &
	ticker=$!
	wait "$job" || status=$?
	job=''
	stop_progress
	[[ ! -t 2 ]] || printf '\r\033[K' >&2
	if ((status)); then
		say "$title: failed after $((SECONDS - start)) s; the end of .build/logs/$name.log:"
		# Lines of one word are the packages that Go compiled.
		{ grep ' ' "$log" || cat "$log"; } | grep -v '^go: downloading' | tail -n 30 | sed 's/^/    /' >&2
		exit 1
	fi
	rm -f "$stamp" # from here on bin/ is neither the old nor the new
	{ printf '%s\n' "$hash"; outputs; } >"$tmp/stamp"
	install_outputs
	mv "$tmp/stamp" "$stamp"
	rm -rf "$tmp"
	say "$title: $((SECONDS - start)) s"
}

# fingerprint NAME SOURCES...: one hash for all that a step's result depends on.
fingerprint() {
	local name=$1
	shift
	{
		printf '%s\n' "$toolchain"
		declare -p reproducibly
		declare -f gobuild image pack version "build_$name"
		[[ $name != runc ]] || pkg-config --modversion libseccomp
		(($# == 0)) || find "$@" -type f ! -name '*_test.go' -print0 | sort -z | xargs -0 sha256sum
	} | sha256sum | cut -d ' ' -f 1
}

# fresh STAMP HASH: the stamp has this hash, and everything it lists is in bin/.
fresh() {
	local stamped output
	{
		read -r stamped || return 1
		[[ $stamped == "$2" ]] || return 1
		while read -r output; do [[ -e bin/$output ]] || return 1; done
	} 2>/dev/null <"$1"
}

outputs() { (cd "$out" && find . ! -type d -printf '%P\n' | sort); }

# install_outputs renames into bin/ what differs from what is there: an unchanged program stays the file that runs.
install_outputs() {
	local output
	outputs | while read -r output; do
		mkdir -p "$(dirname "bin/$output")"
		if [[ -L $out/$output ]]; then
			[[ $(readlink "bin/$output") != "$(readlink "$out/$output")" ]] || continue
		elif [[ ! -L bin/$output ]] && cmp -s "$out/$output" "bin/$output"; then
			continue
		fi
		mv -fT "$out/$output" "bin/$output"
	done
}

# progress TITLE LOG START: says how far a step is until killed: every second on a terminal, every half minute elsewhere.
progress() {
	local interval=30 before='' after='\n'
	trap 'kill $! 2>/dev/null; exit' TERM
	[[ ! -t 2 ]] || interval=1 before='\r' after='\033[K'
	while kill -0 $$ 2>/dev/null; do # $$ is the script's; it may be killed without a word
		[[ ! -t 2 ]] || show "$@"
		sleep "$interval" &
		wait $!
		[[ -t 2 ]] || show "$@"
	done
}
stop_progress() {
	[[ -z $ticker ]] || { kill "$ticker" && wait "$ticker"; } 2>/dev/null || true
	ticker=''
}
show() {
	local total compiled how_far=''
	total=$(awk '{n += $1} END {print n + 0}' "$tmp/packages" 2>/dev/null) || total=0
	compiled=$(grep -cv '^go: ' "$2" 2>/dev/null) || compiled=0
	if [[ $(tail -n 1 "$2" 2>/dev/null) == 'go: downloading'* ]]; then
		how_far='downloading modules, '
	elif ((total > 0)); then
		how_far="$compiled of $total packages, "
	fi
	printf "$before%s ... %s%d s$after" "$1" "$how_far" $((SECONDS - $3)) >&2
}

cleanup() {
	trap '' INT TERM HUP
	stop_progress
	[[ -z $job ]] || { kill -TERM -- "-$job" && wait "$job"; } 2>/dev/null || true
	rm -rf "$build/tmp.$$" 2>/dev/null || true
}

mkdir -p bin "$build/logs" "$build/stamps"
check_system
check_go
exec 9>"$build/lock"
flock -n 9 || { say "another build runs here; waiting for it"; flock 9; }
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
rm -rf "$build"/tmp.* 2>/dev/null || true # of builds that were killed

if [[ ${1-} == addons ]]; then
	step traefik "traefik $(version github.com/traefik/traefik/v3 images/traefik)" images/go.mod images/go.sum images/archive images/traefik
	step snapshot_controller "snapshot-controller $(version github.com/kubernetes-csi/external-snapshotter/v8 images/snapshotcontroller)" \
		images/go.mod images/go.sum images/archive images/snapshotcontroller
	exit
fi
step kubernetes "kubernetes $(version k8s.io/kubernetes kubernetes)" kubernetes
step etcd "etcd $(version go.etcd.io/etcd/server/v3 etcd)" etcd
step containerd "containerd $(version github.com/containerd/containerd/v2 runtime/containerd)" runtime/containerd
step runc "runc $(version github.com/opencontainers/runc runtime/runc)" runtime/runc
step cni "CNI plugins $(version github.com/containernetworking/plugins runtime/cni)" runtime/cni
step pause "image pause" images/go.mod images/go.sum images/archive images/pause
step workload "image workload" images/go.mod images/go.sum images/archive images/workload
step coredns "image coredns $(version github.com/coredns/coredns images)" images/go.mod images/go.sum images/archive images/coredns
step metrics_server "image metrics-server $(version sigs.k8s.io/metrics-server images/metricsserver)" images/go.mod images/go.sum images/archive images/metricsserver
step pkcs11 "muster-pkcs11" pkcs11
step egress "muster-egress"
step muster "muster"

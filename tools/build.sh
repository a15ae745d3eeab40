#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds all that muster runs into bin/, skipping what is up to date: a step is, when its sources, its commands in
# buildsteps.sh, the toolchain and the flags hash to what its stamp says, and its outputs are there.
# Everything is made elsewhere and renamed into place, so it may be interrupted at any time, and programs that run keep running.
#
#	tools/build.sh [node | rest | addons | karpenter | logs | cluster-api | kubernetes MINOR]
#
# node is all that `muster up` asks for, and rest what a cluster comes up without; without an argument it builds both. addons is what few
# clusters need, and goes into bin/addons; so does karpenter, which needs a newer Go than the rest. logs is what keeps the logs of control
# planes, and cluster-api is Cluster API and its AWS provider, in bin/cluster-api. Kubernetes of each minor goes into bin/MINOR: that of the default is part of node, and others are built by their name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly root=$PWD build=$PWD/.build
# Each minor of Kubernetes has a go.mod in a folder of its own; kubernetes/go.mod is a link to that of the default.
minors=(kubernetes/*/go.mod) minors=("${minors[@]#*/}") minors=("${minors[@]%/*}")
default=$(readlink kubernetes/go.mod) default=${default%/*}
readonly minors default
case ${1-} in
'') readonly groups='node rest' what='all programs and images' ;;
node) readonly groups=node what='what a node needs' ;;
rest) readonly groups=rest what='what nodes do without (after an interruption, `make build` goes on)' ;;
addons) readonly groups=addons what='what few clusters need' ;;
karpenter) readonly groups=karpenter what='Karpenter, which takes some 2 GiB in the caches of Go and 100 MB in bin/' ;;
logs) readonly groups=logs what='what keeps the logs of control planes' ;;
cluster-api) readonly groups='node cluster-api' what='Cluster API and its AWS provider, which take some 2 GiB in the caches of Go and 400 MB in bin/' ;;
kubernetes)
	[[ ${2-} =~ ^1\.[0-9]+$ && -e kubernetes/$2/go.mod ]] ||
		{ all=$(printf ', %s' "${minors[@]}") && printf 'make kubernetes builds MINOR=%s, not "%s"\n' "${all#, }" "${2-}" >&2 && exit 2; }
	readonly groups=kubernetes-$2 what="Kubernetes $2"
	;;
*) printf 'usage: tools/build.sh [node | rest | addons | karpenter | logs | cluster-api | kubernetes MINOR]\n' >&2 && exit 2 ;;
esac
# Nothing is built with debugging information, which no linker here keeps: compiling it would take a fifth of the time.
readonly reproducibly=(-trimpath -buildvcs=false -gcflags=all=-dwarf=false)
export LC_ALL=C GOWORK=off PATH="$PATH:/usr/sbin:/sbin" # ordinary users' PATH on Debian lacks sbin, where nft is
steps=() stale=() step_number=0 job='' ticker='' ahead=''
declare -A known titles sources compiling linking hash
readonly cores=$(nproc)
mode=build tmp='' out='' counted=''
source tools/packages.sh
source tools/buildsteps.sh

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

# check_go MORE...: settles on one toolchain for all modules, those of more go.mod files among them: an older Go fetches a newer one itself,
# but then only one.
check_go() {
	local want have
	want=$(awk '$1 == "go" {print $2}' go.mod ./*/go.mod runtime/*/go.mod "$@" | sort -V | tail -1)
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

# ---- what there is to do, and how long it takes ----

# step GROUP NAME COMPILING LINKING TITLE SOURCES...: has NAME built if its group is, unless it is up to date; with no sources it is never
# taken for that. It takes two processors COMPILING + LINKING seconds when nothing is in Go's caches (docs/benchmarks.md).
step() {
	local group=$1 name=$2
	known[$name]=1
	[[ " $groups " == *" $group "* ]] || return 0
	steps+=("$name") compiling[$name]=$3 linking[$name]=$4 titles[$name]=$5
	shift 5
	sources[$name]=$*
	hash[$name]=$(fingerprint "$name" "$@")
	is_fresh "$name" || stale+=("$name")
}

# build NAME: runs the step's function; what follows a hyphen in its name is the argument.
build() { if [[ $1 == *-* ]]; then "build_${1%%-*}" "${1#*-}"; else "build_$1"; fi; }

# is_fresh NAME: there is nothing to do; where only Go can say that, that it was built before.
is_fresh() { if [[ ${sources[$1]} ]]; then fresh "$build/stamps/$1" "${hash[$1]}"; else [[ -e $build/stamps/$1 ]]; fi; }

# missing_share DIRECTORY ARGS...: percent of the packages that Go's cache lacks; all of them where even the modules have to be fetched.
missing_share() {
	local listed
	if listed=$(GOPROXY=off go -C "$1" list -deps "${reproducibly[@]}" -f '{{.Stale}}' "${@:2}" 2>/dev/null); then
		awk '$1 == "true" {n++} END {print int(100 * n / NR)}' <<<"$listed"
	else
		echo 100
	fi
}

# announce: says how long the build will take. More than eight processors wait for one another.
announce() {
	local name share seconds=0 shares=$build/tmp.$$.shares pids=()
	mkdir -p "$shares"
	for name in "${stale[@]}"; do
		(mode=share && build "$name") >"$shares/$name" 9>&- &
		pids+=($!)
	done
	wait "${pids[@]}" || true
	for name in "${stale[@]}"; do
		share=$(<"$shares/$name")
		((seconds += compiling[$name] * share * 2 / 100 / (cores < 8 ? cores : 8) + linking[$name]))
	done
	if ((seconds < 90)); then
		seconds="$(((seconds + 9) / 10 * 10)) seconds"
	else
		seconds="$(((seconds + 30) / 60)) minutes"
	fi
	say "building $what: about $seconds on $cores idle processors, once"
}

# look_ahead NAMES...: compiles what later steps need where the step that is built leaves a processor idle: while it fetches modules, and while
# it links. It gives way to everything else.
look_ahead() {
	end_ahead
	(($#)) || return 0
	mkdir -p "$build/tmp.$$.ahead"
	set -m # a process group of its own, so that all of it can be ended
	(
		renice -n 19 -p "$BASHPID" >/dev/null
		export GOTMPDIR=$build/tmp.$$.ahead
		for name; do
			kill -0 $$ || exit # the script may be killed without a word
			(mode=ahead && build "$name") || true
		done
	) >"$build/logs/ahead.log" 2>&1 </dev/null 9>&- &
	ahead=$!
	set +m
}
end_ahead() {
	[[ -z $ahead ]] || { kill -TERM -- "-$ahead" && wait "$ahead"; } 2>/dev/null || true
	ahead=''
}

# ---- running a step ----

# run NAME LATER...: builds NAME, and compiles for the later ones beside it.
run() {
	local name=$1 title stamp=$build/stamps/$1 log=$build/logs/$1.log start=$SECONDS status=0
	title="[$((++step_number))/${#steps[@]}] ${titles[$1]}"
	if [[ ${sources[$name]} ]] && is_fresh "$name"; then
		say "$title: up to date"
		return
	fi
	shift
	look_ahead "$@"
	# Where Go itself says what is up to date, asking what there is to compile takes longer than that.
	counted=1
	[[ ${sources[$name]} || ! -e $stamp ]] || counted=''
	tmp=$build/tmp.$$ out=$build/tmp.$$/out
	rm -rf "$tmp"
	mkdir -p "$out" "$tmp/go"
	export GOTMPDIR=$tmp/go # on the file system of what is built, so that Go, too, puts it in place by renaming

	set -m # a process group of its own, so that all of it can be ended
	(set -e; build "$name") >"$log" 2>&1 </dev/null &
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
	[[ ! -e $stamp ]] || mv "$stamp" "$build/replaced/$name" # from here on bin/ is neither the old nor the new
	{ printf '%s\n' "${hash[$name]}"; outputs; } >"$tmp/stamp"
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
		declare -f gobuild image pack version "build_${name%%-*}"
		[[ $name != runc ]] || pkg-config --modversion libseccomp
		[[ $name != kubernetes-* ]] || printf '%s\n' "$default"
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

# clear_away removes from bin/ what steps put there once and none does any more. A program that runs goes on without its name.
clear_away() {
	local stamp name output
	for stamp in "$build"/stamps/*; do
		[[ ! -e $stamp || ${known[${stamp##*/}]-} ]] || mv "$stamp" "$build/replaced/"
	done
	for stamp in "$build"/replaced/*; do
		[[ -e $stamp ]] || continue
		name=${stamp##*/}
		[[ -e $build/stamps/$name || ! ${known[$name]-} ]] || continue # it was interrupted
		tail -n +2 "$stamp" | while read -r output; do
			grep -qxFe "$output" "$build"/stamps/* || rm -f "bin/$output"
		done
		rm "$stamp"
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
	end_ahead
	[[ -z $job ]] || { kill -TERM -- "-$job" && wait "$job"; } 2>/dev/null || true
	rm -rf "$build/tmp.$$"* 2>/dev/null || true
}

mkdir -p bin "$build/logs" "$build/stamps" "$build/replaced"
check_system
more=(${2+"kubernetes/$2/go.mod"})
[[ $groups != karpenter ]] || more=(images/karpenter/go.mod)
check_go "${more[@]}"
exec 9>"$build/lock"
flock -n 9 || { say "another build runs here; waiting for it"; flock 9; }
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
rm -rf "$build"/tmp.* 2>/dev/null || true # of builds that were killed

for minor in "${minors[@]}"; do
	group=kubernetes-$minor
	[[ $minor != "$default" || $groups == "$group" ]] || group=node
	step "$group" "kubernetes-$minor" 228 8 "kubernetes $(version k8s.io/kubernetes "kubernetes/$minor")" kubernetes/*.go "kubernetes/$minor"
done
step node etcd 17 2 "etcd $(version go.etcd.io/etcd/server/v3 etcd)" etcd
step node containerd 42 3 "containerd $(version github.com/containerd/containerd/v2 runtime/containerd)" runtime/containerd
step node runc 2 2 "runc $(version github.com/opencontainers/runc runtime/runc)" runtime/runc
step node cni 1 1 "CNI plugins $(version github.com/containernetworking/plugins runtime/cni)" runtime/cni
step node pause 1 1 "image pause" images/go.mod images/go.sum images/archive images/pause
step node workload 0 1 "image workload" images/go.mod images/go.sum images/archive images/workload
step node coredns 43 2 "image coredns $(version github.com/coredns/coredns images)" images/go.mod images/go.sum images/archive images/coredns
step node egress 2 1 "muster-egress"
step node muster 54 6 "muster"
step rest metrics_server 87 3 "image metrics-server $(version sigs.k8s.io/metrics-server images/metricsserver)" \
	images/go.mod images/go.sum images/archive images/metricsserver
step rest pkcs11 2 1 "muster-pkcs11" pkcs11
step rest mcp 3 1 "muster-mcp"
step addons traefik 260 10 "traefik $(version github.com/traefik/traefik/v3 images/traefik)" \
	images/go.mod images/go.sum images/archive images/traefik
step addons snapshot_controller 35 5 "snapshot-controller $(version github.com/kubernetes-csi/external-snapshotter/v8 images/snapshotcontroller)" \
	images/go.mod images/go.sum images/archive images/snapshotcontroller
step karpenter karpenter 240 20 "karpenter $(version github.com/aws/karpenter-provider-aws images/karpenter)" \
	images/go.mod images/go.sum images/archive images/karpenter
step logs victoria_logs 40 4 "victoria-logs $(version github.com/VictoriaMetrics/VictoriaLogs victorialogs)" victorialogs
step cluster-api cluster_api 240 20 "cluster-api $(version sigs.k8s.io/cluster-api clusterapi), cluster-api-provider-aws $(version sigs.k8s.io/cluster-api-provider-aws/v2 clusterapi)" clusterapi

# Who just saw nodes become Ready need not hear that the rest was there.
((${#stale[@]})) || [[ $groups != rest ]] || exit 0
((${#stale[@]} == 0)) || announce
for name in "${steps[@]}"; do
	later=("${stale[@]}")
	while ((${#later[@]})) && [[ ${later[0]} != "$name" ]]; do later=("${later[@]:1}"); done
	run "$name" "${later[@]:1}"
done
clear_away

// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

func root(_ context.Context, host Host) Result {
	const fix = "run it as root (sudo)"
	is, err := host.Root()
	switch {
	case err != nil:
		return unknown(err, fix)
	case !is:
		return Result{Status: Fail, Saw: "not root", Fix: fix}
	}
	return ok("root")
}

func systemd(_ context.Context, host Host) Result {
	const fix = "containerd and kubelet become systemd units; on a machine without systemd run muster node init"
	is, err := host.Systemd()
	switch {
	case err != nil:
		return unknown(err, fix)
	case !is:
		return Result{Status: Fail, Saw: "systemd is not the first process", Fix: fix}
	}
	return ok("systemd is the first process")
}

// hostname is checked as the API server checks a Node's name and, since it becomes a label, as one of those.
func hostname(_ context.Context, host Host) Result {
	const fix = "give the machine a name of lower-case letters, digits, - and . (hostnamectl set-hostname), or pass --node-name"
	name, err := host.Hostname()
	if err != nil {
		return unknown(err, fix)
	}
	problems := validation.IsDNS1123Subdomain(name)
	if len(problems) == 0 {
		problems = validation.IsValidLabelValue(name) // kubernetes.io/hostname
	}
	switch {
	case len(problems) > 0:
		return Result{Status: Fail, Saw: fmt.Sprintf("%q cannot name a node: %s", name, problems[0]), Fix: fix}
	case name == "localhost" || strings.HasPrefix(name, "localhost."):
		return Result{Status: Fail, Saw: fmt.Sprintf("%q names every machine", name), Fix: fix}
	}
	return ok("%s", name)
}

// kernel knows 4.19 as the oldest that kubeadm takes (k8s.io/system-validators), and 5.13 as the oldest that
// kube-proxy's nftables mode runs on (pkg/proxy/nftables).
func kernel(_ context.Context, host Host) Result {
	const fix = "boot a newer kernel: 5.13 at least"
	release, err := host.Kernel()
	if err != nil {
		return unknown(err, fix)
	}
	version, err := kernelVersion(release)
	switch {
	case err != nil:
		return unknown(err, fix)
	case older(version, 4, 19):
		return Result{Status: Fail, Saw: release + ", which Kubernetes does not run on", Fix: fix}
	case older(version, 5, 13):
		return Result{Status: Warn, Saw: release + ", which kube-proxy's nftables mode does not run on", Fix: fix}
	}
	return ok("%s", release)
}

// kernelVersion reads 6.1 in 6.1.0-28-amd64.
func kernelVersion(release string) (version [2]int, err error) {
	parts := strings.SplitN(release, ".", 3)
	if len(parts) < 2 {
		return version, fmt.Errorf("%q is not a kernel release", release)
	}
	for i := range version {
		digits := parts[i]
		if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 && i == 1 { // 6.1-rc1
			digits = digits[:end]
		}
		number, err := strconv.ParseUint(digits, 10, 16)
		if err != nil {
			return version, fmt.Errorf("%q is not a kernel release", release)
		}
		version[i] = int(number)
	}
	return version, nil
}

func older(version [2]int, major, minor int) bool {
	return version[0] < major || version[0] == major && version[1] < minor
}

// cgroups knows that a kubelet refuses version 1 since 1.35 unless its failCgroupV1 is off, as muster sets it there
// (pkg/kubelet/apis/config/v1beta1/defaults.go).
func cgroups(_ context.Context, host Host) Result {
	const fix = "boot with systemd.unified_cgroup_hierarchy=1"
	found, err := host.Cgroups()
	switch {
	case err != nil:
		return unknown(err, fix)
	case len(found.Missing) > 0:
		return Result{
			Status: Fail, Saw: fmt.Sprintf("version %d without %s", found.Version, strings.Join(found.Missing, ", ")),
			Fix: "enable these controllers; on the kernel's command line cgroup_enable=memory is often what is missing",
		}
	case found.Version != 2:
		return Result{
			Status: Warn, Saw: "version 1, which Kubernetes is about to drop",
			Fix: fix + "; until then kubelets need failCgroupV1: false, which muster sets and kubeadm's configuration must",
		}
	}
	return ok("version 2")
}

// swap keeps a kubelet from starting on a host of systemd's, unless its failSwapOn is off.
func swap(_ context.Context, host Host) Result {
	const fix = "swapoff -a, and remove it from /etc/fstab; or let the kubelet have it: spec.kubelet.config.failSwapOn: false in a NodeConfig (--config-source)"
	areas, err := host.Swap()
	switch {
	case err != nil:
		return unknown(err, fix)
	case len(areas) > 0 && host.SwapAllowed():
		return ok("on: %s, which the kubelet is told to run with", strings.Join(areas, ", "))
	case len(areas) > 0:
		return Result{Status: Fail, Saw: "on: " + strings.Join(areas, ", "), Fix: fix}
	}
	return ok("off")
}

func overlay(_ context.Context, host Host) Result {
	has, err := host.Overlay()
	return feature(has, err, "the overlay file system", "modprobe overlay", "images are copied instead, slow and large")
}

func nftables(_ context.Context, host Host) Result {
	has, err := host.Nftables()
	return feature(has, err, "nf_tables", "modprobe nf_tables", "kube-proxy cannot make Services")
}

func conntrack(_ context.Context, host Host) Result {
	has, err := host.Conntrack()
	return feature(has, err, "connection tracking", "modprobe nf_conntrack", "kube-proxy cannot make Services")
}

func feature(has bool, err error, what, fix, otherwise string) Result {
	switch {
	case err != nil:
		return unknown(err, fix)
	case !has:
		return Result{Status: Fail, Saw: fmt.Sprintf("the kernel lacks %s: %s", what, otherwise), Fix: fix}
	}
	return ok("the kernel has %s", what)
}

func forwarding(_ context.Context, host Host) Result {
	const fix = "sysctl -w net.ipv4.ip_forward=1, and the same in a file in /etc/sysctl.d"
	value, err := host.Setting("net.ipv4.ip_forward")
	switch {
	case err != nil:
		return unknown(err, fix)
	case value != "1":
		return Result{Status: Warn, Saw: fmt.Sprintf("%q: packets of pods do not leave the machine", value), Fix: fix}
	}
	return ok("on")
}

// disk wants more to be free than the kubelet's eviction thresholds, which otherwise begin to remove pods at once:
// nodefs.available 10%, nodefs.inodesFree 5%.
func disk(_ context.Context, host Host) Result {
	const (
		dir   = "/var/lib"
		least = 1 << 30
		fix   = "make room below /var/lib, or mount a larger disk there"
	)
	space, err := host.Space(dir)
	switch {
	case err != nil:
		return unknown(err, fix)
	case space.Total == 0:
		return unknown(fmt.Errorf("the file system of %s does not say how large it is", dir), fix)
	}
	saw := fmt.Sprintf("%.1f GiB of %.1f GiB free in %s", gibibytes(space.Free), gibibytes(space.Total), dir)
	switch {
	case space.Free < least:
		return Result{Status: Fail, Saw: saw, Fix: fix}
	case space.Free < space.Total/10:
		return Result{Status: Warn, Saw: saw + ", below a tenth: the kubelet evicts pods", Fix: fix}
	case space.TotalInodes > 0 && space.FreeInodes < space.TotalInodes/20:
		return Result{Status: Warn, Saw: fmt.Sprintf("%s, but %d of %d inodes: the kubelet evicts pods", saw, space.FreeInodes, space.TotalInodes), Fix: fix}
	}
	return ok("%s", saw)
}

func gibibytes(n uint64) float64 { return float64(n) / (1 << 30) }

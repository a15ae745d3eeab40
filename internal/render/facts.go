// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"net/netip"
)

// Instance is what the provider made the machine: it comes from the provider and never from the user data.
type Instance struct {
	ID             string
	PrivateIP      netip.Addr
	PrivateDNSName string
}

// ProviderID is how a Node names its machine.
func (i Instance) ProviderID() string { return "muster:///" + i.ID }

// Facts is what the machine found itself to be.
type Facts struct {
	CPUs          int
	MemoryBytes   int64
	CgroupVersion int
	Kernel        string
	// SysResource tells whether it has CAP_SYS_RESOURCE, without which no process can be made less likely to be killed
	// when memory runs out.
	SysResource bool
	// OverlayFS tells whether the machine's disk can hold overlays.
	OverlayFS bool
}

// ClusterDNS is the address of the cluster's DNS service: the tenth after the service network's own. (nodeadm replaces the
// text after the last dot instead, which leaves 172.20.0.16/28.)
func ClusterDNS(serviceCIDR netip.Prefix) (netip.Addr, error) {
	address := serviceCIDR.Masked().Addr()
	for range 10 {
		address = address.Next()
	}
	if !serviceCIDR.Contains(address) {
		return netip.Addr{}, fmt.Errorf("service CIDR %s has no tenth address for DNS: choose a /28 or larger", serviceCIDR)
	}
	return address, nil
}

// reserved is the share of the machine that pods do not get: for kubelet and containerd, by EKS's formula (amazon-eks-ami,
// nodeadm/internal/kubelet/config.go): 6 % of the first processor, 1 % of the second, 0.5 % of the next two, 0.25 % of the
// rest; 255 MiB of memory and 11 for each pod. A machine too small for that reserves a quarter of what it has: a kubelet
// whose reservation exceeds its capacity refuses to start.
func (f Facts) reserved(maxPods int32) map[string]string {
	tenthsOfMillis := 0 // in 1/10 of a millicore, to stay with integers
	for cpu := range f.CPUs {
		switch {
		case cpu == 0:
			tenthsOfMillis += 600
		case cpu == 1:
			tenthsOfMillis += 100
		case cpu < 4:
			tenthsOfMillis += 50
		default:
			tenthsOfMillis += 25
		}
	}
	mebibytes := min(int64(11*maxPods+255), f.MemoryBytes>>20/4)
	return map[string]string{
		"cpu":               fmt.Sprintf("%dm", tenthsOfMillis/10),
		"memory":            fmt.Sprintf("%dMi", mebibytes),
		"ephemeral-storage": "1Gi",
	}
}

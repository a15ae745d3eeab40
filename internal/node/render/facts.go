// SPDX-License-Identifier: Apache-2.0

package render

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/platform/release"
)

// Instance is what the provider made the machine: it comes from the provider or the host itself, and never from the
// user data.
type Instance struct {
	// ID is empty for a host that nobody launched.
	ID               string
	Type             string
	Region           string
	AvailabilityZone string
	// AvailabilityZoneID is what all accounts call the zone by: use1-az1.
	AvailabilityZoneID string
	PrivateIP          netip.Addr
	// IPv6 is an address of that kind that it has beside PrivateIP; not valid if there is none.
	IPv6           netip.Addr
	PrivateDNSName string
	// PodRange is the range of its subnet that its pods have their addresses of; not valid if they have none.
	PodRange netip.Prefix
	// Release of Kubernetes that the image which it was launched from has. A host that nobody launched runs what is
	// installed on it.
	Release release.Release
}

// ProviderID is how a Node names its machine, as nodeadm sets it (amazon-eks-ami, nodeadm/internal/kubelet/config.go);
// empty if the machine has no id.
func (i Instance) ProviderID() string {
	if i.ID == "" {
		return ""
	}
	return "aws:///" + i.AvailabilityZone + "/" + i.ID
}

// Labels are the labels of a Node that say where its machine is and of which type. On AWS the cloud controller sets
// them, which does not run here (cloud-provider, controllers/node/node_controller.go; cloud-provider-aws,
// pkg/providers/v1/aws.go). An unknown fact gets no label, and a host that was not launched as an instance gets no
// labels.
func (i Instance) Labels() map[string]string {
	labels := map[string]string{}
	if i.ID == "" {
		return labels
	}
	for key, value := range map[string]string{
		corev1.LabelInstanceTypeStable: i.Type,
		corev1.LabelTopologyRegion:     i.Region,
		corev1.LabelTopologyZone:       i.AvailabilityZone,
		labelZoneID:                    i.AvailabilityZoneID,
	} {
		if value != "" {
			labels[key] = value
		}
	}
	return labels
}

// labelZoneID is cloud-provider-aws's (pkg/providers/v1/well_known_labels.go). It is in no namespace that a kubelet
// must keep out of.
const labelZoneID = "topology.k8s.aws/zone-id"

// Facts is what the machine found itself to be.
type Facts struct {
	CPUs        int
	MemoryBytes int64
	// PIDs is how many processes it may have at a time, each thread counted; 0 if that is not known.
	PIDs          int64
	CgroupVersion int
	Kernel        string
	// SysResource reports whether it has CAP_SYS_RESOURCE, without which no process can be made less likely to be
	// killed when memory runs out.
	SysResource bool
	// UserNamespace reports whether it has one of its own: root there is nobody on the host.
	UserNamespace bool
	// OpenFiles is the hard limit of open files (RLIMIT_NOFILE) that its programs begin with; 0 if they may raise it,
	// or it is not known.
	OpenFiles uint64
	// OverlayFS reports whether the machine's disk can hold overlays.
	OverlayFS bool
	// IPTables reports whether the machine has the program iptables, in one of ProgramDirectories.
	IPTables bool
	// Authenticator is where aws-iam-authenticator is, PathAuthenticator if empty.
	Authenticator string
	// ResolverConfig is the file that names the real name servers, /etc/resolv.conf if empty. Where systemd-resolved
	// runs that is /run/systemd/resolve/resolv.conf: its stub on 127.0.0.53 is out of pods' reach, and CoreDNS would
	// ask itself.
	ResolverConfig string
	// NameServers and SearchDomains are those that a machine has in /etc/resolv.conf.
	NameServers, SearchDomains []string
}

// ProgramDirectories are where programs of the system are, as the kubelet's unit looks for them (systemd.exec(5),
// PATH).
func ProgramDirectories() []string {
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
}

// NodeIP is the address that the node registers by: of the kind that Services' addresses are of, as on EKS.
func NodeIP(spec nodeconfig.Spec, instance Instance) netip.Addr {
	if ipv6(spec) && instance.PrivateIP.Is4() {
		return instance.IPv6
	}
	return instance.PrivateIP
}

func ipv6(spec nodeconfig.Spec) bool {
	services, err := netip.ParsePrefix(spec.Cluster.CIDR)
	return err == nil && services.Addr().Is6()
}

// NodeName is the name that the machine registers by: the one it was told, or else its own. InstanceIdNodeName makes
// its id its own name, as on EKS.
func NodeName(spec nodeconfig.Spec, instance Instance) string {
	if name := spec.Join.NodeName; name != "" {
		return name
	}
	if name, ok := lastFlag(spec.Kubelet.Flags, flagHostnameOverride); ok {
		return name
	}
	if spec.FeatureGates[nodeconfig.GateInstanceIDNodeName] {
		return instance.ID
	}
	return instance.PrivateDNSName
}

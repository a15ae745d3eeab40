// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"slices"
)

// Provider names the source of machines.
//
// +kubebuilder:validation:Enum=local;simulated
type Provider string

const (
	// ProviderLocal makes machines from Linux namespaces of this host, each with a kubelet and containerd. It needs root.
	ProviderLocal Provider = "local"
	// ProviderSimulated makes machines that join by the same protocol but run no kubelet and no pods. It does not need root.
	ProviderSimulated Provider = "simulated"
	// DefaultProvider makes the machines of a group that names no provider, and those of the AWS APIs.
	DefaultProvider = ProviderLocal
)

// Capability is something that machines of some providers can do, as a phrase that follows "can": code asks for it instead of comparing providers.
type Capability string

const (
	// RunPods means that a kubelet runs pods on the machine, by programs and on a disk of this host: making the machine needs root, the programs are
	// separated from the host, claim memory and inotify instances of it, and the pods are evicted before the machine is deleted.
	RunPods Capability = "run pods"
	// JoinNetwork means that the machine has an interface in its VPC: security groups apply, it reads instance metadata, and its own services are
	// reached.
	JoinNetwork Capability = "join a network"
	// MountVolumes means that directories and block devices of the host are mounted on the machine.
	MountVolumes Capability = "mount volumes"
	// AttachBlocks means that files on the machine become its block devices.
	AttachBlocks Capability = "attach block devices"
	// KeepLogs means that the machine keeps logs of its own and reports what keeps it from becoming a node.
	KeepLogs Capability = "keep logs"
	// OpenShell means that commands of the host's root run on the machine.
	OpenShell Capability = "open a shell"
)

// Capabilities returns every capability.
func Capabilities() []Capability {
	return []Capability{RunPods, JoinNetwork, MountVolumes, AttachBlocks, KeepLogs, OpenShell}
}

// ability is what machines of a provider can do.
type ability struct {
	provider Provider
	can      []Capability
	instead  map[Capability]string // the way out for people, if it is not to choose another provider
}

// abilities returns the table of providers. A provider whose machines cannot do something is not asked to (internal/machine/machine.Providers).
func abilities() []ability {
	return []ability{
		{provider: ProviderLocal, can: Capabilities()},
		{provider: ProviderSimulated, instead: map[Capability]string{
			KeepLogs:  "muster logs simulator",
			OpenShell: "it only speaks the protocol of a node; local machines have one",
		}},
	}
}

// Providers returns every provider, as the CRDs allow them.
func Providers() []Provider {
	var all []Provider
	for _, a := range abilities() {
		all = append(all, a.provider)
	}
	return all
}

// ProviderNames returns the names of all providers, as the flags --provider take them.
func ProviderNames() []string {
	var names []string
	for _, p := range Providers() {
		names = append(names, string(p))
	}
	return names
}

// ProvidersThat returns the providers whose machines have a capability.
func ProvidersThat(can Capability) []Provider {
	return slices.DeleteFunc(Providers(), func(p Provider) bool { return !p.Can(can) })
}

// ability returns the row of a provider; an unknown one can do nothing.
func (p Provider) ability() ability {
	for _, a := range abilities() {
		if a.provider == cmp.Or(p, DefaultProvider) {
			return a
		}
	}
	return ability{provider: p}
}

// Can reports whether machines of the provider have a capability. An empty name is that of the default provider, as the API server fills it in. Machines
// of an unknown provider have no capability.
func (p Provider) Can(do Capability) bool { return slices.Contains(p.ability().can, do) }

// Instead returns what people do about a capability that machines of the provider lack, or "".
func (p Provider) Instead(of Capability) string { return p.ability().instead[of] }

// SPDX-License-Identifier: Apache-2.0

package render

// Layout is what kind of system the files are for.
type Layout struct {
	// BinDir is where the programs are, /usr/local/bin if empty.
	BinDir string
	// CNIBinDir is where the network plugins are, /opt/cni/bin if empty.
	CNIBinDir string
	// Systemd tells that systemd runs the programs, as services. Without it the node agent does.
	Systemd bool
	// ExistingContainerd tells that the host has a containerd of its own, whose configuration is not touched.
	ExistingContainerd bool
}

// BinDir is where a machine of the local provider has muster's and Kubernetes' programs, read-only.
const BinDir = "/opt/muster/bin"

// MachineLayout is that of a machine of the local provider.
func MachineLayout() Layout { return Layout{BinDir: BinDir, CNIBinDir: BinDir + "/cni"} }

// HostLayout is that of a host that systemd runs.
func HostLayout() Layout { return Layout{Systemd: true}.complete() }

// complete fills in what is left empty.
func (l Layout) complete() Layout {
	if l.BinDir == "" {
		l.BinDir = "/usr/local/bin"
	}
	if l.CNIBinDir == "" {
		l.CNIBinDir = "/opt/cni/bin"
	}
	return l
}

// SPDX-License-Identifier: Apache-2.0

// Package servicestatus is the status of a service: what it runs, what it waits for, and what an operator should know,
// as `muster status` prints it. [Observe] reads clusters, node groups and machines from the caches of the controllers,
// and asks no API server.
package servicestatus

import (
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotation"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/plane/etcdspace"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/plane/runner"
)

// Status describes the service, the account's components and its clusters.
type Status struct {
	Version  string    `json:"version"`
	StateDir string    `json:"stateDir"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	// Message says what the service works at or what keeps it from working; empty when all is well.
	Message string `json:"message,omitempty"`
	// Notes are what an operator should know of an account that serves its clusters, such as that issuers are not
	// served, and by whom their port is taken.
	Notes []string `json:"notes,omitempty"`
	// UnlimitedMemory is why API servers run without a memory limit; empty if they have one.
	UnlimitedMemory string `json:"unlimitedMemory,omitempty"`
	// NoOwnUsers is why components of clusters run as the user of the service; empty if each gets a user of its own
	// when it starts.
	NoOwnUsers string `json:"noOwnUsers,omitempty"`
	// Components are the account's own; each cluster has its own besides.
	Components []runner.Status `json:"components"`
	Clusters   []Cluster       `json:"clusters"`
	// Etcd is the space that the management plane's etcd has, by what it said last.
	Etcd etcdspace.Space `json:"managementEtcd,omitzero"`
	// Looking is true until the service has found every cluster that it is to run.
	Looking bool `json:"looking,omitempty"`
	// Host is what the local nodes of all clusters share.
	Host capacity.Host `json:"host"`
}

// Rotation describes the authority that signs kubelets' certificates, and of the rotation that replaces it.
type Rotation struct {
	// Signs is the authority that signs now, Trusts are all that are trusted.
	Signs  string   `json:"signs"`
	Trusts []string `json:"trusts"`
	// Rotation is the one under way.
	Rotation *rotation.Rotation `json:"rotation,omitempty"`
	// Message says what it waits for.
	Message string `json:"message,omitempty"`
	// Progress is how far the nodes are.
	Progress *rotation.Progress `json:"progress,omitempty"`
	// Last is the rotation before.
	Last *authority.Rotated `json:"last,omitempty"`
}

// Cluster describes one cluster: its components, node groups and machines.
type Cluster struct {
	Name string `json:"name"`
	// Namespace of the cluster in the management plane.
	Namespace string `json:"namespace"`
	Endpoint  string `json:"endpoint"`
	Version   string `json:"version,omitempty"`
	Ready     bool   `json:"ready"`
	// Message says what the cluster waits for; empty when all is well.
	Message    string          `json:"message,omitempty"`
	Components []runner.Status `json:"components"`
	NodeGroups []NodeGroup     `json:"nodeGroups"`
	Machines   []Machine       `json:"machines"`
	// Settled is true when the controllers have seen everything that was asked for, so that the counts can be believed.
	Settled bool `json:"settled"`
	// Rotation describes the authority that signs kubelets' certificates.
	Rotation *Rotation `json:"kubeletAuthority,omitempty"`
	// TokenKeys are the keys of service account tokens.
	TokenKeys []TokenKey `json:"serviceAccountKeys,omitempty"`

	// Etcd is the space that the cluster's etcd has, by what it said last.
	Etcd etcdspace.Space `json:"etcd,omitzero"`

	// Notes are what an operator should know of a cluster with which nothing is wrong.
	Notes []string `json:"notes,omitempty"`

	localNodes []string // the instance types of nodes of local machines, for the host
}

// NodeGroup sums up one node group.
type NodeGroup struct {
	Name     string            `json:"name"`
	Provider v1alpha1.Provider `json:"provider"`
	// Version is the minor version of Kubernetes that new machines have.
	Version string `json:"version,omitempty"`
	// Isolation is that of machines which the group makes; empty for simulated machines.
	Isolation v1alpha1.Isolation `json:"isolation,omitempty"`
	Desired   int32              `json:"desired"`
	Machines  int32              `json:"machines"`
	Ready     int32              `json:"ready"`
	Message   string             `json:"message,omitempty"`
}

// Machine sums up one machine.
type Machine struct {
	Name      string `json:"name"`
	NodeGroup string `json:"nodeGroup"`
	NodeName  string `json:"nodeName,omitempty"`
	// Isolation is what separates the machine from the host; empty for simulated machines.
	Isolation v1alpha1.Isolation    `json:"isolation,omitempty"`
	Phase     v1alpha1.MachinePhase `json:"phase"`
	// Step is the last step of its way in.
	Step v1alpha1.JoinStep `json:"step,omitempty"`
	// Reason is the reason of the condition Ready, for programs.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Kept reports whether something other than time keeps a machine on its way in from getting on.
func (m Machine) Kept() bool {
	return m.Phase == v1alpha1.MachineJoining && m.Reason != "" && m.Reason != readiness.ReasonJoining && m.Reason != readiness.ReasonNodeNotReady
}

// Ready reports whether everything that was asked for is there, and may stay: each cluster and every node of every
// group.
func (s Status) Ready() bool {
	return !s.Looking && !slices.ContainsFunc(s.Clusters, func(c Cluster) bool { return !c.AsAsked() })
}

// In returns the status of the cluster with a namespace, if it runs here.
func (s Status) In(namespace string) (Cluster, bool) {
	for _, c := range s.Clusters {
		if c.Namespace == namespace {
			return c, true
		}
	}
	return Cluster{}, false
}

// AsAsked reports whether the cluster is ready, as its condition and each of its components say, and every node of
// every group is.
func (c Cluster) AsAsked() bool {
	if !c.Settled || !c.Ready || slices.ContainsFunc(c.Components, func(p runner.Status) bool { return p.State != runner.Ready }) {
		return false
	}
	if slices.ContainsFunc(c.NodeGroups, func(g NodeGroup) bool { return !c.IsWhole(g) }) {
		return false
	}
	return !slices.ContainsFunc(c.Machines, func(m Machine) bool { return m.Phase == v1alpha1.MachineReady && m.Message != "" })
}

// IsWhole reports whether a node group of the cluster has as many machines as it is to have, and each of them is Ready, or
// stopped as it was asked to be.
func (c Cluster) IsWhole(group NodeGroup) bool {
	good := group.Ready
	for _, m := range c.Machines {
		if m.NodeGroup == group.Name && m.Phase == v1alpha1.MachineStopped {
			good++
		}
	}
	return good == group.Desired && group.Machines == group.Desired
}

// Add adds a cluster. Nodes of its local machines claim the host.
func (s *Status) Add(cluster Cluster) {
	s.Clusters = append(s.Clusters, cluster)
	for _, kind := range cluster.localNodes {
		s.Host.Claim(kind)
	}
}

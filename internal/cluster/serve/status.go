// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotation"
	"muster.dev/muster/internal/cluster/readiness"
	"muster.dev/muster/internal/cluster/supervise"
)

// Status describes the service and the components, node groups and machines that it runs.
type Status struct {
	Version  string    `json:"version"`
	StateDir string    `json:"stateDir"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	// Message says what the service works at or what keeps it from working; empty when all is well.
	Message    string             `json:"message,omitempty"`
	Components []supervise.Status `json:"components"`
	Cluster    ClusterStatus      `json:"cluster"`
	NodeGroups []NodeGroupStatus  `json:"nodeGroups"`
	Machines   []MachineStatus    `json:"machines"`
	// Host is what the local nodes share.
	Host HostStatus `json:"host"`
	// Settled is true when the controllers have seen everything that was asked for, so that the counts can be believed.
	Settled bool `json:"settled"`
	// Rotation describes the authority that signs kubelets' certificates.
	Rotation *RotationStatus `json:"kubeletAuthority,omitempty"`
}

// RotationStatus describes the authority that signs kubelets' certificates, and of the rotation that replaces it.
type RotationStatus struct {
	// Signs is who signs now, Trusts are all who are trusted.
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

// ClusterStatus sums up the cluster.
type ClusterStatus struct {
	Name     string `json:"name"`
	Endpoint string `json:"endpoint"`
	Version  string `json:"version,omitempty"`
	Ready    bool   `json:"ready"`
	Message  string `json:"message,omitempty"`
}

// NodeGroupStatus sums up one node group.
type NodeGroupStatus struct {
	Name     string            `json:"name"`
	Provider v1alpha1.Provider `json:"provider"`
	Desired  int32             `json:"desired"`
	Machines int32             `json:"machines"`
	Ready    int32             `json:"ready"`
	Message  string            `json:"message,omitempty"`
}

// MachineStatus sums up one machine.
type MachineStatus struct {
	Name      string                `json:"name"`
	NodeGroup string                `json:"nodeGroup"`
	NodeName  string                `json:"nodeName,omitempty"`
	Phase     v1alpha1.MachinePhase `json:"phase"`
	// Step is the last step of its way in.
	Step v1alpha1.JoinStep `json:"step,omitempty"`
	// Reason is the reason of the condition Ready, for programs.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Kept reports whether something other than time keeps a machine on its way in from getting on.
func (m MachineStatus) Kept() bool {
	return m.Phase == v1alpha1.MachineJoining && m.Reason != "" && m.Reason != readiness.ReasonJoining && m.Reason != readiness.ReasonNodeNotReady
}

// Ready reports whether everything that was asked for is there, and may stay: the cluster and every node of every group.
func (s Status) Ready() bool {
	if !s.Settled || !s.Cluster.Ready {
		return false
	}
	for _, group := range s.NodeGroups {
		if group.Ready != group.Desired || group.Machines != group.Desired {
			return false
		}
	}
	return !slices.ContainsFunc(s.Machines, func(m MachineStatus) bool { return m.Phase == v1alpha1.MachineReady && m.Message != "" })
}

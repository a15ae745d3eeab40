// SPDX-License-Identifier: Apache-2.0

package view

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/iam/identity"
)

// Facts are what was read of an installation at a moment.
type Facts struct {
	At       time.Time
	Clusters []v1alpha1.Cluster
	Groups   []v1alpha1.NodeGroup
	Machines []v1alpha1.Machine
	Updates  []v1alpha1.Update
	Subnets  []v1alpha1.Subnet
	// DefaultVPC is the id of the VPC of clusters that name no subnets; empty if there is none.
	DefaultVPC string
	// Roles are the IAM roles that a new cluster or its machines can have.
	Roles []Role
	// Associations are the roles of pods, and Refusals who was refused lately, the newest first.
	Associations []v1alpha1.PodIdentityAssociation
	Refusals     []Refusal
	// Of are the clusters' own objects, by the spec.name of the cluster.
	Of map[string]Cluster
	// Wrong is all that is wrong now, as muster explain says it.
	Wrong diagnosis.Overview
}

// Cluster is what was read of a cluster's own API server and of its record of certificates.
type Cluster struct {
	Nodes   []corev1.Node
	Reviews []csrview.Review
	// Certificates that were issued to nodes and people, the newest of each owner and signer, and those of the control plane.
	Certificates []Certificate
	Access       ClusterAccess
}

// ClusterAccess is what was read of who gets into a cluster.
type ClusterAccess struct {
	// Mode is the authentication mode; empty if nothing could be read.
	Mode     identity.Mode
	Grants   []Grant
	Problems []identity.Problem
	Notes    []string
	Tokens   []Token
}

// Certificate is one certificate and its life.
type Certificate struct {
	Cluster string `json:"cluster,omitempty"` // empty for one of the account
	// Owner is the node, person or component that has it.
	Owner string `json:"owner"`
	// Signer is the short name of the signer, or the authority's name of a component's certificate; empty for an authority.
	Signer  string `json:"signer,omitempty"`
	Machine string `json:"machine,omitempty"`
	// Request is the certificate signing request that it was issued for; empty for a component.
	Request   string    `json:"request,omitempty"`
	Serial    string    `json:"serial,omitempty"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
	// Renewal is when Muster renews it; zero where its owner does, or nobody.
	Renewal time.Time `json:"renewal,omitzero"`
	// Authority reports whether it is an authority, and Role what that one does: signs, trusted or withdrawn.
	Authority bool   `json:"authority,omitempty"`
	Role      string `json:"role,omitempty"`
}

// State is how a machine is, in one word.
type State string

// The states of a machine, from the one that asks for attention to the one that does not.
const (
	Wrong   State = "wrong"   // explain says that something is wrong
	Joining State = "joining" // on its way in, within its time
	Leaving State = "leaving" // being deleted
	Idle    State = "idle"    // stopped or warm, as its spec says
	Ready   State = "ready"   // its Node is Ready
)

// States are all states in that order.
func States() []State { return []State{Wrong, Joining, Leaving, Idle, Ready} }

// troubles are the reports about machines, by the machine's instance id.
func (f *Facts) troubles() map[string]*diagnosis.Report {
	found := map[string]*diagnosis.Report{}
	for i := range f.Wrong.Reports {
		if r := &f.Wrong.Reports[i]; r.Kind == "machine" {
			found[r.Name] = r
		}
	}
	return found
}

// stateOf is the state of a machine. A report may say that something is wrong with it.
func stateOf(m *v1alpha1.Machine, wrong bool) State {
	switch phase := m.Status.Phase; {
	case wrong:
		return Wrong
	case !m.DeletionTimestamp.IsZero() || phase == v1alpha1.MachineTerminating:
		return Leaving
	case phase == v1alpha1.MachineReady:
		return Ready
	case phase == v1alpha1.MachineStopped || phase.Warm():
		return Idle
	case phase == v1alpha1.MachineNotReady:
		return Wrong // it was Ready, and its Node says nothing any more
	}
	return Joining
}

// zones are the availability zones of subnets, by the subnet's name.
func (f *Facts) zones() map[string]string {
	found := map[string]string{}
	for i := range f.Subnets {
		found[f.Subnets[i].Name] = f.Subnets[i].Spec.AvailabilityZone
	}
	return found
}

// address is the private address of a machine; empty before it has one.
func address(m *v1alpha1.Machine) string {
	for _, a := range m.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Graph is what a template asks for: its resources by their logical ids, without those whose condition is false. It has no
// cycles, and each need is a resource of the graph.
type Graph map[string]Node

// Node is one resource of a template.
type Node struct {
	Type string
	// Needs are the logical ids that its properties and DependsOn refer to.
	Needs []string
	// DeletionPolicy is about a resource that is deleted with the stack or is not in the next template any more,
	// ReplacePolicy about one that is replaced.
	DeletionPolicy, ReplacePolicy Policy
}

// State is what has to be kept of a stack. Attributes and properties may hold secrets.
type State struct {
	Status Status
	Reason string
	// OnFailure and Graph are those of the last creation or update.
	OnFailure OnFailure
	Graph     Graph
	// Retain are logical ids that the deletion leaves alone.
	Retain []string
	// Resources in the order in which their creation began. A logical id has more than one while it is being replaced.
	Resources []Resource
	// Serial is the last resource's.
	Serial int
}

// Resource is a physical resource, from the moment at which its creation is decided. It stays, with the status
// DELETE_COMPLETE or DELETE_SKIPPED, until the stack's next update.
type Resource struct {
	LogicalID, Type string
	// Serial is unique in the stack, and never used again.
	Serial     int
	PhysicalID string
	Attributes map[string]any
	Status     Status
	Reason     string
	Definition
	// Was is the definition before the update that is under way; nil if the update has not reached the resource.
	Was *Definition
	// Tried is the definition that an update, which is being rolled back, asked for; nil if it did not reach the resource.
	Tried *Definition
	// Refers are the serials of resources that the physical resource may refer to.
	Refers []int
	Work   Work
	// Superseded resources are those that were replaced or are not in the template any more.
	Superseded bool
	// New resources were made by the operation that is under way.
	New bool
	// Touched resources were updated by the update that is under way, or it tried.
	Touched bool
	// Done reports that the phase of the operation that is under way has nothing more to do to the resource.
	Done bool
}

// Definition is what a resource was asked to be.
type Definition struct {
	Properties map[string]any
	Needs      []string
	// On are the serials of the resources that were its needs.
	On             []int
	DeletionPolicy Policy
}

// Event is something that DescribeStackEvents lists.
type Event struct {
	// LogicalID is empty for an event of the stack itself, as Type and PhysicalID are.
	LogicalID, Type, PhysicalID string
	Status                      Status
	Reason                      string
}

// Token is the client token of the resource's creation: the same however often the creation is asked for, and another for
// each resource of each stack. It has 32 hexadecimal digits. The seed is the stack's own. Who knows it can make a resource that
// the stack takes for the one that it made.
func (r Resource) Token(seed string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", seed, r.Serial))
	return hex.EncodeToString(sum[:16])
}

// Gone reports whether the stack does not have the resource any more: it was deleted or retained.
func (r Resource) Gone() bool { return r.Status == DeleteComplete || r.Status == DeleteSkipped }

// current reports whether the resource is what its logical id stands for.
func (r Resource) current() bool { return !r.Superseded && !r.Gone() }

// Current is the resource that a logical id stands for, which Ref and Fn::GetAtt are about.
func (s State) Current(logicalID string) (Resource, bool) {
	if at := s.at(logicalID); at >= 0 {
		return s.Resources[at], true
	}
	return Resource{}, false
}

// at is the place of a logical id's current resource, -1 without one.
func (s State) at(logicalID string) int {
	return slices.IndexFunc(s.Resources, func(r Resource) bool { return r.LogicalID == logicalID && r.current() })
}

// clone copies what Next and Record change. The maps, slices and pointers of a resource are replaced, never changed.
func (s State) clone() State {
	s.Resources = slices.Clone(s.Resources)
	return s
}

// definition is a node's, on the resources that its needs are now.
func (s State) definition(node Node, properties map[string]any) Definition {
	d := Definition{Properties: properties, Needs: node.Needs, DeletionPolicy: node.DeletionPolicy}
	for _, need := range node.Needs {
		if at := s.at(need); at >= 0 {
			d.On = append(d.On, s.Resources[at].Serial)
		}
	}
	return d
}

// ids are the logical ids of a graph, sorted.
func (g Graph) ids() []string { return slices.Sorted(maps.Keys(g)) }

// named are the logical ids of the resources that a function chooses, sorted, as reasons list them; empty without one.
func (s State) named(words string, of func(Resource) bool) string {
	var ids []string
	for _, r := range s.Resources {
		if of(r) && !slices.Contains(ids, r.LogicalID) {
			ids = append(ids, r.LogicalID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	slices.Sort(ids)
	return fmt.Sprintf("The following resource(s) failed to %s: [%s]. ", words, strings.Join(ids, ", "))
}

// SPDX-License-Identifier: Apache-2.0

package scalingplan

import (
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
)

// Group is what a plan needs to know of a group.
type Group struct {
	// Min, Max and Desired are capacities: sums of weights.
	Min, Max, Desired int
	// Subnets that instances are launched in.
	Subnets []Subnet
	// Types of instances, by priority. At least one.
	Types []Type
	// Avoid are places in which launches failed and are not tried at the moment.
	Avoid []Place
	// Policies of termination; empty means Default.
	Policies []string
	// Suspended processes.
	Suspended []string
	// HoldsLaunch and HoldsTermination report whether the group has hooks of the transition.
	HoldsLaunch, HoldsTermination bool
	// Deleting has all instances end, without hooks.
	Deleting bool
	// Change is the cause of the last change of sizes, until the group has been of its desired capacity.
	Change string
	// OnDemandBase instances are on demand, and OnDemandPercent of those above it; the rest is spot.
	OnDemandBase, OnDemandPercent int
	// Refresh replaces outdated instances; nil if none goes on.
	Refresh *Refresh
}

// Subnet is a subnet and its availability zone.
type Subnet struct{ ID, Zone string }

// Type is an instance type and what an instance of it counts.
type Type struct {
	Name   string
	Weight int
}

// Place is where and as what an instance is launched.
type Place struct{ Subnet, Type string }

// Refresh is how outdated instances are replaced.
type Refresh struct {
	// MinHealthy and MaxHealthy are percentages of the desired capacity.
	MinHealthy, MaxHealthy int
	// Warmup is the time in service until an instance counts as healthy.
	Warmup time.Duration
	// Protected instances are replaced, too.
	Protected bool
}

// Machine is what there is of an instance.
type Machine int

// The states of machines.
const (
	Requested Machine = iota // the instance is in the group's status, and its Machine was not seen yet
	Starting                 // the Machine is there, and nothing runs yet
	Running
	Stopped
	Ending // the Machine is being deleted
	Gone   // the Machine was there
)

// Instance is an instance of a group.
type Instance struct {
	ID, Subnet, Zone string
	Type             Type
	State            v1alpha1.LifecycleState
	Since, Launched  time.Time
	Machine          Machine
	Template         int64 // age of its version: the higher, the newer; 0 if it is not known
	Wish             v1alpha1.Wish
	WishCause        string
	Protected        bool
	Outdated         bool // a refresh is to replace it
	Spare            bool // it was launched before another one goes
	Spot             bool
	Actions          []v1alpha1.LifecycleAction
}

// Kind is what an action does.
type Kind string

// The kinds of actions.
const (
	Launch Kind = "Launch" // asks for a new instance, in a subnet, of a type
	Move   Kind = "Move"   // has an instance be in another state; the hooks of a state that waits begin
	End    Kind = "End"    // deletes the Machine
	Leave  Kind = "Leave"  // takes the Machine out of the group
	Forget Kind = "Forget" // takes the instance out of the status
)

// Action is one thing to do. A launch has Subnet, Type, Spot and Spare; all others have Instance.
type Action struct {
	Kind     Kind
	Instance string
	State    v1alpha1.LifecycleState // of a move
	Subnet   string
	Type     Type
	Spot     bool
	Spare    bool
	Cause    string // in the words of Auto Scaling
}

// Counts reports whether an instance is of the group's capacity.
func (i Instance) Counts() bool {
	switch i.State { //nolint:exhaustive // the others do not count
	case v1alpha1.LifecyclePending, v1alpha1.LifecyclePendingWait, v1alpha1.LifecycleInService:
		return i.Machine != Ending && i.Machine != Gone && !slices.Contains([]v1alpha1.Wish{v1alpha1.WishTerminated, v1alpha1.WishStandby, v1alpha1.WishDetached}, i.Wish)
	}
	return false
}

// Capacity is what the instances that count have together.
func Capacity(all []Instance) int {
	sum := 0
	for _, i := range all {
		if i.Counts() {
			sum += i.Type.Weight
		}
	}
	return sum
}

func (g Group) suspends(processes ...string) bool {
	return slices.ContainsFunc(processes, func(p string) bool { return slices.Contains(g.Suspended, p) })
}

func (g Group) zone(subnet string) string {
	for _, s := range g.Subnets {
		if s.ID == subnet {
			return s.Zone
		}
	}
	return ""
}

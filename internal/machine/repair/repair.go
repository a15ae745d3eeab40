// SPDX-License-Identifier: Apache-2.0

// Package repair decides which machines of a node group are repaired because of what their Nodes say, when, how, and why
// not yet. It follows EKS's node auto repair (amazon-eks-user-guide, node-repair and node-health). It is pure: values in,
// values out.
//
//	condition of the Node       not True for   then
//	AcceleratedHardwareReady    10 minutes     Replace
//	ContainerRuntimeReady       30 minutes     Replace
//	KernelReady                 30 minutes     Replace
//	NetworkingReady             30 minutes     Replace
//	Ready                       30 minutes     Replace
//	StorageReady                30 minutes     Replace
//	all others                                 nothing
//
// An override changes the wait and the action for one reason of one condition. A Node writes its own conditions, so it
// may lie: it then has its own machine repaired, or not. Toward others it can only count as unhealthy, which stops
// repairs beyond a threshold, and begins no repair of theirs.
package repair

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
)

const (
	// Wait is how long a condition has to be bad before its machine is repaired.
	Wait = 30 * time.Minute
	// WaitAccelerated is the same for the condition of accelerated hardware.
	WaitAccelerated = 10 * time.Minute
	// JoinPatience is how long a machine may take from its launch to its first Ready, as on EKS.
	JoinPatience = 15 * time.Minute
	// BootPatience is how long machines may take to boot after the service has begun: many times what a join takes.
	BootPatience = 3 * time.Minute
	// small and tolerated are EKS's threshold where the node group sets none: of a larger group more than tolerated
	// percent may not be unhealthy.
	small, tolerated = 5, 20
)

// Reasons that are Muster's own, of the condition Ready.
const (
	ReasonNeverJoined = "NodeCreationFailure" // the machine is not a node JoinPatience after its launch
	ReasonNodeMissing = "NodeMissing"         // somebody deleted the Node
)

// Condition is a condition of a Node that is bad.
type Condition struct {
	Type, Reason, Message string
	Since                 time.Time
}

// Machine is what a plan needs to know of a machine.
type Machine struct {
	Name       string
	Launched   time.Time // zero before its launch
	Joined     bool      // its Node was Ready once
	Ready      bool      // its Node is Ready
	Stopped    bool      // it does not run, as its spec says or said, or waits in a warm pool
	Deleting   bool      // it is on its way out
	Draining   bool      // a rollout drains it
	Outdated   bool      // a rollout is to replace it
	Rebooting  bool      // a repair drains and reboots it
	Conditions []Condition
}

// Policy is how a node group repairs.
type Policy struct {
	Enabled bool
	// Config holds thresholds, parallelism and overrides; nil is EKS's defaults.
	Config *v1alpha1.NodeRepairConfig
	// Unavailable is how many machines a rollout under way may have unavailable at once; 0 without a rollout.
	Unavailable int
	// Shifted are the zones of the cluster from which a zonal shift moves traffic away.
	Shifted []string
	// Suspended is the process of Auto Scaling that the group has suspended and a repair needs; "" if none is.
	Suspended string
	// Began is when the service did. Machines that ended with the host boot after that, so that no repair is due before
	// BootPatience, or its own wait if that is less.
	Began time.Time
}

// Finding is an unhealthy machine, and what is done about it.
type Finding struct {
	Machine string
	Condition
	Action v1alpha1.RepairAction
	Due    time.Time
}

// Words for why no repair begins that is due.
const (
	TooManyUnhealthy = "TooManyUnhealthy" // above the threshold
	ZonalShift       = "ZonalShift"
	Suspended        = "Suspended"
	Rollout          = "Rollout" // a rollout replaces the machine anyway
	Busy             = "Busy"    // as many machines are unavailable as may be
)

// Paused reports whether repairs are held back by more than the order of things: somebody may have to do something.
func Paused(reason string) bool {
	return slices.Contains([]string{TooManyUnhealthy, ZonalShift, Suspended}, reason)
}

// Decision is what is next.
type Decision struct {
	// Begin are the repairs that begin now. Those under way are not among them.
	Begin []Finding
	// Unhealthy are all machines that a repair is for, sorted by name.
	Unhealthy []Finding
	// Held and Message say why repairs that are due do not begin; empty if all do.
	Held, Message string
	// Next is when the next repair is due that is not yet; zero if none is.
	Next time.Time
}

// Plan returns the repairs of a node group that begin at a moment. At all times
//   - no more machines are being repaired, drained or on their way in or out than may be repaired at once,
//   - no more machines are unavailable than a rollout under way may have,
//   - no repair begins while more machines are unhealthy than the threshold, while a zone is shifted away, or while the
//     group has suspended a process that repairs need. Repairs under way go on.
//
// A machine that was never a node is repaired only while another machine of its group is a healthy one: without that, the
// cause is the group's, and its next machine would fail, too.
func Plan(policy Policy, machines []Machine, now time.Time) Decision {
	var decision Decision
	if !policy.Enabled {
		return decision
	}
	total, healthy := 0, false
	for _, m := range machines {
		if m.Deleting || m.Stopped {
			continue
		}
		total++
		finding, bad := policy.find(m, now)
		if bad {
			decision.Unhealthy = append(decision.Unhealthy, finding)
		}
		healthy = healthy || m.Ready && !bad
	}
	slices.SortFunc(decision.Unhealthy, func(a, b Finding) int { return cmp.Compare(a.Machine, b.Machine) })
	var due []Finding
	for _, f := range decision.Unhealthy {
		switch {
		case f.Reason == ReasonNeverJoined && !healthy:
		case f.Due.After(now):
			if decision.Next.IsZero() || f.Due.Before(decision.Next) {
				decision.Next = f.Due
			}
		default:
			due = append(due, f)
		}
	}
	slices.SortStableFunc(due, func(a, b Finding) int { return a.Due.Compare(b.Due) })
	decision.begin(policy, machines, due, total, now)
	return decision
}

// begin chooses among the repairs that are due, the longest due first.
func (d *Decision) begin(policy Policy, machines []Machine, due []Finding, total int, now time.Time) {
	if due = slices.DeleteFunc(due, func(f Finding) bool { return find(machines, f.Machine).Rebooting }); len(due) == 0 {
		return
	}
	if d.Held, d.Message = policy.pause(len(d.Unhealthy), total); d.Held != "" {
		return
	}
	slots, why := policy.slots(machines, len(d.Unhealthy), now)
	for _, f := range due {
		switch m := find(machines, f.Machine); {
		case m.Outdated && policy.Unavailable > 0 || m.Draining:
			d.hold(Rollout, fmt.Sprintf("machine %s is unhealthy, and the rollout under way replaces it", m.Name))
		case len(d.Begin) >= slots:
			d.hold(Busy, why)
		default:
			d.Begin = append(d.Begin, f)
		}
	}
}

// hold notes why a repair waits, the first reason alone.
func (d *Decision) hold(reason, message string) {
	if d.Held == "" {
		d.Held, d.Message = reason, message
	}
}

// find returns the machine of a name.
func find(machines []Machine, name string) Machine {
	i := slices.IndexFunc(machines, func(m Machine) bool { return m.Name == name })
	return machines[i]
}

// pause says why no repair begins at all; empty if nothing keeps them.
func (p Policy) pause(unhealthy, total int) (reason, message string) {
	if len(p.Shifted) > 0 {
		return ZonalShift, fmt.Sprintf("a zonal shift moves traffic away from %v: no repair begins before it ends", p.Shifted)
	}
	if p.Suspended != "" {
		return Suspended, fmt.Sprintf("the Auto Scaling group has suspended the process %s: no repair begins before it is resumed", p.Suspended)
	}
	over := func(limit string) (string, string) {
		return TooManyUnhealthy, fmt.Sprintf("%d of %d nodes are unhealthy, which is more than %s: no repair begins before fewer are", unhealthy, total, limit)
	}
	var count, percentage *int32
	if p.Config != nil {
		count, percentage = p.Config.MaxUnhealthyNodeThresholdCount, p.Config.MaxUnhealthyNodeThresholdPercentage
	}
	switch {
	case count != nil:
		if unhealthy > int(*count) {
			return over(fmt.Sprintf("maxUnhealthyNodeThresholdCount %d", *count))
		}
	case percentage != nil:
		if unhealthy*100 > int(*percentage)*total {
			return over(fmt.Sprintf("maxUnhealthyNodeThresholdPercentage %d", *percentage))
		}
	case total > small && unhealthy*100 > tolerated*total:
		return over(fmt.Sprintf("%d percent of a group of more than %d nodes", tolerated, small))
	}
	return "", ""
}

// slots returns how many repairs may begin, and what takes the others' places.
func (p Policy) slots(machines []Machine, unhealthy int, now time.Time) (slots int, why string) {
	leaving, joining := 0, 0
	for _, m := range machines {
		switch {
		case m.Deleting, m.Draining, m.Rebooting:
			leaving++
		case !m.Joined && !m.Stopped && (m.Launched.IsZero() || now.Before(m.Launched.Add(JoinPatience))):
			joining++
		}
	}
	parallel := p.parallel(unhealthy)
	slots = parallel - leaving - joining
	why = fmt.Sprintf("%d machines go, are drained or reboot and %d join, and %d may at once: the next repair begins when fewer do", leaving, joining, parallel)
	if p.Unavailable > 0 && p.Unavailable-leaving < slots {
		slots = p.Unavailable - leaving
		why = fmt.Sprintf("%d machines go, are drained or reboot, and the rollout under way may have %d unavailable: the next repair begins when fewer are", leaving, p.Unavailable)
	}
	return max(slots, 0), why
}

// parallel is how many machines may be repaired at once.
func (p Policy) parallel(unhealthy int) int {
	switch {
	case p.Config == nil:
	case p.Config.MaxParallelNodesRepairedCount != nil:
		return int(*p.Config.MaxParallelNodesRepairedCount)
	case p.Config.MaxParallelNodesRepairedPercentage != nil:
		return max(unhealthy*int(*p.Config.MaxParallelNodesRepairedPercentage)/100, 1)
	}
	return 1
}

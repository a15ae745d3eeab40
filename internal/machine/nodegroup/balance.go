// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/machine/plan"
	"muster.dev/muster/internal/machine/repair"
	"muster.dev/muster/internal/machine/zonebalance"
	"muster.dev/muster/internal/plane/readiness"
)

// The process AZRebalance of a node group's Auto Scaling group. Package plan says when a machine is launched in a zone with
// few, and when one of a zone with many goes. Which machines were launched for that is in their objects, so a service that is
// killed is followed by one that goes on:
//
//	Machine with the annotation muster.dev/spare ──► Ready ──► another is deleted, drained, and gone ──► the annotation is removed
//
// No room for such a machine is no trouble of its group, which has its size.

// balanceAgain is how often it is looked whether there is room for a machine that would make zones even.
const balanceAgain = 30 * time.Second

// unbalanced says why the zones of a group stay uneven though it has its size.
type unbalanced struct{ message string }

func (u *unbalanced) Error() string { return u.message }

// aims are what a group is to come to.
type aims struct {
	step    plan.Step
	shifted []string // subnets in zones that the cluster is shifted away from
	balance plan.Balance
	zones   map[v1alpha1.SubnetID]string // of the group's subnets
}

// scaler brings a group to its aims.
type scaler struct {
	*groups
	group *v1alpha1.NodeGroup
}

// aims finds out what the group is to come to at a step of its rollout, if there is one.
func (r scaler) aims(ctx context.Context, step plan.Step) (aims, error) {
	zones, err := r.shiftedZones(ctx)
	if err != nil {
		return aims{}, err
	}
	to := aims{step: step}
	if to.shifted, err = r.subnetsIn(zones); err != nil {
		return aims{}, err
	}
	if to.zones, err = r.zones(); err != nil || !rebalances(r.group, zones) {
		return to, err
	}
	names := map[string]bool{}
	for _, id := range r.subnetsOf(r.group) {
		if zone := to.zones[id]; zone != "" && !names[zone] {
			names[zone] = true
			to.balance.Zones = append(to.balance.Zones, zonebalance.Zone{Name: zone, Open: true})
		}
	}
	to.balance.AtOnce = zonebalance.Margin(int(r.group.Spec.ScalingConfig.MaxSize))
	return to, nil
}

// rebalances reports whether a group may be rebalanced now: not while it is rolled out or deleted, one of the processes
// is suspended that do it, or its cluster is shifted away from a zone.
func rebalances(group *v1alpha1.NodeGroup, shifted []string) bool {
	return len(shifted) == 0 && group.DeletionTimestamp.IsZero() && !inRollout(group) && !returns(group) &&
		!group.Spec.ScalingGroup().Suspends(v1alpha1.ProcessAZRebalance, v1alpha1.ProcessLaunch, v1alpha1.ProcessTerminate)
}

// zones are those of the group's subnets.
func (r scaler) zones() (map[v1alpha1.SubnetID]string, error) {
	zones := map[v1alpha1.SubnetID]string{}
	for _, of := range r.Network.Subnets {
		zones[v1alpha1.SubnetID(of.ID)] = of.Zone
	}
	if !slices.ContainsFunc(r.subnetsOf(r.group), func(id v1alpha1.SubnetID) bool { return zones[id] == "" }) {
		return zones, nil
	}
	usage, err := r.Usage()
	if err != nil {
		return nil, fmt.Errorf("looking at the subnets of the cluster's VPC: %w", err)
	}
	for _, of := range usage {
		zones[v1alpha1.SubnetID(of.ID)] = of.Zone
	}
	return zones, nil
}

// open leaves those zones of a balance open in which a machine of the group would have an address now. It returns an *unbalanced if
// they are fewer.
func (r scaler) open(ctx context.Context, machines []v1alpha1.Machine, balance plan.Balance) error {
	pods, err := r.podsOf(r.group)
	if err != nil {
		return err
	}
	subnets, room, err := r.subnets(ctx, r.group, machines, pods)
	p, without := errors.AsType[*problem](err)
	if err != nil && !without {
		return err
	}
	var full []string
	for i := range balance.Zones {
		z := &balance.Zones[i]
		z.Open = !without && slices.ContainsFunc(subnets, func(s plan.Subnet) bool {
			if s.Zone != z.Name {
				return false
			}
			_, err := room.Take(r.demand(s.ID, pods))
			return err == nil
		})
		if !z.Open {
			full = append(full, z.Name)
		}
	}
	switch {
	case without:
		return &unbalanced{p.message}
	case len(full) > 0:
		return &unbalanced{"the group's subnets have no free address for a machine in " + strings.Join(full, ", ")}
	}
	return nil
}

// scale carries out what brings a group to its aims. Where there is no room for machines that would make zones even, it
// does all else, and returns an *unbalanced.
func (r scaler) scale(ctx context.Context, machines []v1alpha1.Machine, to aims) error {
	var uneven *unbalanced
	actions := planned(r.group, machines, to, r.Now())
	if slices.ContainsFunc(actions, evens) {
		if err := r.open(ctx, machines, to.balance); err != nil && !errors.As(err, &uneven) {
			return err
		}
		actions = planned(r.group, machines, to, r.Now())
	}
	for _, action := range actions {
		var err error
		if machines, err = r.carryOut(ctx, r.group, machines, action); err != nil && !errors.As(err, &uneven) {
			return err
		}
	}
	if err := r.settleSpares(ctx, machines); err != nil || uneven == nil {
		return err
	}
	return uneven
}

// evens reports whether an action makes machines that make zones even.
func evens(action plan.Action) bool { return len(action.Zones) > 0 }

// spareOf makes a new machine of a group one that makes its zones even.
func (r scaler) spareOf(m *v1alpha1.Machine, machines []v1alpha1.Machine) (cause string, err error) {
	zones, err := r.zones()
	if err != nil {
		return "", err
	}
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.AnnotationSpare, zones[m.Spec.SubnetID])
	counts := map[string]int{}
	for _, id := range r.subnetsOf(r.group) {
		counts[zones[id]] += 0
	}
	for i := range machines {
		if one := &machines[i]; alive(*one) && one.Spec.WarmPool == "" {
			counts[zones[one.Spec.SubnetID]]++
		}
	}
	var uneven []zonebalance.Zone
	for name, n := range counts {
		uneven = append(uneven, zonebalance.Zone{Name: name, Machines: n})
	}
	return zonebalance.LaunchCause(r.Now(), uneven), nil
}

// endCause is why a machine of a group ends that is one too many: there are more if others were launched to make zones even.
func (r scaler) endCause(m *v1alpha1.Machine, machines []v1alpha1.Machine) string {
	has := count(machines)
	cause := shrinkCause(r.Now(), differs, has, has-1)
	var launched time.Time
	var zones []string
	for i := range machines {
		if one := &machines[i]; isSpare(one) && one.Name != m.Name {
			zones = append(zones, one.Annotations[v1alpha1.AnnotationSpare])
			launched = one.CreationTimestamp.Time
		}
	}
	if len(zones) == 0 {
		return cause
	}
	return zonebalance.EndCause(launched, zones, fmt.Sprintf("%s  At %s instance %s was selected for termination.", cause, r.Now().UTC().Format(time.RFC3339), m.Name))
}

// additional is how many machines more than its size a group has to make its zones even.
func additional(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine) int32 {
	spare := 0
	for i := range machines {
		if isSpare(&machines[i]) {
			spare++
		}
	}
	return int32(max(0, min(spare, count(machines)-int(group.Spec.ScalingConfig.DesiredSize))))
}

// sayEven says how far the zones of a group are that are made even; "" if they are. It returns the failure of the group, without
// an *unbalanced, which is no trouble of it.
func sayEven(more int32, failure error) (string, error) {
	uneven, ok := errors.AsType[*unbalanced](failure)
	if ok {
		failure = nil
	}
	switch {
	case more > 0:
		return "; its zones are made even: " + readiness.Of(more, more, "additional machine", "additional machines"), failure
	case ok:
		return "; its zones stay uneven: " + uneven.message, failure
	}
	return "", failure
}

// isSpare reports whether a machine was launched to make zones even, and no other has ended for it yet.
func isSpare(m *v1alpha1.Machine) bool {
	_, spare := m.Annotations[v1alpha1.AnnotationSpare]
	return spare && alive(*m)
}

// awaited reports whether a machine that was launched to make zones even has not been Ready yet, and whether it is late: a quarter of
// an hour after its launch, or after it was made if it could not be launched.
func awaited(m *v1alpha1.Machine, now time.Time) (boots, late bool) {
	if !isSpare(m) || joinlog.Has(m.Status.Join, v1alpha1.StepReady) {
		return false, false
	}
	since := launchedAt(m)
	if since.IsZero() {
		since = m.CreationTimestamp.Time
	}
	return true, !since.IsZero() && !now.Before(since.Add(repair.JoinPatience))
}

// settleSpares has machines that were launched to make zones even be machines as all others when the group has its size.
func (r scaler) settleSpares(ctx context.Context, machines []v1alpha1.Machine) error {
	if count(machines) > int(r.group.Spec.ScalingConfig.DesiredSize) || inRollout(r.group) {
		return nil
	}
	for i := range machines {
		m := &machines[i]
		if !isSpare(m) || m.Status.Phase != v1alpha1.MachineReady {
			continue
		}
		before := m.DeepCopy()
		delete(m.Annotations, v1alpha1.AnnotationSpare)
		if err := r.management.Patch(ctx, m, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("noting that machine %s is no spare one any more: %w", m.Name, err)
		}
	}
	return nil
}

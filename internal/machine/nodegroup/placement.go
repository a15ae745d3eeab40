// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/plan"
)

// Reasons in the words of EKS (health issues of node groups).
const (
	reasonNoSubnet = "Ec2SubnetNotFound"
	reasonFull     = "InsufficientFreeAddresses"
	reasonPodZone  = "Ec2SubnetInvalidConfiguration"
	reasonShifted  = "ZonalShift" // Muster's own: EKS says nothing
)

// roomAgain is how often it is looked whether there are addresses for machines that found none, or a subnet that was
// missing.
const roomAgain = 5 * time.Second

// place chooses the subnets of new machines of a group, whose machines are given. Machines that a rollout is to replace
// do not count, so that a rollout spreads a group anew. If zones are named, all are there. There may be fewer than were asked
// for, and then a *problem says why.
func (r *groups) place(ctx context.Context, group *v1alpha1.NodeGroup, machines []v1alpha1.Machine, count int, zones []string) ([]string, error) {
	pods, err := r.podsOf(group)
	if err != nil {
		return nil, err
	}
	subnets, room, err := r.subnets(ctx, group, machines, pods)
	if err != nil {
		return nil, err
	}
	if len(zones) > 0 {
		subnets = slices.DeleteFunc(subnets, func(s plan.Subnet) bool { return !slices.Contains(zones, s.Zone) })
	}
	for i := range subnets {
		for _, m := range machines {
			if string(m.Spec.SubnetID) == subnets[i].ID && alive(m) && (!inRollout(group) || !outdated(&m, group)) {
				subnets[i].Machines++
			}
		}
	}
	chosen := plan.Place(count, subnets, func(id string) bool {
		_, err := room.Take(r.demand(id, pods))
		return err == nil
	})
	if len(chosen) == count {
		return chosen, nil
	}
	with := ""
	if pods > 0 {
		with = fmt.Sprintf(", or no /%d for the addresses of %d pods%s", machine.PodRangeBits(pods), pods, r.inPodSubnets(subnets))
	}
	ids := make([]string, 0, len(subnets))
	for _, subnet := range subnets {
		ids = append(ids, subnet.ID)
	}
	return chosen, &problem{reason: reasonFull, again: roomAgain, message: fmt.Sprintf("%d more machines found no free address in the subnets %s%s: delete machines, or name other subnets in spec.subnetIDs",
		count-len(chosen), strings.Join(ids, ", "), with)}
}

// inPodSubnets names the subnets for pods of machines in some subnets, if they are not those themselves.
func (r *groups) inPodSubnets(subnets []plan.Subnet) string {
	var ids []string
	for _, of := range r.Network.PodSubnets {
		if slices.ContainsFunc(subnets, func(s plan.Subnet) bool { return s.Zone == of.Zone }) {
			ids = append(ids, of.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return " in " + strings.Join(ids, ", ")
}

// demand is what a machine in a subnet needs.
func (r parts) demand(subnet string, pods int) machine.Demand {
	return machine.Demand{SubnetID: subnet, Pods: pods, PodSubnetIDs: r.Network.PodSubnetIDs()}
}

// subnets are those that machines of a group may be launched in now, and what is left of the VPC's subnets by those
// that are coming already.
func (r *groups) subnets(ctx context.Context, group *v1alpha1.NodeGroup, machines []v1alpha1.Machine, pods int) ([]plan.Subnet, *machine.Room, error) {
	usage, err := r.Usage()
	if err != nil {
		return nil, nil, fmt.Errorf("looking at the subnets of the cluster's VPC: %w", err)
	}
	var objects v1alpha1.SubnetList
	if err := r.managementLive.List(ctx, &objects); err != nil {
		return nil, nil, fmt.Errorf("listing subnets: %w", err)
	}
	var all v1alpha1.MachineList
	if err := r.management.List(ctx, &all); err != nil {
		return nil, nil, fmt.Errorf("listing machines: %w", err)
	}
	room, everybody := machine.NewRoom(usage), slices.Concat(all.Items, machines)
	for _, of := range usage {
		for range coming(of, everybody) {
			_, _ = room.Take(r.demand(of.ID, pods)) // a machine that finds no room is refused when it is launched
		}
	}
	var subnets []plan.Subnet
	for _, id := range r.subnetsOf(group) {
		at := slices.IndexFunc(usage, func(u machine.Usage) bool { return u.ID == string(id) })
		deleting := slices.ContainsFunc(objects.Items, func(s v1alpha1.Subnet) bool { return s.Name == string(id) && !s.DeletionTimestamp.IsZero() })
		switch {
		case at >= 0 && !deleting && pods > 0 && !r.hasPodSubnet(usage[at].Zone):
			return nil, nil, &problem{reason: reasonPodZone, again: roomAgain, message: fmt.Sprintf("spec.subnetIDs: the cluster has no subnet for pods in %s, the zone of %s: name subnets in %s",
				usage[at].Zone, id, strings.Join(r.Network.PodZones(), ", "))}
		case at >= 0 && !deleting:
			subnets = append(subnets, plan.Subnet{ID: usage[at].ID, Zone: usage[at].Zone})
		case len(group.Spec.SubnetIDs) > 0:
			return nil, nil, &problem{reason: reasonNoSubnet, again: roomAgain, message: fmt.Sprintf("spec.subnetIDs: there is no subnet %s in %s, the cluster's VPC, or it is being deleted: name others", id, r.Network.VPCID)}
		}
	}
	if len(subnets) == 0 {
		return nil, nil, &problem{reason: reasonNoSubnet, again: roomAgain, message: fmt.Sprintf("no subnet of the cluster is left in %s: name others in spec.subnetIDs", r.Network.VPCID)}
	}
	subnets, err = r.notShifted(ctx, subnets)
	return subnets, room, err
}

// shiftedZones are the names of the zones that a zonal shift moves the cluster away from: nothing is launched or
// repaired there, and no machine is moved there.
func (r parts) shiftedZones(ctx context.Context) ([]string, error) {
	of := &v1alpha1.Cluster{}
	err := r.management.Get(ctx, client.ObjectKey{Namespace: r.namespace(), Name: r.namespace()}, of)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the cluster's shifted zones: %w", err)
	}
	return of.Status.ShiftedZones, nil
}

// subnetsIn are the subnets of the VPC in some zones.
func (r parts) subnetsIn(zones []string) ([]string, error) {
	if len(zones) == 0 {
		return nil, nil
	}
	usage, err := r.Usage()
	if err != nil {
		return nil, fmt.Errorf("looking at the subnets of the cluster's VPC: %w", err)
	}
	var ids []string
	for _, of := range usage {
		if slices.Contains(zones, of.Zone) {
			ids = append(ids, of.ID)
		}
	}
	return ids, nil
}

// notShifted are the subnets in zones that the cluster is not shifted away from. It returns a *problem if all are.
func (r *groups) notShifted(ctx context.Context, subnets []plan.Subnet) ([]plan.Subnet, error) {
	zones, err := r.shiftedZones(ctx)
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(slices.Clone(subnets), func(s plan.Subnet) bool { return slices.Contains(zones, s.Zone) })
	if len(left) == 0 {
		return nil, &problem{reason: reasonShifted, again: roomAgain, message: fmt.Sprintf("all subnets of the group are in %s, which a zonal shift moves the cluster away from: cancel the shift, or name a subnet in another zone in spec.subnetIDs", strings.Join(zones, ", "))}
	}
	return left, nil
}

// subnetsOf are the subnets that a group's machines may be in, by its own word or its cluster's.
func (r parts) subnetsOf(group *v1alpha1.NodeGroup) []v1alpha1.SubnetID {
	named := group.Spec.SubnetIDs
	if len(named) == 0 {
		for _, id := range r.Network.SubnetIDs() {
			named = append(named, v1alpha1.SubnetID(id))
		}
	}
	return named
}

// hasPodSubnet reports whether pods of machines in a zone can have addresses of subnets.
func (r parts) hasPodSubnet(zone string) bool {
	return len(r.Network.PodSubnets) == 0 || slices.Contains(r.Network.PodZones(), zone)
}

// coming is how many machines will have an address of a subnet: those that were made a moment ago have none yet.
func coming(usage machine.Usage, all []v1alpha1.Machine) int {
	counted := make(map[string]bool, len(usage.Machines))
	for _, id := range usage.Machines {
		counted[id] = true
	}
	more := 0
	for i := range all {
		if m := &all[i]; string(m.Spec.SubnetID) == usage.ID && !counted[m.Name] {
			counted[m.Name] = true
			more++
		}
	}
	return more
}

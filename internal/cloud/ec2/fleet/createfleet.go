// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/clienttoken"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/machine/hostroom"
)

// annotationPool on a Machine is the pool of a fleet's request that it came from: the numbers of the configuration and of
// the override in it, such as 0/3.
const annotationPool = "muster.dev/fleet-pool"

func (a *Actions) createFleet() awsfront.Spec[createFleetInput, createFleetOutput] {
	return awsfront.Spec[createFleetInput, createFleetOutput]{About: a.aboutCreateFleet, Do: a.doCreateFleet}
}

// launch is a request on its way: what is left to launch of it, and what came of it.
type launch struct {
	*Actions
	in   *createFleetInput
	sent awsresource.Token
	id   string // of the fleet
	left *hostroom.Left
	// machines are those of the fleet, also those that an earlier request with the token made.
	machines []*v1alpha1.Machine
	errors   []fleetError
	// short reports whether a valid pool had no room; first is the refusal of the first pool that is not valid.
	short bool
	first error
}

func (a *Actions) doCreateFleet(ctx context.Context, call *awsfront.Call, in *createFleetInput) (*createFleetOutput, error) {
	pools, err := a.poolsOf(ctx, in)
	if err != nil {
		return nil, err
	}
	if in.DryRun {
		return nil, a.dry(ctx, in, pools)
	}
	sent, err := ec2resource.TokenOf(call, in.ClientToken)
	if err != nil {
		return nil, err
	}
	if in.ClientToken != "" {
		defer a.ec2.Locks.Hold("CreateFleet " + sent.Key.Label())()
	}
	sent.Request.Count = in.TargetCapacitySpecification.total()
	made, err := a.instances.MadeBefore(ctx, sent)
	if err != nil {
		return nil, err
	}
	decision, err := clienttoken.Decide(sent.Key, sent.Request, slices.Collect(maps.Keys(made)))
	if err != nil {
		return nil, err
	}
	l := &launch{Actions: a, in: in, sent: sent, id: "fleet-" + uuid.NewString(), machines: slices.Collect(maps.Values(made))}
	for _, m := range l.machines {
		l.id = cmp.Or(m.Annotations[v1alpha1.AnnotationFleet], l.id)
	}
	if l.left, err = a.ec2.Room.Hold(ctx, a.ec2.Management); err != nil {
		return nil, ec2resource.Away(err)
	}
	defer l.left.Release()
	onDemand, spot := in.TargetCapacitySpecification.split(decision.Missing)
	if err := l.fill(ctx, ordered(pools, in.OnDemandOptions.strategy(), false), onDemand, false); err != nil {
		return nil, err
	}
	if err := l.fill(ctx, ordered(pools, in.SpotOptions.strategy(), true), spot, true); err != nil {
		return nil, err
	}
	if len(l.machines) == 0 && !l.short && l.first != nil {
		return nil, l.first
	}
	return l.answer(ctx)
}

// dry finds the first pool that is valid, and makes nothing.
func (a *Actions) dry(ctx context.Context, in *createFleetInput, pools []pool) error {
	var first error
	for _, p := range pools {
		_, err := a.instances.Plan(ctx, in.launch(p, in.TargetCapacitySpecification.onlySpot()))
		if err == nil {
			return dryrun.Would(true)
		}
		if !refused(err) {
			return err
		}
		first = cmp.Or(first, err)
	}
	return first
}

// fill launches instances, by their numbers in the request, from the first pools that have room.
func (l *launch) fill(ctx context.Context, pools []pool, missing []int, spot bool) error {
	for _, p := range pools {
		if len(missing) == 0 {
			return nil
		}
		made, err := l.from(ctx, p, missing, spot)
		if err != nil {
			if !refused(err) {
				return err
			}
			l.refuse(p, err, spot)
			continue
		}
		missing = missing[made:]
	}
	return nil
}

// from launches as many instances of a pool as there is room for, and returns how many.
func (l *launch) from(ctx context.Context, p pool, missing []int, spot bool) (int, error) {
	plan, err := l.instances.Plan(ctx, l.in.launch(p, spot))
	if err != nil {
		return 0, err
	}
	fits, err := l.instances.Fits(ctx, plan, len(missing), l.left)
	if err != nil {
		return 0, err
	}
	reservation := ec2resource.NewID(ec2id.Reservation)
	for _, index := range missing[:fits] {
		m, err := l.instances.Make(ctx, plan, l.sent, v1alpha1.Reservation{ID: reservation, Index: int32(index)}, map[string]string{ //nolint:gosec // G115: at most clienttoken.MaxCount
			v1alpha1.AnnotationFleet: l.id, annotationPool: p.String(),
		})
		if err != nil {
			return 0, err
		}
		l.machines = append(l.machines, m)
	}
	return fits, nil
}

// The codes of a pool that is valid and has no room. Karpenter takes such a pool out of its choice for three minutes.
const (
	noCapacity  = hostroom.Code
	noAddresses = "InsufficientFreeAddressesInSubnet"
	noSpot      = "UnfulfillableCapacity"
)

// refuse notes why a pool gave nothing.
func (l *launch) refuse(p pool, err error, spot bool) {
	fault := (*awsfault.Error)(nil)
	errors.As(err, &fault)
	code := fault.Code
	switch {
	case code == noCapacity || code == noAddresses:
		l.short = true
		if spot && code == noCapacity {
			code = noSpot
		}
	case l.first == nil:
		l.first = err
	}
	shown := l.in.shown(p, l.in.override(p))
	l.errors = append(l.errors, fleetError{ErrorCode: code, ErrorMessage: fault.Message, Lifecycle: lifecycle(spot), LaunchTemplateAndOverrides: shown})
}

// refused reports whether an error is about a pool, so that another one may be tried: EC2's refusals, and not that the
// management plane is away.
func refused(err error) bool {
	fault := (*awsfault.Error)(nil)
	return errors.As(err, &fault) && fault.Cause == nil
}

// answer shows the instances by pool, in the order of the request.
func (l *launch) answer(ctx context.Context) (*createFleetOutput, error) {
	var subnets v1alpha1.SubnetList
	if err := l.ec2.List(ctx, &subnets); err != nil {
		return nil, err
	}
	zones := map[string]string{}
	for i := range subnets.Items {
		zones[subnets.Items[i].Name] = subnets.Items[i].Spec.AvailabilityZone
	}
	out := &createFleetOutput{FleetID: l.id, Instances: []fleetInstance{}, Errors: l.errors}
	if out.Errors == nil {
		out.Errors = []fleetError{}
	}
	slices.SortFunc(l.machines, func(x, y *v1alpha1.Machine) int {
		return cmp.Compare(x.Spec.Reservation.Index, y.Spec.Reservation.Index)
	})
	groups := map[string]int{}
	for _, m := range l.machines {
		spot := m.Spec.MarketType == v1alpha1.MarketSpot
		key := fmt.Sprint(m.Annotations[annotationPool], spot)
		at, there := groups[key]
		if !there {
			at = len(out.Instances)
			groups[key] = at
			p := parsePool(m.Annotations[annotationPool], l.in)
			subnet := string(m.Spec.SubnetID)
			got := override{InstanceType: m.Spec.InstanceType, SubnetID: subnet, ImageID: m.Spec.ImageID, AvailabilityZone: zones[subnet], Priority: l.in.override(p).Priority}
			out.Instances = append(out.Instances, fleetInstance{
				InstanceType: got.InstanceType, SubnetID: subnet, AvailabilityZone: got.AvailabilityZone,
				Lifecycle: lifecycle(spot), LaunchTemplateAndOverrides: l.in.shown(p, got),
			})
		}
		out.Instances[at].InstanceIDs = append(out.Instances[at].InstanceIDs, m.Name)
	}
	return out, nil
}

func lifecycle(spot bool) string {
	if spot {
		return string(v1alpha1.MarketSpot)
	}
	return string(v1alpha1.MarketOnDemand)
}

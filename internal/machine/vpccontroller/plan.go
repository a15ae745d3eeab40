// SPDX-License-Identifier: Apache-2.0

package vpccontroller

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/egresspolicy"
	"muster.dev/muster/internal/network/vpc"
)

// Reasons of conditions.
const (
	reasonReady     = "NetworkReady"
	reasonNoVPC     = "VPCNotFound"
	reasonDeleting  = "VPCDeleting"
	reasonRange     = "InvalidSubnetRange"
	reasonConflict  = "InvalidSubnetConflict"
	reasonZone      = "InvalidAvailabilityZone"
	reasonInUse     = "InUse"
	reasonSubnets   = "HasSubnets"
	reasonDefault   = "DefaultVpcAlreadyExists"
	reasonFailed    = "NetworkFailed"
	reasonEgress    = "InvalidEgress"
	reasonHostRange = "InvalidVpcRange"
)

// verdict is what the condition Ready of an object is to say.
type verdict struct {
	ready           bool
	reason, message string
}

// use is who has addresses of a subnet.
type use struct {
	what    string // for the condition: "machine i-…", "the endpoint of cluster one"
	address netip.Addr
	subnet  string // its id, if it is known
}

// facts are all that a plan is made from.
type facts struct {
	vpc     v1alpha1.VPC
	subnets []v1alpha1.Subnet // of this VPC
	before  vpc.Description   // as it was described last; empty if it was not
	zones   []string
	uses    []use
}

// plan is what is to be done about a VPC.
type plan struct {
	// description is what is to be on disk.
	description vpc.Description
	// verdicts are of the subnets, by name.
	verdicts map[string]verdict
	// egress says what is wrong with the way out that was asked for; without a reason it is as it was asked for.
	egress verdict
	// released are subnets that are being deleted and that nothing has an address of.
	released []string
}

// makePlan decides which subnets a VPC has.
func makePlan(f facts) (plan, error) {
	cidr, err := netip.ParsePrefix(f.vpc.Spec.CIDRBlock)
	if err != nil {
		return plan{}, fmt.Errorf("spec.cidrBlock %q is not an IPv4 network: %w", f.vpc.Spec.CIDRBlock, err)
	}
	p := plan{
		description: vpc.Description{Version: f.before.Version, ID: f.vpc.Name, CIDR: cidr, Default: f.vpc.Spec.IsDefault},
		verdicts:    map[string]verdict{},
	}
	if p.description.Egress, err = wayOut(f.vpc.Spec.Egress); err != nil {
		p.egress = verdict{reason: reasonEgress, message: "spec." + err.Error() + "; nothing leaves until that is right"}
	}
	described := map[string]bool{}
	for _, subnet := range f.before.Subnets {
		described[subnet.ID] = true
	}
	ordered := slices.Clone(f.subnets)
	slices.SortFunc(ordered, func(a, b v1alpha1.Subnet) int {
		return cmp.Or(first(described[a.Name], described[b.Name]), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, subnet := range ordered {
		users := usersOf(subnet, f.uses)
		if !subnet.DeletionTimestamp.IsZero() && len(users) == 0 {
			p.released = append(p.released, subnet.Name)
			continue
		}
		accepted, refusal := p.judge(subnet, f.zones)
		switch {
		case refusal.reason != "":
			p.verdicts[subnet.Name] = refusal
			continue
		case !subnet.DeletionTimestamp.IsZero():
			p.verdicts[subnet.Name] = verdict{reason: reasonInUse, message: "it is deleted once these have no address of it any more: " + strings.Join(users, ", ")}
		case !f.vpc.DeletionTimestamp.IsZero() && !described[subnet.Name]:
			p.verdicts[subnet.Name] = verdict{reason: reasonDeleting, message: "its VPC is being deleted"}
			continue
		default:
			p.verdicts[subnet.Name] = verdict{ready: true, reason: reasonReady, message: "machines can have addresses of it"}
		}
		p.description.Subnets = append(p.description.Subnets, accepted)
	}
	slices.SortFunc(p.description.Subnets, func(a, b vpc.Subnet) int { return a.CIDR.Addr().Compare(b.CIDR.Addr()) })
	return p, nil
}

// wayOut is what may leave a VPC; nothing if that is not said well.
func wayOut(asked v1alpha1.VPCEgress) (egresspolicy.Policy, error) {
	if asked.Mode == "" {
		asked.Mode = v1alpha1.EgressNone
	}
	return egresspolicy.Parse(string(asked.Mode), asked.AllowedRanges, asked.DeniedRanges)
}

// first compares two conditions for sorting: true sorts before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// judge checks a subnet beside those that were accepted before it. Without a reason it is accepted.
func (p plan) judge(subnet v1alpha1.Subnet, zones []string) (vpc.Subnet, verdict) {
	cidr, err := netip.ParsePrefix(subnet.Spec.CIDRBlock)
	if err != nil {
		return vpc.Subnet{}, verdict{reason: reasonRange, message: fmt.Sprintf("spec.cidrBlock %q is not an IPv4 network", subnet.Spec.CIDRBlock)}
	}
	outer := p.description.CIDR
	if cidr.Bits() < outer.Bits() || !outer.Contains(cidr.Addr()) {
		return vpc.Subnet{}, verdict{reason: reasonRange, message: fmt.Sprintf("spec.cidrBlock %s is not within %s, the range of %s: delete it and make one that is", cidr, outer, p.description.ID)}
	}
	for _, other := range p.description.Subnets {
		if other.CIDR.Overlaps(cidr) {
			return vpc.Subnet{}, verdict{reason: reasonConflict, message: fmt.Sprintf("spec.cidrBlock %s overlaps %s of %s: delete it and make one that does not", cidr, other.CIDR, other.ID)}
		}
	}
	if !slices.Contains(zones, subnet.Spec.AvailabilityZone) {
		return vpc.Subnet{}, verdict{reason: reasonZone, message: fmt.Sprintf("spec.availabilityZone %q is not one of the region's: %s", subnet.Spec.AvailabilityZone, strings.Join(zones, ", "))}
	}
	return vpc.Subnet{ID: subnet.Name, Zone: subnet.Spec.AvailabilityZone, CIDR: cidr}, verdict{}
}

// usersOf lists what has addresses of a subnet, five at most.
func usersOf(subnet v1alpha1.Subnet, uses []use) []string {
	const most = 5
	cidr, err := netip.ParsePrefix(subnet.Spec.CIDRBlock)
	if err != nil {
		return nil
	}
	var users []string
	for _, u := range uses {
		if u.subnet == subnet.Name || u.subnet == "" && cidr.Contains(u.address) {
			users = append(users, u.what)
		}
	}
	if more := len(users) - most; more > 0 {
		users = append(users[:most:most], fmt.Sprintf("and %d more", more))
	}
	return users
}

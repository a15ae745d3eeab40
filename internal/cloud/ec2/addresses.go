// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"net/netip"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2filter"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
)

// addressesLock is the lock under which addresses are given out and associated.
const addressesLock = "elastic addresses"

// publicRanges are what elastic addresses are of: ranges for documentation (RFC 5737), which lead nowhere.
var publicRanges = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("192.0.2.0/24")}

// keptAddress is an elastic address as it is kept. That a NAT gateway has it, the gateway keeps.
type keptAddress struct {
	PublicIP    string `json:"publicIP"`
	Instance    string `json:"instance,omitempty"`
	PrivateIP   string `json:"privateIP,omitempty"`
	Association string `json:"association,omitempty"`
}

func (a *api) addresses() records[keptAddress] {
	return records[keptAddress]{api: a, kind: ec2id.Address, of: awsrecord.Kind[keptAddress]{Type: "elastic-ip"}}
}

func (a *api) registerAddresses(f *awsfront.Front) {
	register(a, f, "AllocateAddress", a.allocateAddress())
	register(a, f, "AssociateAddress", a.associateAddress())
	register(a, f, "DescribeAddresses", a.describeAddresses())
	register(a, f, "DescribeAddressesAttribute", a.describeAddressesAttribute())
	register(a, f, "DisassociateAddress", a.disassociateAddress())
	register(a, f, "ReleaseAddress", a.releaseAddress())
	a.tagged(a.addresses().tagger("elastic-ip", func(_ *awsfront.Call, r *record[keptAddress]) map[string][]string {
		return map[string][]string{"ec2:AllocationId": {r.ID}, "ec2:Domain": {"vpc"}, "ec2:PublicIpAddress": {r.Data.PublicIP}}
	}))
}

// addressUse is what an address is associated with.
type addressUse struct{ association, nat, instance, networkInterface, privateIP, vpc string }

// addressUses are the addresses that are associated, by allocation id. The address of an instance is free once the instance is gone.
func (a *api) addressUses(ctx context.Context) (map[string]addressUse, error) {
	uses := map[string]addressUse{}
	nats, err := a.natGateways().list(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nats {
		if d := nats[i].Data; d.Association != "" {
			uses[d.Address] = addressUse{d.Association, nats[i].ID, "", d.Interface, d.PrivateIP, d.VPC}
		}
	}
	all, err := a.addresses().list(ctx)
	if err != nil {
		return nil, err
	}
	var machines v1alpha1.MachineList
	if err := a.list(ctx, &machines); err != nil {
		return nil, err
	}
	for i := range all {
		d := all[i].Data
		there := slices.ContainsFunc(machines.Items, func(m v1alpha1.Machine) bool { return m.Name == d.Instance })
		if d.Association != "" && there {
			uses[all[i].ID] = addressUse{d.Association, "", d.Instance, interfaceOf(d.Instance), d.PrivateIP, ""}
		}
	}
	return uses, nil
}

// publicIn reports whether something in a VPC has an elastic address.
func (a *api) publicIn(ctx context.Context, vpc string) (bool, error) {
	uses, err := a.addressUses(ctx)
	if err != nil {
		return false, err
	}
	for _, use := range uses {
		if use.instance != "" {
			if use.vpc, err = a.vpcOfInstance(ctx, use.instance); err != nil {
				return false, err
			}
		}
		if use.vpc == vpc {
			return true, nil
		}
	}
	return false, nil
}

// address is an elastic address as EC2 shows it.
type address struct {
	AllocationID            string
	PublicIP                string
	Domain                  string
	PublicIpv4Pool          string
	NetworkBorderGroup      string
	AssociationID           string
	InstanceID              string
	NetworkInterfaceID      string
	NetworkInterfaceOwnerID string
	PrivateIPAddress        string
	Tags                    []awstag.Tag
}

type describeAddressesInput struct {
	filtered
	AllocationIDs []string
	PublicIPs     []string
}

type describeAddressesOutput struct{ Addresses []address }

func addressNoun() noun[address] {
	return noun[address]{
		kind: ec2id.Address, id: func(e *address) string { return e.AllocationID }, tags: func(e *address) map[string]string { return awsresource.TagMap(e.Tags) },
		rules: ec2filter.Rules{Names: []string{
			"allocation-id", "association-id", "domain", "instance-id", "network-border-group", "network-interface-id", "network-interface-owner-id", "private-ip-address", "public-ip",
		}},
		values: func(e *address, name string) []string {
			value := map[string]string{
				"allocation-id": e.AllocationID, "association-id": e.AssociationID, "domain": e.Domain, "instance-id": e.InstanceID, "network-border-group": e.NetworkBorderGroup,
				"network-interface-id": e.NetworkInterfaceID, "network-interface-owner-id": e.NetworkInterfaceOwnerID, "private-ip-address": e.PrivateIPAddress, "public-ip": e.PublicIP,
			}[name]
			if value == "" {
				return nil
			}
			return []string{value}
		},
	}
}

func (a *api) describeAddresses() awsfront.Spec[describeAddressesInput, describeAddressesOutput] {
	return awsfront.Spec[describeAddressesInput, describeAddressesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeAddressesInput) (*describeAddressesOutput, error) {
			all, err := a.addresses().list(ctx)
			if err != nil {
				return nil, err
			}
			uses, err := a.addressUses(ctx)
			if err != nil {
				return nil, err
			}
			var shown []address
			for i := range all {
				e := address{
					AllocationID: all[i].ID, PublicIP: all[i].Data.PublicIP, Domain: "vpc", PublicIpv4Pool: "amazon", NetworkBorderGroup: a.Region, Tags: awsresource.ShownTags(all[i].Tags),
				}
				if use, ok := uses[e.AllocationID]; ok {
					e.AssociationID, e.InstanceID, e.NetworkInterfaceID, e.PrivateIPAddress = use.association, use.instance, use.networkInterface, use.privateIP
					e.NetworkInterfaceOwnerID = call.Caller.Account()
				}
				if len(in.PublicIPs) == 0 || slices.Contains(in.PublicIPs, e.PublicIP) {
					shown = append(shown, e)
				}
			}
			for _, ip := range in.PublicIPs {
				if !slices.ContainsFunc(shown, func(e address) bool { return e.PublicIP == ip }) {
					return nil, awsfault.Errorf("InvalidAddress.NotFound", "Address '%.50s' not found.", ip)
				}
			}
			out := &describeAddressesOutput{}
			out.Addresses, _, err = choose(a, call, addressNoun(), shown, in.AllocationIDs, paged{filtered: in.filtered}) // a page holds all there can be
			return out, err
		},
	}
}

type allocateAddressInput struct {
	Domain             string
	PublicIpv4Pool     string
	NetworkBorderGroup string
	TagSpecifications  []tagSpecification
	DryRun             bool
}

type allocateAddressOutput struct{ AllocationID, PublicIP, Domain, PublicIpv4Pool, NetworkBorderGroup string }

func (a *api) allocateAddress() awsfront.Spec[allocateAddressInput, allocateAddressOutput] {
	return awsfront.Spec[allocateAddressInput, allocateAddressOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *allocateAddressInput) ([]awsfront.Target, error) {
			return a.aboutNew(call, "elastic-ip", in.TagSpecifications, map[string][]string{"ec2:Domain": {"vpc"}})
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *allocateAddressInput) (*allocateAddressOutput, error) {
			for _, err := range []error{only("domain", in.Domain, "vpc"), only("publicIpv4Pool", in.PublicIpv4Pool, "amazon"), only("networkBorderGroup", in.NetworkBorderGroup, a.Region)} {
				if err != nil {
					return nil, err
				}
			}
			tags, err := readTags(in.TagSpecifications, "elastic-ip")
			if err != nil {
				return nil, err
			}
			defer a.locks.Hold(addressesLock)()
			ip, err := a.freePublicIP(ctx)
			if err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			made, err := a.addresses().create(ctx, keptAddress{PublicIP: ip}, tags["elastic-ip"], awsresource.Token{})
			if err != nil {
				return nil, err
			}
			return &allocateAddressOutput{made.ID, ip, "vpc", "amazon", a.Region}, nil
		},
	}
}

// freePublicIP is the first address of the public ranges that nobody has.
func (a *api) freePublicIP(ctx context.Context) (string, error) {
	all, err := a.addresses().list(ctx)
	if err != nil {
		return "", err
	}
	for _, cidr := range publicRanges {
		_, last := reservedOf(cidr)
		for ip := cidr.Addr().Next(); !last.Less(ip); ip = ip.Next() {
			if !slices.ContainsFunc(all, func(r record[keptAddress]) bool { return r.Data.PublicIP == ip.String() }) {
				return ip.String(), nil
			}
		}
	}
	return "", awsfault.Errorf("AddressLimitExceeded", "The maximum number of addresses has been reached: %d.", len(all))
}

type releaseAddressInput struct {
	AllocationID       string
	NetworkBorderGroup string
	DryRun             bool
}

func (a *api) releaseAddress() awsfront.Spec[releaseAddressInput, struct{}] {
	return awsfront.Spec[releaseAddressInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *releaseAddressInput) ([]awsfront.Target, error) {
			if in.AllocationID == "" {
				return nil, awsfault.Errorf(missingParameter, "The request must contain the parameter allocationId")
			}
			return a.about(ctx, call, ec2id.Address, in.AllocationID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *releaseAddressInput) (*struct{}, error) {
			if err := only("networkBorderGroup", in.NetworkBorderGroup, a.Region); err != nil {
				return nil, err
			}
			defer a.locks.Hold(addressesLock)()
			found, err := a.addresses().get(ctx, in.AllocationID)
			if err != nil {
				return nil, err
			}
			uses, err := a.addressUses(ctx)
			if err != nil {
				return nil, err
			}
			if _, used := uses[in.AllocationID]; used {
				return nil, awsfault.Errorf("InvalidIPAddress.InUse", "Address %s is in use.", found.Data.PublicIP)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return nil, a.addresses().remove(ctx, in.AllocationID)
		},
	}
}

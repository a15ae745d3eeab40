// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/netip"
	"slices"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsrecord"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	"muster.dev/muster/internal/cloud/ec2/instance"
)

// addressesLock is the lock under which addresses are given out and associated.
const addressesLock = "elastic addresses"

// PublicRanges are what elastic addresses are of: ranges for documentation (RFC 5737), which lead nowhere.
var PublicRanges = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("192.0.2.0/24")}

// KeptAddress is an elastic address as it is kept. That a NAT gateway has it, the gateway keeps.
type KeptAddress struct {
	PublicIP    string `json:"publicIP"`
	Instance    string `json:"instance,omitempty"`
	PrivateIP   string `json:"privateIP,omitempty"`
	Association string `json:"association,omitempty"`
}

func (a *Actions) addresses() ec2resource.Records[KeptAddress] {
	return ec2resource.Records[KeptAddress]{EC2: a.ec2, Kind: ec2id.Address, Of: awsrecord.Kind[KeptAddress]{Type: "elastic-ip"}}
}

// RegisterAddresses adds the actions about them to the front.
func (a *Actions) RegisterAddresses(f *awsfront.Front) {
	ec2resource.Register(a.ec2, f, "AllocateAddress", a.allocateAddress())
	ec2resource.Register(a.ec2, f, "AssociateAddress", a.associateAddress())
	ec2resource.Register(a.ec2, f, "DescribeAddresses", a.describeAddresses())
	ec2resource.Register(a.ec2, f, "DescribeAddressesAttribute", a.describeAddressesAttribute())
	ec2resource.Register(a.ec2, f, "DisassociateAddress", a.disassociateAddress())
	ec2resource.Register(a.ec2, f, "ReleaseAddress", a.releaseAddress())
	a.ec2.Tagged(a.addresses().Tagger("elastic-ip", func(_ *awsfront.Call, r *ec2resource.Record[KeptAddress]) map[string][]string {
		return map[string][]string{"ec2:AllocationId": {r.ID}, "ec2:Domain": {"vpc"}, "ec2:PublicIpAddress": {r.Data.PublicIP}}
	}))
}

// addressUse is what an address is associated with.
type addressUse struct{ association, nat, instance, networkInterface, privateIP, vpc string }

// addressUses are the addresses that are associated, by allocation id. The address of an instance is free once the
// instance is gone.
func (a *Actions) addressUses(ctx context.Context) (map[string]addressUse, error) {
	uses := map[string]addressUse{}
	nats, err := a.NatGateways().List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nats {
		if d := nats[i].Data; d.Association != "" {
			uses[d.Address] = addressUse{d.Association, nats[i].ID, "", d.Interface, d.PrivateIP, d.VPC}
		}
	}
	all, err := a.addresses().List(ctx)
	if err != nil {
		return nil, err
	}
	var machines v1alpha1.MachineList
	if err := a.ec2.List(ctx, &machines); err != nil {
		return nil, err
	}
	for i := range all {
		d := all[i].Data
		there := slices.ContainsFunc(machines.Items, func(m v1alpha1.Machine) bool { return m.Name == d.Instance })
		if d.Association != "" && there {
			uses[all[i].ID] = addressUse{d.Association, "", d.Instance, instance.InterfaceOf(d.Instance), d.PrivateIP, ""}
		}
	}
	return uses, nil
}

// publicIn reports whether something in a VPC has an elastic address.
func (a *Actions) publicIn(ctx context.Context, vpc string) (bool, error) {
	uses, err := a.addressUses(ctx)
	if err != nil {
		return false, err
	}
	for _, use := range uses {
		if use.instance != "" {
			if use.vpc, err = a.instances.VpcOfInstance(ctx, use.instance); err != nil {
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
	AllocationID            string `filter:"allocation-id"`
	PublicIP                string `filter:"public-ip"`
	Domain                  string `filter:"domain"`
	PublicIpv4Pool          string
	NetworkBorderGroup      string `filter:"network-border-group"`
	AssociationID           string `filter:"association-id,omitempty"`
	InstanceID              string `filter:"instance-id,omitempty"`
	NetworkInterfaceID      string `filter:"network-interface-id,omitempty"`
	NetworkInterfaceOwnerID string `filter:"network-interface-owner-id,omitempty"`
	PrivateIPAddress        string `filter:"private-ip-address,omitempty"`
	Tags                    []awstag.Tag
}

type describeAddressesInput struct {
	ec2resource.Filtered
	AllocationIDs []string
	PublicIPs     []string
}

type describeAddressesOutput struct{ Addresses []address }

func addressNoun() ec2resource.Noun[address] {
	return ec2resource.Noun[address]{
		Kind: ec2id.Address, ID: func(e *address) string { return e.AllocationID }, Tags: func(e *address) map[string]string { return awsresource.TagMap(e.Tags) },
		Fields: awsresource.FiltersOf[address](),
	}
}

func (a *Actions) describeAddresses() awsfront.Spec[describeAddressesInput, describeAddressesOutput] {
	return awsfront.Spec[describeAddressesInput, describeAddressesOutput]{
		Do: func(ctx context.Context, call *awsfront.Call, in *describeAddressesInput) (*describeAddressesOutput, error) {
			all, err := a.addresses().List(ctx)
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
					AllocationID: all[i].ID, PublicIP: all[i].Data.PublicIP, Domain: "vpc", PublicIpv4Pool: "amazon", NetworkBorderGroup: a.ec2.Region, Tags: awsresource.ShownTags(all[i].Tags),
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
			out.Addresses, _, err = ec2resource.Choose(a.ec2, call, addressNoun(), shown, in.AllocationIDs, ec2resource.Paged{Filtered: in.Filtered}) // a page holds all there can be
			return out, err
		},
	}
}

type allocateAddressInput struct {
	Domain             string
	PublicIpv4Pool     string
	NetworkBorderGroup string
	TagSpecifications  []ec2resource.TagSpecification
	DryRun             bool
}

type allocateAddressOutput struct{ AllocationID, PublicIP, Domain, PublicIpv4Pool, NetworkBorderGroup string }

func (a *Actions) allocateAddress() awsfront.Spec[allocateAddressInput, allocateAddressOutput] {
	return awsfront.Spec[allocateAddressInput, allocateAddressOutput]{
		About: func(_ context.Context, call *awsfront.Call, in *allocateAddressInput) ([]awsfront.Target, error) {
			return a.ec2.AboutNew(call, "elastic-ip", in.TagSpecifications, map[string][]string{"ec2:Domain": {"vpc"}})
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *allocateAddressInput) (*allocateAddressOutput, error) {
			for _, err := range []error{ec2resource.Only("domain", in.Domain, "vpc"), ec2resource.Only("publicIpv4Pool", in.PublicIpv4Pool, "amazon"), ec2resource.Only("networkBorderGroup", in.NetworkBorderGroup, a.ec2.Region)} {
				if err != nil {
					return nil, err
				}
			}
			tags, err := ec2resource.ReadTags(in.TagSpecifications, "elastic-ip")
			if err != nil {
				return nil, err
			}
			defer a.ec2.Locks.Hold(addressesLock)()
			ip, err := a.freePublicIP(ctx)
			if err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			made, err := a.addresses().Create(ctx, KeptAddress{PublicIP: ip}, tags["elastic-ip"], awsresource.Token{})
			if err != nil {
				return nil, err
			}
			return &allocateAddressOutput{made.ID, ip, "vpc", "amazon", a.ec2.Region}, nil
		},
	}
}

// freePublicIP is the first address of the public ranges that nobody has.
func (a *Actions) freePublicIP(ctx context.Context) (string, error) {
	all, err := a.addresses().List(ctx)
	if err != nil {
		return "", err
	}
	for _, cidr := range PublicRanges {
		_, last := ec2resource.ReservedOf(cidr)
		for ip := cidr.Addr().Next(); !last.Less(ip); ip = ip.Next() {
			if !slices.ContainsFunc(all, func(r ec2resource.Record[KeptAddress]) bool { return r.Data.PublicIP == ip.String() }) {
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

func (a *Actions) releaseAddress() awsfront.Spec[releaseAddressInput, struct{}] {
	return awsfront.Spec[releaseAddressInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *releaseAddressInput) ([]awsfront.Target, error) {
			if in.AllocationID == "" {
				return nil, awsfault.Errorf(ec2resource.MissingParameter, "The request must contain the parameter allocationId")
			}
			return a.ec2.About(ctx, call, ec2id.Address, in.AllocationID)
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *releaseAddressInput) (*struct{}, error) {
			if err := ec2resource.Only("networkBorderGroup", in.NetworkBorderGroup, a.ec2.Region); err != nil {
				return nil, err
			}
			defer a.ec2.Locks.Hold(addressesLock)()
			found, err := a.addresses().Get(ctx, in.AllocationID)
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
			return nil, a.addresses().Remove(ctx, in.AllocationID)
		},
	}
}

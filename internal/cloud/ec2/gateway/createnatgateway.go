// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
)

type createNATGatewayInput struct {
	SubnetID          string
	AllocationID      string
	ConnectivityType  string
	PrivateIPAddress  string
	AvailabilityMode  string
	ClientToken       string
	TagSpecifications []ec2resource.TagSpecification
	DryRun            bool
}

type createNATGatewayOutput struct {
	NatGateway  *natGateway
	ClientToken string
}

func (a *Actions) createNATGateway() awsfront.Spec[createNATGatewayInput, createNATGatewayOutput] {
	return awsfront.Spec[createNATGatewayInput, createNATGatewayOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createNATGatewayInput) ([]awsfront.Target, error) {
			made, err := a.ec2.AboutNew(call, "natgateway", in.TagSpecifications, nil)
			if err != nil {
				return nil, err
			}
			address, err := a.ec2.About(ctx, call, ec2id.Address, in.AllocationID)
			if err != nil {
				return nil, err
			}
			subnet, err := a.ec2.About(ctx, call, ec2id.Subnet, in.SubnetID)
			return append(append(made, address...), subnet...), err
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *createNATGatewayInput) (*createNATGatewayOutput, error) {
			tags, err := ec2resource.ReadTags(in.TagSpecifications, "natgateway")
			if err != nil {
				return nil, err
			}
			key, err := ec2resource.TokenOf(call, in.ClientToken)
			if err != nil {
				return nil, err
			}
			if err := in.check(); err != nil {
				return nil, err
			}
			subnet, err := a.ec2.Subnet(ctx, in.SubnetID)
			if err != nil {
				return nil, err
			}
			defer a.ec2.Locks.Hold(subnet.Spec.VPCID)()
			defer a.ec2.Locks.Hold(addressesLock)()
			again, err := a.madeNAT(ctx, key)
			if err != nil || again != nil {
				return again, err
			}
			data, err := a.planNAT(ctx, in, subnet)
			if err != nil {
				return nil, err
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			made, err := a.NatGateways().Create(ctx, data, tags["natgateway"], key)
			if err != nil {
				return nil, err
			}
			shown := showNAT(made)
			return &createNATGatewayOutput{&shown, in.ClientToken}, nil
		},
	}
}

// madeNAT is what this very request has made before, nil if nothing: its address is associated by now, and no reason to
// refuse it.
func (a *Actions) madeNAT(ctx context.Context, key awsresource.Token) (*createNATGatewayOutput, error) {
	all, err := a.NatGateways().List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all {
		made, err := key.Made(ec2resource.Marked(all[i].Labels, all[i].Annotations))
		if err != nil {
			return nil, err
		}
		if made {
			shown := showNAT(&all[i])
			return &createNATGatewayOutput{&shown, key.Key.Token}, nil
		}
	}
	return nil, nil
}

func (in *createNATGatewayInput) check() error {
	if in.SubnetID == "" {
		return awsfault.Errorf(ec2resource.MissingParameter, "The request must include the SubnetId parameter. Add the required parameter and retry the request.")
	}
	if err := ec2resource.Only("availabilityMode", in.AvailabilityMode, "zonal"); err != nil {
		return err
	}
	if err := ec2resource.Only("connectivityType", in.ConnectivityType, "public", "private"); err != nil {
		return err
	}
	switch private := in.ConnectivityType == "private"; {
	case private && in.AllocationID != "":
		return awsfault.Errorf(ec2resource.InvalidParameter, "The AllocationId parameter is not supported for private NAT gateways.")
	case !private && in.AllocationID == "":
		return awsfault.Errorf(ec2resource.MissingParameter, "The request must include the AllocationId parameter. Add the required parameter and retry the request.")
	}
	return nil
}

// planNAT is what is kept of a new NAT gateway. A NAT gateway in a VPC without an internet gateway has the state
// failed, as on EC2: it exists, and never works.
func (a *Actions) planNAT(ctx context.Context, in *createNATGatewayInput, subnet *v1alpha1.Subnet) (keptNAT, error) {
	data := keptNAT{VPC: subnet.Spec.VPCID, Subnet: subnet.Name, Connectivity: "public", Interface: ec2resource.NewID(ec2id.NetworkInterface), Address: in.AllocationID}
	if in.ConnectivityType == "private" {
		data.Connectivity = "private"
	}
	if in.AllocationID != "" {
		address, err := a.addresses().Get(ctx, in.AllocationID)
		if err != nil {
			return data, err
		}
		uses, err := a.addressUses(ctx)
		if err != nil {
			return data, err
		}
		if _, used := uses[in.AllocationID]; used {
			return data, awsfault.Errorf("Resource.AlreadyAssociated", "Elastic IP address [%s] is already associated", in.AllocationID)
		}
		gateway, err := a.gatewayOf(ctx, data.VPC)
		if err != nil {
			return data, err
		}
		if gateway == "" {
			data.FailureCode, data.FailureMessage = "Gateway.NotAttached", "Network "+data.VPC+" has no Internet gateway attached"
			return data, nil
		}
		data.PublicIP, data.Association = address.Data.PublicIP, ec2resource.NewID(ec2id.AddressAssoc)
	}
	var err error
	data.PrivateIP, err = a.natIP(ctx, subnet, in.PrivateIPAddress)
	return data, err
}

// natIP is the private address of a NAT gateway: the one that is asked for, or the highest free one. Machines get the
// lowest ones.
func (a *Actions) natIP(ctx context.Context, subnet *v1alpha1.Subnet, asked string) (string, error) {
	cidr, err := netip.ParsePrefix(subnet.Spec.CIDRBlock)
	if err != nil {
		return "", err
	}
	used, err := a.privateIPs(ctx, subnet)
	if err != nil {
		return "", err
	}
	first, last := ec2resource.ReservedOf(cidr)
	if asked != "" {
		address, err := netip.ParseAddr(asked)
		switch {
		case err != nil || !cidr.Contains(address) || address.Less(first) || last.Less(address):
			return "", awsfault.Errorf(ec2resource.InvalidParameter, "Value (%.50s) for parameter privateIpAddress is invalid. The address does not fall within the subnet's address range, or is reserved", asked)
		case used[address]:
			return "", awsfault.Errorf("InvalidIPAddress.InUse", "The address %s is in use.", asked)
		}
		return address.String(), nil
	}
	for address := last; !address.Less(first); address = address.Prev() {
		if !used[address] {
			return address.String(), nil
		}
	}
	return "", awsfault.Errorf("InsufficientFreeAddressesInSubnet", "The subnet %s has no free addresses.", subnet.Name)
}

// privateIPs are the addresses of a subnet that somebody has.
func (a *Actions) privateIPs(ctx context.Context, subnet *v1alpha1.Subnet) (map[netip.Addr]bool, error) {
	used := map[netip.Addr]bool{}
	add := func(text string) {
		if address, err := netip.ParseAddr(text); err == nil {
			used[address] = true
		}
	}
	var machines v1alpha1.MachineList
	if err := a.ec2.List(ctx, &machines); err != nil {
		return nil, err
	}
	for i := range machines.Items {
		if string(machines.Items[i].Spec.SubnetID) != subnet.Name {
			continue
		}
		for _, address := range machines.Items[i].Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				add(address.Address)
			}
		}
	}
	nats, err := a.NatGateways().List(ctx)
	if err != nil {
		return nil, err
	}
	for i := range nats {
		if nats[i].Data.Subnet == subnet.Name {
			add(nats[i].Data.PrivateIP)
		}
	}
	all, err := a.ec2.Usage(subnet.Spec.VPCID)
	if err != nil {
		return nil, err
	}
	for _, usage := range all {
		for _, address := range usage.Taken {
			used[address] = true
		}
		for _, own := range usage.Used {
			for address := own.Addr(); usage.ID == subnet.Name && own.Contains(address); address = address.Next() {
				used[address] = true
			}
		}
	}
	return used, nil
}

// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/dryrun"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/ec2/ec2resource"
	ec2instance "muster.dev/muster/internal/cloud/ec2/instance"
)

type associateAddressInput struct {
	AllocationID       string
	InstanceID         string
	NetworkInterfaceID string
	PrivateIPAddress   string
	AllowReassociation *bool
	DryRun             bool
}

type associateAddressOutput struct{ AssociationID string }

// instance is the one that a request is about, by its own id or that of its network interface.
func (in *associateAddressInput) instance() (string, error) {
	switch {
	case in.InstanceID == "" && in.NetworkInterfaceID == "":
		return "", awsfault.Errorf(ec2resource.MissingParameter, "Either instance ID or network interface id must be specified")
	case in.NetworkInterfaceID == "":
		return in.InstanceID, ec2id.Instance.Check(in.InstanceID)
	}
	id, err := ec2instance.Of(in.NetworkInterfaceID)
	if err == nil && in.InstanceID != "" && in.InstanceID != id {
		return "", awsfault.Errorf(ec2resource.InvalidCombination, "The network interface %s is not of the instance %s", in.NetworkInterfaceID, in.InstanceID)
	}
	return id, err
}

func (a *Actions) associateAddress() awsfront.Spec[associateAddressInput, associateAddressOutput] {
	return awsfront.Spec[associateAddressInput, associateAddressOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *associateAddressInput) ([]awsfront.Target, error) {
			if in.AllocationID == "" {
				return nil, awsfault.Errorf(ec2resource.MissingParameter, "You must specify an allocation id when mapping an address to a VPC instance")
			}
			instance, err := in.instance()
			if err != nil {
				return nil, err
			}
			address, err := a.ec2.About(ctx, call, ec2id.Address, in.AllocationID)
			if err != nil {
				return nil, err
			}
			of, err := a.ec2.About(ctx, call, ec2id.Instance, instance)
			return append(append(address, of...), a.ec2.Target(call, "network-interface", ec2instance.InterfaceOf(instance), nil, nil)), err
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *associateAddressInput) (*associateAddressOutput, error) {
			defer a.ec2.Locks.Hold(addressesLock)()
			if _, err := a.addresses().Get(ctx, in.AllocationID); err != nil {
				return nil, err
			}
			instance, err := in.instance()
			if err != nil {
				return nil, err
			}
			ip, err := a.addressOfInstance(ctx, instance, in)
			if err != nil {
				return nil, err
			}
			uses, err := a.addressUses(ctx)
			if err != nil {
				return nil, err
			}
			use, used := uses[in.AllocationID]
			switch {
			case used && use.instance == instance:
				return &associateAddressOutput{use.association}, nil
			case used && (use.nat != "" || in.AllowReassociation != nil && !*in.AllowReassociation):
				return nil, awsfault.Errorf("Resource.AlreadyAssociated", "resource %s is already associated with associate-id %s", in.AllocationID, use.association)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			association := ec2resource.NewID(ec2id.AddressAssoc)
			err = a.addresses().Update(ctx, in.AllocationID, func(r *ec2resource.Record[KeptAddress]) error {
				r.Data.Instance, r.Data.PrivateIP, r.Data.Association = instance, ip, association
				return nil
			})
			if err != nil {
				return nil, err
			}
			return &associateAddressOutput{association}, nil
		},
	}
}

// addressOfInstance is the private address of an instance in a VPC that has an internet gateway.
func (a *Actions) addressOfInstance(ctx context.Context, id string, in *associateAddressInput) (string, error) {
	vpc, err := a.instances.VpcOfInstance(ctx, id)
	if err != nil {
		return "", err
	}
	gateway, err := a.gatewayOf(ctx, vpc)
	if err != nil {
		return "", err
	}
	if gateway == "" {
		return "", awsfault.Errorf("Gateway.NotAttached", "Network %s is not attached to any internet gateway", vpc)
	}
	m := &v1alpha1.Machine{}
	if err := a.ec2.Get(ctx, ec2id.Instance, id, m); err != nil {
		return "", err
	}
	for _, own := range m.Status.Addresses {
		if own.Type == corev1.NodeInternalIP && (in.PrivateIPAddress == "" || in.PrivateIPAddress == own.Address) {
			return own.Address, nil
		}
	}
	if in.PrivateIPAddress != "" {
		return "", awsfault.Errorf(ec2resource.InvalidParameter, "The address %.50s is not one of the instance %s", in.PrivateIPAddress, id)
	}
	return "", awsfault.Errorf("InvalidInstanceID", "The pending instance '%s' is not in a valid state for this operation", id)
}

type disassociateAddressInput struct {
	AssociationID string
	DryRun        bool
}

// association is what an association id stands for: its address, and its use.
func (a *Actions) addressAssociation(ctx context.Context, id string) (string, addressUse, error) {
	if id == "" {
		return "", addressUse{}, awsfault.Errorf(ec2resource.MissingParameter, "Either public IP or association id must be specified")
	}
	if err := ec2id.AddressAssoc.Check(id); err != nil {
		return "", addressUse{}, err
	}
	uses, err := a.addressUses(ctx)
	if err != nil {
		return "", addressUse{}, err
	}
	for address, use := range uses {
		if use.association == id {
			return address, use, nil
		}
	}
	return "", addressUse{}, ec2id.AddressAssoc.NotFound(id)
}

func (a *Actions) disassociateAddress() awsfront.Spec[disassociateAddressInput, struct{}] {
	return awsfront.Spec[disassociateAddressInput, struct{}]{
		About: func(ctx context.Context, call *awsfront.Call, in *disassociateAddressInput) ([]awsfront.Target, error) {
			address, use, err := a.addressAssociation(ctx, in.AssociationID)
			if ec2resource.IsMissing(err, ec2id.AddressAssoc) {
				return []awsfront.Target{a.ec2.Target(call, "elastic-ip", "*", nil, nil)}, nil
			}
			if err != nil {
				return nil, err
			}
			of, err := a.ec2.About(ctx, call, ec2id.Address, address)
			return append(of, a.ec2.Target(call, "network-interface", use.networkInterface, nil, nil)), err
		},
		Do: func(ctx context.Context, _ *awsfront.Call, in *disassociateAddressInput) (*struct{}, error) {
			defer a.ec2.Locks.Hold(addressesLock)()
			address, use, err := a.addressAssociation(ctx, in.AssociationID)
			if err != nil {
				return nil, err
			}
			if use.nat != "" {
				return nil, awsfault.Errorf("AuthFailure", "You do not have permission to access the specified resource: the address is that of %s, and is free once the gateway is deleted", use.nat)
			}
			if err := dryrun.Would(in.DryRun); err != nil {
				return nil, err
			}
			return nil, a.addresses().Update(ctx, address, func(r *ec2resource.Record[KeptAddress]) error {
				r.Data.Instance, r.Data.PrivateIP, r.Data.Association = "", "", ""
				return nil
			})
		},
	}
}

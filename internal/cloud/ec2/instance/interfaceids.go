// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ec2id"
)

// VpcOfInstance is the VPC that an instance is in.
func (a *Actions) VpcOfInstance(ctx context.Context, id string) (string, error) {
	m := &v1alpha1.Machine{}
	if err := a.ec2.Get(ctx, ec2id.Instance, id, m); err != nil {
		return "", err
	}
	of, err := a.ec2.Subnet(ctx, string(m.Spec.SubnetID))
	if err != nil {
		return "", err
	}
	return of.Spec.VPCID, nil
}

// InterfaceOf is the id of the one network interface of an instance.
func InterfaceOf(instance string) string {
	return ec2id.NetworkInterface.Prefix + instance[len(ec2id.Instance.Prefix):]
}

// Of is the id of the instance that has a network interface. An id of another form is an error.
func Of(networkInterface string) (string, error) {
	if err := ec2id.NetworkInterface.Check(networkInterface); err != nil {
		return "", err
	}
	return ec2id.Instance.Prefix + networkInterface[len(ec2id.NetworkInterface.Prefix):], nil
}

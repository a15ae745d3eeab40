// SPDX-License-Identifier: Apache-2.0

package vpccontroller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/vpc"
)

// First makes the objects of the default VPC as it is described, if there are none: it is described before the
// management plane is there. The VPC comes last: one that is there had its subnets, and if this was cut short the next
// call goes on.
func First(ctx context.Context, api client.Client, described []vpc.Description) error {
	for _, description := range described {
		if !description.Default {
			continue
		}
		object := &v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: description.ID}}
		err := api.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("looking for the default VPC: %w", err)
		}
		for _, subnet := range description.Subnets {
			object := &v1alpha1.Subnet{
				ObjectMeta: metav1.ObjectMeta{Name: subnet.ID},
				Spec:       v1alpha1.SubnetSpec{VPCID: description.ID, CIDRBlock: subnet.CIDR.String(), AvailabilityZone: subnet.Zone, MapPublicIPOnLaunch: true}, // as AWS's default subnets: eksctl takes no others for public ones
			}
			if err := api.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("making a subnet of the default VPC: %w", err)
			}
		}
		object.Spec = v1alpha1.VPCSpec{CIDRBlock: description.CIDR.String(), IsDefault: true, Egress: v1alpha1.VPCEgress{Mode: v1alpha1.EgressMode(description.Egress.Mode)}}
		if err := api.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making the default VPC: %w", err)
		}
	}
	return nil
}

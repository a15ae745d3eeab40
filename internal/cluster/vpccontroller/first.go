// SPDX-License-Identifier: Apache-2.0

package vpccontroller

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
)

// DefaultCIDR is the range of the default VPC, as of AWS's accounts; its subnets are a /20 in each zone.
const DefaultCIDR = "172.31.0.0/16"

const defaultSubnetBits = 20

// First makes the default VPC with a subnet in each zone, in an account without any VPC. The VPC comes last: one that is there has its
// subnets, and if this was cut short the next call goes on with those that it finds.
func First(ctx context.Context, api client.Client, zones []string) error {
	var vpcs v1alpha1.VPCList
	if err := api.List(ctx, &vpcs); err != nil {
		return fmt.Errorf("looking for VPCs: %w", err)
	}
	if len(vpcs.Items) > 0 {
		return nil
	}
	var subnets v1alpha1.SubnetList
	if err := api.List(ctx, &subnets); err != nil {
		return fmt.Errorf("looking for subnets: %w", err)
	}
	raw := make([]byte, 9)
	_, _ = rand.Read(raw) // which never fails
	id := "vpc-" + hex.EncodeToString(raw)[:17]
	for _, subnet := range subnets.Items {
		if subnet.Name == subnetID(subnet.Spec.VPCID, subnet.Spec.AvailabilityZone) {
			id = subnet.Spec.VPCID // an earlier call was cut short
			break
		}
	}
	network := netip.MustParsePrefix(DefaultCIDR).Addr().As4()
	for i, zone := range zones {
		block := network
		block[2] += byte(i << (24 - defaultSubnetBits))
		subnet := &v1alpha1.Subnet{
			ObjectMeta: metav1.ObjectMeta{Name: subnetID(id, zone)},
			Spec:       v1alpha1.SubnetSpec{VPCID: id, CIDRBlock: netip.PrefixFrom(netip.AddrFrom4(block), defaultSubnetBits).String(), AvailabilityZone: zone},
		}
		if err := api.Create(ctx, subnet); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("making a subnet of the default VPC: %w", err)
		}
	}
	object := &v1alpha1.VPC{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.VPCSpec{CIDRBlock: DefaultCIDR, IsDefault: true}}
	if err := api.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("making the default VPC: %w", err)
	}
	return nil
}

// subnetID is the id of the default VPC's subnet in a zone.
func subnetID(vpc, zone string) string {
	sum := sha256.Sum256([]byte(vpc + "/" + zone))
	return "subnet-" + hex.EncodeToString(sum[:])[:17]
}

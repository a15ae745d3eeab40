// SPDX-License-Identifier: Apache-2.0

package ec2resource

import (
	"context"
	"fmt"
	"slices"

	"muster.dev/muster/api/v1alpha1"
)

// PortText is a port as conditions have it; empty if a rule has no ports.
func PortText(port *int32) string {
	if port == nil {
		return ""
	}
	return fmt.Sprint(*port)
}

// Gone reports whether the deletion of a group was accepted. The groups that come with a VPC or a cluster stay.
func Gone(g *v1alpha1.SecurityGroup) bool {
	return !g.DeletionTimestamp.IsZero() && !g.IsDefault() && g.Spec.ClusterName == ""
}

// SecurityGroups are all that are there.
func (a *EC2) SecurityGroups(ctx context.Context) ([]v1alpha1.SecurityGroup, error) {
	var all v1alpha1.SecurityGroupList
	if err := a.List(ctx, &all); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all.Items, func(g v1alpha1.SecurityGroup) bool { return Gone(&g) }), nil
}

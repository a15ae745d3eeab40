// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/ec2id"
)

// checkGroupsOf refuses security groups that an instance cannot have.
func (a *api) checkGroupsOf(_ context.Context, _ *v1alpha1.Machine, ids []string) error {
	for _, id := range ids {
		if err := ec2id.SecurityGroup.Check(id); err != nil {
			return err
		}
	}
	return nil
}

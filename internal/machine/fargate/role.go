// SPDX-License-Identifier: Apache-2.0

package fargate

import "muster.dev/muster/api/v1alpha1"

// RoleProblem is the error of a pod execution role that cannot be used as it is. Its reason is that of the condition
// Ready of profiles that name the role. Any other error about a role passes, and says nothing of the role.
type RoleProblem struct{ Reason, Message string }

func (p *RoleProblem) Error() string { return p.Message }

// IsRoleProblem reports whether a reason of the condition Ready of a profile is about its role.
func IsRoleProblem(reason string) bool {
	return reason == v1alpha1.ReasonPodExecutionRole || reason == v1alpha1.ReasonPodExecutionRoleInUse
}

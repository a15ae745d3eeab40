// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
)

// reasonNoEffect is the reason of Events about settings that are kept for the EKS API alone.
const reasonNoEffect = "NoEffect"

// reportKept reports those settings of a new group from which people expect an effect that they do not have.
func (r *groups) reportKept(group *v1alpha1.NodeGroup) {
	if access := group.Spec.EKS.RemoteAccess; access != nil {
		r.recorder.Eventf(group, nil, corev1.EventTypeWarning, reasonNoEffect, "Create",
			"remoteAccess with key pair %s is kept and has no effect yet: machines run no SSH server; use kubectl debug node/NAME", access.EC2SSHKey)
	}
}

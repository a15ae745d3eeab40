// SPDX-License-Identifier: Apache-2.0

package podnotice

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const reasonNoUserNamespace = "UserNamespaceNotSupported"

// noIDs are the words of containerd where it cannot become the user that a pod's root is to be, since the machine has
// no ids beyond its own (containerd pkg/sys/unshare_linux.go, UnshareAfterEnterUserns).
const noIDs = "failed to set effective UID: invalid argument"

// noUserNamespace returns nil if a kubelet's Event is not about a pod that is to have a user namespace on a machine
// that has one itself.
func noUserNamespace(event *corev1.Event) *notice {
	if event.Reason != reasonFailedSandbox || !strings.Contains(event.Message, noIDs) {
		return nil
	}
	return &notice{"hostUsers", reasonNoUserNamespace, "hostUsers: false needs user ids beyond those of the machine, which has none, as with isolation user-namespace, where every pod's root is a user of the host " +
		"without rights. Leave hostUsers out, or have the pod run on a node group with isolation none"}
}

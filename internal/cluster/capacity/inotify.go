// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"

	"muster.dev/muster/api/v1alpha1"
)

// What the programs of a control plane and of a local machine hold of inotify instances: counted, with Kubernetes v1.36.3 and containerd v2.4.2.
const (
	inotifyPlane   = 18
	inotifyMachine = 8
)

// InotifyInstances returns how many inotify instances the programs of a cluster with these node groups hold on the host.
func InotifyInstances(groups []*v1alpha1.NodeGroup) int {
	need := inotifyPlane
	for _, g := range groups {
		if g.Spec.Provider == v1alpha1.ProviderLocal {
			need += inotifyMachine * int(g.Spec.ScalingConfig.DesiredSize)
		}
	}
	return need
}

// Inotify returns an error if the host has fewer inotify instances left than the programs of a cluster need: many distributions give a user
// 128, which is enough for four clusters. A kubelet that gets none ends as soon as it starts, again and again. limit is the value of
// fs.inotify.max_user_instances.
func Inotify(need, left int, limit string) error {
	if left >= need {
		return nil
	}
	return fmt.Errorf("fs.inotify.max_user_instances is %s on this host, %d of them are left, and the cluster's programs need %d: "+
		"allow more with `sysctl fs.inotify.max_user_instances=1024`, or stop other clusters", limit, left, need)
}

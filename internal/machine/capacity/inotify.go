// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"strconv"

	"muster.dev/muster/api/v1alpha1"
)

// Inotify instances that the programs of a control plane and of a local machine hold, as counted with Kubernetes
// v1.36.3 and containerd v2.4.2.
const (
	inotifyPlane   = 18
	inotifyMachine = 8
	// inotifyAdvised is what a host of local machines should allow a user. All pods of a machine with ids of its own
	// count for one user, and those of all others for root.
	inotifyAdvised = 1024
)

// InotifyInstances returns how many inotify instances the programs of a cluster with these node groups hold on the
// host.
func InotifyInstances(groups []*v1alpha1.NodeGroup) int {
	need := inotifyPlane
	for _, g := range groups {
		if g.Spec.Provider.Can(v1alpha1.RunPods) {
			need += inotifyMachine * int(g.Spec.ScalingConfig.DesiredSize)
		}
	}
	return need
}

// Inotify returns an error if the host has fewer inotify instances left than the programs of a cluster need: many
// distributions give a user 128, which is enough for four clusters. A kubelet that gets none ends as soon as it starts,
// again and again. limit is the value of fs.inotify.max_user_instances.
func Inotify(need, left int, limit string) error {
	if left >= need {
		return nil
	}
	return fmt.Errorf("fs.inotify.max_user_instances is %s on this host, %d of them are left, and the cluster's programs need %d: "+
		"allow more with `sysctl fs.inotify.max_user_instances=%d`, or stop other clusters", limit, left, need, inotifyAdvised)
}

// FewInotifyInstances returns one line for people if a host lets a user have fewer inotify instances than local
// machines may come to need: with the file that allows more for good. Empty if there are enough, or if limit, the value
// of fs.inotify.max_user_instances, is not a number.
func FewInotifyInstances(limit string) string {
	allowed, err := strconv.Atoi(limit)
	if err != nil || allowed >= inotifyAdvised {
		return ""
	}
	return fmt.Sprintf("fs.inotify.max_user_instances is %d on this host, and pods of local machines may need %d: add the line `fs.inotify.max_user_instances = %[2]d` "+
		"to /etc/sysctl.d/60-muster.conf, then run `sysctl --system`", allowed, inotifyAdvised)
}

// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"os"
	"strings"

	"muster.dev/muster/api/v1alpha1"
)

const (
	// inotifyPlane and inotifyMachine are how many inotify instances the programs of a control plane and of a local machine hold: counted,
	// with Kubernetes v1.36.3 and containerd v2.4.2.
	inotifyPlane   = 18
	inotifyMachine = 8
	inotifyLimit   = "/proc/sys/fs/inotify/max_user_instances"
)

// checkInotify refuses a host that has no inotify instances left for the cluster: many distributions give a user 128, which is enough
// for four clusters. A kubelet that gets none ends as soon as it starts, again and again.
func checkInotify(groups []*v1alpha1.NodeGroup, count func(most int) (left int, err error)) error {
	need := inotifyPlane
	for _, g := range groups {
		if g.Spec.Provider == v1alpha1.ProviderLocal {
			need += inotifyMachine * int(g.Spec.ScalingConfig.DesiredSize)
		}
	}
	left, err := count(need)
	if err != nil || left == need {
		return err
	}
	limit, _ := os.ReadFile(inotifyLimit) // without it the line says a little less
	return fmt.Errorf("fs.inotify.max_user_instances is %s on this host, %d of them are left, and the cluster's programs need %d: "+
		"allow more with `sysctl fs.inotify.max_user_instances=1024`, or stop other clusters",
		strings.TrimSpace(string(limit)), left, need)
}

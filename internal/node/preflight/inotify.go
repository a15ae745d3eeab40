// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"

	"muster.dev/muster/internal/platform/host"
)

// inotifyNeed is how many inotify instances the programs of a node hold, kubelet, containerd and kube-proxy: counted,
// with Kubernetes v1.36.3 and containerd v2.4.2.
const inotifyNeed = 8

// inotify looks at what many distributions give a user few of: 128 instances. A kubelet that gets none ends as soon as
// it starts, and containerd goes on without its CRI, which nothing but its log tells. A node that runs has its own
// already.
func inotify(_ context.Context, h Host) Result {
	const fix = "allow more with sysctl -w fs.inotify.max_user_instances=1024, and the same in a file in /etc/sysctl.d; or stop what holds them"
	left, err := h.Inotify(inotifyNeed)
	if err != nil {
		return unknown(err, fix)
	}
	if left >= inotifyNeed {
		return ok("the programs of a node can have the %d instances that they need", inotifyNeed)
	}
	limit, err := h.Setting("fs.inotify.max_user_instances")
	if err != nil {
		limit = "not known"
	}
	result := Result{Status: Fail, Saw: fmt.Sprintf("fs.inotify.max_user_instances is %s, %d of them are left, and the programs of a node need %d", limit, left, inotifyNeed), Fix: fix}
	if earlier, err := h.Existing(); err == nil && earlier.ByMuster {
		result.Status = Warn
	}
	return result
}

// Inotify counts the instances that are left.
func (system) Inotify(most int) (int, error) { return host.Inotify(most) }

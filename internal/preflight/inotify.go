// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// inotifyNeed is how many inotify instances the programs of a node hold, kubelet, containerd and kube-proxy: counted, with Kubernetes
// v1.36.3 and containerd v2.4.2.
const inotifyNeed = 8

// inotify looks at what many distributions give a user few of: 128 instances. A kubelet that gets none ends as soon as it starts, and
// containerd goes on without its CRI, which nothing but its log tells. A node that runs has its own already.
func inotify(_ context.Context, host Host) Result {
	const fix = "allow more with sysctl -w fs.inotify.max_user_instances=1024, and the same in a file in /etc/sysctl.d; or stop what holds them"
	left, err := host.Inotify(inotifyNeed)
	if err != nil {
		return unknown(err, fix)
	}
	if left >= inotifyNeed {
		return ok("the programs of a node can have the %d instances that they need", inotifyNeed)
	}
	limit, err := host.Setting("fs.inotify.max_user_instances")
	if err != nil {
		limit = "not known"
	}
	result := Result{Status: Fail, Saw: fmt.Sprintf("fs.inotify.max_user_instances is %s, %d of them are left, and the programs of a node need %d", limit, left, inotifyNeed), Fix: fix}
	if earlier, err := host.Existing(); err == nil && earlier.ByMuster {
		result.Status = Warn
	}
	return result
}

// Inotify counts the instances by taking them, as the kernel tells nobody how many are left.
func (system) Inotify(most int) (int, error) {
	return inotifyLeft(most, unix.InotifyInit1)
}

func inotifyLeft(most int, open func(flags int) (fd int, err error)) (int, error) {
	var held []int
	defer func() {
		for _, fd := range held {
			_ = unix.Close(fd)
		}
	}()
	for len(held) < most {
		fd, err := open(unix.IN_CLOEXEC)
		if errors.Is(err, unix.EMFILE) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("asking for an inotify instance: %w", err)
		}
		held = append(held, fd)
	}
	return len(held), nil
}

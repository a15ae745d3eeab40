// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"muster.dev/muster/internal/node/bootreport"
)

const (
	// inotifyNeed is how many inotify instances the programs of a node hold; see internal/node/preflight.
	inotifyNeed = 8
	// inotifyInterval is how often it is looked whether the host has them.
	inotifyInterval = 2 * time.Second
	inotifyLimit    = "/proc/sys/fs/inotify/max_user_instances"
)

// inotify waits until the host has inotify instances left for the programs of a node. All machines of a host share
// them. A kubelet that gets none ends at once, and containerd goes on without its CRI for as long as it runs.
func (a *agent) inotify(ctx context.Context, count func(most int) (left int, err error)) bool {
	said := false
	for {
		left, err := count(inotifyNeed)
		if err != nil || left >= inotifyNeed {
			a.over(bootreport.InotifyExhausted)
			return ctx.Err() == nil
		}
		limit, err := os.ReadFile(inotifyLimit)
		if err != nil {
			limit = []byte("not known")
		}
		why := fmt.Sprintf("fs.inotify.max_user_instances of the host is %s, %d of them are left, and the programs of a node need %d: allow more on the host, "+
			"with sysctl -w fs.inotify.max_user_instances=1024 and the same in a file in /etc/sysctl.d", strings.TrimSpace(string(limit)), left, inotifyNeed)
		a.report(bootreport.InotifyExhausted, why)
		if !said {
			a.log.Error("machine cannot become a node yet", "error", why)
			said = true
		}
		if !sleep(ctx, inotifyInterval) {
			return false
		}
	}
}

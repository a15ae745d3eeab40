// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"path/filepath"
	"time"

	"muster.dev/muster/internal/platform/process"
)

// KubeletStarted tells since when the kubelet of this machine runs, and whether one does.
func KubeletStarted() (time.Time, bool) { return started("/proc", "kubelet") }

// started is about the oldest process of a name: another one may run in a pod.
func started(proc, name string) (at time.Time, ok bool) {
	roots, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return time.Time{}, false
	}
	for _, root := range roots {
		stat, err := process.ReadStat(root)
		if err != nil || stat.Name != name || stat.State == 'Z' { // without a stat, it has ended meanwhile
			continue
		}
		if since := stat.Started(); !ok || since.Before(at) {
			at, ok = since, true
		}
	}
	return at, ok
}

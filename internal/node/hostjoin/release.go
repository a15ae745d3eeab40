// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"os"
	"slices"

	"muster.dev/muster/internal/platform/release"
)

// skew is how many minors a kubelet may be older than its API server. It may not be newer.
const skew = 3

// releaseFor returns the release that a node of an API server of a version runs: of its minor, or the newest older one
// that a kubelet may be of, if programs of its minor are not there. Nodes of an API server of a minor that Muster does
// not know get the default.
func (h *Host) releaseFor(version string) release.Release {
	at := slices.IndexFunc(h.Releases, func(r release.Release) bool { return r.Minor() == release.Minor(version) })
	if at < 0 {
		return h.Releases.Default()
	}
	for i := at; i >= max(0, at-skew); i-- {
		if _, err := os.Stat(h.Releases[i].Program(h.Programs, "kubelet")); err == nil {
			return h.Releases[i]
		}
	}
	return h.Releases[at]
}

// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"muster.dev/muster/internal/platform/release"
)

// releaseFor returns the release that a node of an API server of a version runs: the newest whose programs are there, of
// those that a kubelet may be of. Without programs it is the newest that a kubelet may be of, whose absence is told. Nodes
// of an API server that says no version of Kubernetes get the default.
func (h *Host) releaseFor(version string) (release.Release, error) {
	if !strings.HasPrefix(version, "v1.") {
		return h.Releases.Default(), nil
	}
	plane := release.Release{Version: version}
	var newest release.Release
	for _, r := range slices.Backward(h.Releases) {
		if release.CheckSkew(r, plane) != nil {
			continue
		}
		if _, err := os.Stat(r.Program(h.Programs, "kubelet")); err == nil {
			return r, nil
		}
		if newest.Version == "" {
			newest = r
		}
	}
	if newest.Version == "" {
		return newest, fmt.Errorf("the API server is of version %.40s: a kubelet may not be newer, and at most %d minors older, and Muster has %s", version, release.MaxSkew, strings.Join(h.Releases.Minors(), ", "))
	}
	return newest, nil
}

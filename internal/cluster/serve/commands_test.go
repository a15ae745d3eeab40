// SPDX-License-Identifier: Apache-2.0

package serve

import "testing"

// One reload waits; more say nothing new.
func TestReloadWaitsOnce(t *testing.T) {
	s := newService(t)
	h := s.host(t.Context(), s.cfg.State.Cluster("blue"))
	for range 3 {
		commands{s}.Reload()
	}
	if len(h.reload) != 1 || len(s.look) != 1 {
		t.Errorf("%d reloads and %d looks wait", len(h.reload), len(s.look))
	}
	if status := s.Status(t.Context()); len(status.Clusters) != 1 || status.Clusters[0].NodeGroups == nil || status.Clusters[0].Machines == nil {
		t.Errorf("status is %+v", status)
	}
}

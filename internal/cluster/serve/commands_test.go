// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"strings"
	"testing"

	"muster.dev/muster/internal/cluster/controlsocket"
)

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

// A cluster that does not run here has nothing to rotate or to explain.
func TestCommandsOfNoCluster(t *testing.T) {
	c := commands{newService(t)}
	_, rotate := c.Rotate("blue")
	_, keys := c.RotateTokenKeys("blue", 0)
	_, explain := c.ExplainPod(t.Context(), "blue", "default", "app")
	for what, err := range map[string]error{"rotate": rotate, "token keys": keys, "explain": explain} {
		if !errors.Is(err, controlsocket.ErrNoCluster) {
			t.Errorf("%s: %v", what, err)
		}
	}
	c.host(t.Context(), c.cfg.State.Cluster("blue"))
	if _, err := c.ExplainPod(t.Context(), "blue", "default", "app"); !errors.Is(err, errNoIdentities) {
		t.Errorf("before the identity service runs: %v", err)
	}
	if _, err := c.RotateTokenKeys("blue", 0); err == nil || !strings.Contains(err.Error(), "is being started") {
		t.Errorf("before the cluster is up: %v", err)
	}
}

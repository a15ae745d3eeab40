// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestARequestThatNobodySigns waits with a kubelet for as long as it does: a quarter of an hour, which nothing shortens
// (k8s.io/client-go, util/certificate, certificateWaitTimeout). Its message is on docs/join-by-hand.md.
//
//story:about node certificates
func TestARequestThatNobodySigns(t *testing.T) {
	i, hash := withoutNodes(t)
	joinByHand(t, i, hash, func(g guest) {
		i.muster("delete", "host", "test-node")
		i.muster("token", "create", "--node-name", "test-node", "--address", "172.31.0.206", "--ttl", "1s")
		g.must("sh", "-c", "systemctl stop kubelet; rm /var/lib/kubelet/pki/kubelet-server-*; systemctl start kubelet")
		var said string
		took := i.upstream(kubeletGivesUp, "the kubelet gives up waiting", func() (err error) {
			out, err := g.host.Run(t.Context(), "sh", "-c", "sleep 5; journalctl --unit=kubelet --output=cat --grep='was not signed'")
			if said = strings.TrimSpace(out); err != nil || said == "" {
				return errors.New("it has not said so")
			}
			return nil
		})
		t.Logf("after %s: %s", took.Round(time.Second), said)
		line := strings.Join(shape(said), "")
		if !slices.ContainsFunc(shape(readPage(t, "join-by-hand.md")), func(shown string) bool { return strings.TrimSpace(shown) == line }) {
			t.Error("the page does not show that")
		}
	})
}

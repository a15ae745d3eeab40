// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"testing"
	"time"

	"muster.dev/muster/internal/node/discovery"
)

// A server that shows nothing, goes away, and shows nothing again for a moment when it is back has its time anew.
func TestAServerThatComesBackMaySettleAgain(t *testing.T) {
	ca := newAuthority(t, "blue")
	f := newFake(t, ca)
	f.will(answer{status: 404}, answer{status: 503}, answer{status: 404}, signed(t, kubeconfig(f.URL, ca)))
	c := by(t, f, ca)
	c.Settle, c.Timeout = 150*time.Millisecond, time.Minute
	if r, err := discovery.Discover(t.Context(), c); err != nil || string(r.CA) != ca.pem() {
		t.Errorf("got %+v, %v", r, err)
	}
}

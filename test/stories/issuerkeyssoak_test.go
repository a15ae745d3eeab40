// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"maps"
	"testing"
	"time"
)

// TestIssuerKeyRotation replaces the key of service account tokens for ten minutes, twice a minute, while programs on
// the host and in pods get tokens that live ten minutes and credentials by them. Nobody is refused once, and nothing
// restarts.
//
//story:about plane/tokenkeys plane/tokensigner
func TestIssuerKeyRotation(t *testing.T) {
	t.Parallel()
	w := newIRSA(t)
	w.noProvider()
	w.getsItsRole()
	w.byAgent()
	before := w.pids()
	load := w.startKeyLoad(10 * time.Second)
	rotations := 0
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); rotations++ {
		w.rotateTokenKeys("20s")
		time.Sleep(10 * time.Second) //nolint:forbidigo // the load goes on
	}
	if signed := load.stop(); signed != rotations+1 {
		t.Errorf("%d keys signed after %d rotations", signed, rotations)
	}
	t.Logf("%d rotations", rotations)
	if after := w.pids(); !maps.Equal(before, after) {
		t.Errorf("something restarted: %v, before %v", after, before)
	}
}

// newIRSA makes a cluster whose one machine has AWS's SDK as /opt/whoami.
func newIRSA(t *testing.T) *irsa {
	t.Helper()
	program := newWhoami(t)
	i := newInstallation(t)
	i.muster("up", "--nodes", "1")
	i.ready()
	w := newIAM(t, i)
	return w.irsaOn(w.mustKubectl("get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"), program)
}

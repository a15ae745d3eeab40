// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"encoding/pem"
	"testing"
)

// The cluster's authority was replaced since the join, and the node trusts the new one: that is not another cluster.
func TestJoinAgainAfterTheAuthorityWasReplaced(t *testing.T) {
	w := newWorld(t)
	mustRun(t, w.join)
	w.ca, w.caKey = newAuthority(t)
	w.caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.ca.Raw})
	w.write(authority, string(w.caPEM))
	mustRun(t, w.join)
	l, err := ReadLedger(w.root)
	if err != nil || len(l.Authorities) != 2 {
		t.Errorf("the ledger has authorities %v: %v", l.Authorities, err)
	}
}

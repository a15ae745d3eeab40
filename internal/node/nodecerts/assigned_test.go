// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
)

// The approver of serving certificates decides whether an address is the machine's; nothing on the disk changes by
// asking.
func TestAssigned(t *testing.T) {
	t.Parallel()
	old, address := netip.MustParseAddr("192.168.64.11"), netip.MustParseAddr("192.168.64.99")
	for name, verdict := range map[string]certificatesv1.RequestConditionType{"assigned": "", "somebody else's": certificatesv1.CertificateDenied} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if verdict != "" {
				w.verdict = verdict
			}
			before, _ := filepath.Glob(filepath.Join(w.dir, "*"))
			err := Assigned(t.Context(), w.config(), old, address)
			if (err == nil) != (verdict == "") || err != nil && !errors.Is(err, ErrNotAssigned) {
				t.Errorf("got %v", err)
			}
			if after, _ := filepath.Glob(filepath.Join(w.dir, "*")); !cmp.Equal(before, after) {
				t.Errorf("before %v, after %v", before, after)
			}
			if len(w.requests) != 1 || w.requests[0].Spec.SignerName != certificatesv1.KubeletServingSignerName {
				t.Fatalf("asked for %+v", w.requests)
			}
			block, _ := pem.Decode(w.requests[0].Spec.Request)
			asked, err := x509.ParseCertificateRequest(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, ip := range asked.IPAddresses {
				if ip.String() == old.String() {
					t.Error("it asks for the address that is gone")
				}
				found = found || ip.String() == address.String()
			}
			if !found {
				t.Errorf("it asks for %v", asked.IPAddresses)
			}
		})
	}
	c := newWorld(t).config()
	c.Dir = t.TempDir()
	c.Timeout = time.Second
	if err := Assigned(t.Context(), c, old, address); err == nil || errors.Is(err, ErrNotAssigned) {
		t.Errorf("a node without a certificate: %v", err)
	}
}

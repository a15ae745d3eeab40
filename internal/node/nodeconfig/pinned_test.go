// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"bytes"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/node/discovery"
)

func TestPinned(t *testing.T) {
	a, _ := pkitest.Authority(t, "a", time.Now(), time.Hour)
	b, _ := pkitest.Authority(t, "b", time.Now(), time.Hour)
	inPEM := func(raw []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}) }
	both := append(inPEM(a.Raw), inPEM(b.Raw)...)
	for name, tc := range map[string]struct {
		hashes []string
		want   []byte
	}{
		"no hash":          {nil, both},
		"one of them":      {[]string{discovery.Pin(b), "sha256:" + strings.Repeat("0", 64)}, inPEM(b.Raw)},
		"both":             {[]string{discovery.Pin(b), discovery.Pin(a)}, both},
		"another's":        {[]string{"sha256:" + strings.Repeat("0", 64)}, nil},
		"not as it should": {[]string{strings.ToUpper(discovery.Pin(a))}, nil},
	} {
		got, err := Pinned(both, tc.hashes)
		if !bytes.Equal(got, tc.want) || (err == nil) != (tc.want != nil) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		spec := Spec{
			Cluster: Cluster{Name: "a", APIServerEndpoint: "https://10.0.0.1", CertificateAuthority: both, CIDR: "10.100.0.0/16"},
			Join:    Join{CACertHashes: tc.hashes},
		}
		if problems := spec.Validate(); name != "not as it should" && (len(problems) == 0) != (tc.want != nil) {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/component"
)

func TestStrayed(t *testing.T) {
	at := component.Issuers{Host: "vm", Loopback: netip.MustParseAddr("127.0.1.1")}
	for _, test := range []struct {
		found string
		err   error
		want  string
	}{
		{"127.0.1.1", nil, ""},
		{"::1 127.0.1.1", nil, ""},
		{"192.0.2.1 192.0.2.2", nil, "vm leads to [192.0.2.1 192.0.2.2] here; put the line `127.0.1.1 vm` into /etc/hosts"},
		{"127.0.0.1", nil, "vm leads to [127.0.0.1] here"},
		{"", errors.New("no such host"), "vm is not found (no such host) here"},
	} {
		var found []netip.Addr
		for text := range strings.FieldsSeq(test.found) {
			found = append(found, netip.MustParseAddr(text))
		}
		if got := strayed(at, found, test.err); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s, %v: %q; want %q", test.found, test.err, got, test.want)
		}
	}
}

func TestIssuerNote(t *testing.T) {
	s := newService(t)
	s.issuerNote = "astray"
	h := s.host(t.Context(), s.cfg.State.Cluster("blue"))
	local, simulated := []NodeGroupStatus{{Provider: v1alpha1.ProviderLocal}}, []NodeGroupStatus{{Provider: v1alpha1.ProviderSimulated}}
	for _, test := range []struct {
		host   string
		groups []NodeGroupStatus
		want   string
	}{
		{"127.93.14.201", local, "pods cannot reach the issuer of service account tokens, https://HOST/id/ID. " + WithoutIssuerName},
		{"vm", local, "astray"},
		{"127.93.14.201", simulated, ""},
		{"vm", simulated, ""},
		{"vm", nil, ""},
	} {
		c := component.Config{Issuer: component.Issuer{URL: "https://HOST/id/ID"}}
		c.Issuers.Host = test.host
		if got := h.issuerNote(c, test.groups); (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s, %v: %q; want %q", test.host, test.groups, got, test.want)
		}
	}
}

// What is advised keeps what there is.
func TestAdviceAboutIssuersKeepsTheAccount(t *testing.T) {
	t.Parallel()
	if strings.Contains(WithoutIssuerName, "--delete") || !strings.Contains(WithoutIssuerName, "/openid/v1/jwks") {
		t.Errorf("advice: %s", WithoutIssuerName)
	}
}

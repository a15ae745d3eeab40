// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
)

func TestIssuerNote(t *testing.T) {
	s := newService(t)
	s.issuerNote = "astray"
	h := s.host(t.Context(), s.cfg.State.Cluster("blue"))
	local, simulated := []servicestatus.NodeGroup{{Provider: v1alpha1.ProviderLocal}}, []servicestatus.NodeGroup{{Provider: v1alpha1.ProviderSimulated}}
	for _, test := range []struct {
		host   string
		groups []servicestatus.NodeGroup
		want   string
	}{
		{"127.93.14.201", local, "pods cannot reach the issuer of service account tokens, https://HOST/id/ID. " + issuer.WithoutName},
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

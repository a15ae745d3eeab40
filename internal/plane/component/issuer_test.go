// SPDX-License-Identifier: Apache-2.0

package component

import (
	"net/netip"
	"slices"
	"testing"

	"muster.dev/muster/internal/certificates/authority"
)

func TestIssuerCredential(t *testing.T) {
	find := func(i Issuers) (authority.Credential, bool) {
		c := fixed(true)
		c.Issuers = i
		credentials, err := AccountCredentials(c.Account)
		if err != nil {
			t.Fatal(err)
		}
		n := slices.IndexFunc(credentials, func(c authority.Credential) bool { return c.Name == CredentialIssuer })
		if n < 0 {
			return authority.Credential{}, false
		}
		return credentials[n], true
	}
	address := netip.MustParseAddr("127.93.14.201")
	for _, test := range []struct {
		host  string
		names []string
	}{{"127.93.14.201", nil}, {"oidc.example.com", []string{"oidc.example.com"}}} {
		got, ok := find(Issuers{Address: address, Host: test.host})
		if !ok || !slices.Equal(got.DNSNames, test.names) || !slices.Equal(got.Addresses, []netip.Addr{address}) || got.Client || got.Authority != authority.Account {
			t.Errorf("%s: %+v", test.host, got)
		}
	}
	if got, ok := find(Issuers{}); ok {
		t.Errorf("without an address there is %+v", got)
	}
}

// Every cluster has the same audience, as on EKS, and an issuer of its own.
func TestIssuerFlags(t *testing.T) {
	c := fixed(true)
	spec, err := APIServerSpec(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--service-account-issuer=" + c.Issuer.URL, "--service-account-jwks-uri=" + c.Issuer.URL + "/keys", "--api-audiences=https://kubernetes.default.svc"} {
		if !slices.Contains(spec.Args, want) {
			t.Errorf("arguments %v lack %s", spec.Args, want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package caller_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"strings"
	"testing"

	"muster.dev/muster/internal/iam/caller"
)

func TestCallersAreWhoTheirCertificatesSay(t *testing.T) {
	long := strings.Repeat("a", 100)
	for _, want := range []caller.Caller{caller.Metadata(), caller.Authenticator("demo", "0A1B"), caller.Authenticator("Team_A-1", "0A1B"), caller.Authenticator(long, "0A1B")} {
		name, organizations := want.Subject()
		got, err := caller.Of(&x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: organizations}})
		if err != nil || got != want {
			t.Errorf("%s is read as %s: %v", want, got, err)
		}
	}
}

func TestOtherCertificatesAreNobodys(t *testing.T) {
	for name, subject := range map[string]pkix.Name{
		"nothing":                       {},
		"no organization":               {CommonName: "muster:authenticator:0A1B"},
		"two clusters":                  {CommonName: "muster:authenticator:0A1B", Organization: []string{"muster:cluster:a", "muster:cluster:b"}},
		"another organization too":      {CommonName: "muster:authenticator:0A1B", Organization: []string{"muster:cluster:a", "system:masters"}},
		"another organization":          {CommonName: "muster:authenticator:0A1B", Organization: []string{"system:masters"}},
		"the name without the prefix":   {CommonName: "muster:authenticator:0A1B", Organization: []string{"a"}},
		"no name":                       {CommonName: "muster:authenticator:0A1B", Organization: []string{"muster:cluster:"}},
		"a name with a line break":      {CommonName: "muster:authenticator:0A1B", Organization: []string{"muster:cluster:a\nx"}},
		"a name with a space":           {CommonName: "muster:authenticator:0A1B", Organization: []string{"muster:cluster:a "}},
		"a name that begins with -":     {CommonName: "muster:authenticator:0A1B", Organization: []string{"muster:cluster:-a"}},
		"a name in two scripts":         {CommonName: "muster:authenticator:0A1B", Organization: []string{"muster:cluster:а"}},
		"a name of 101 bytes":           {CommonName: "muster:authenticator:0A1B", Organization: []string{"muster:cluster:" + strings.Repeat("a", 101)}},
		"a cluster's name as the whole": {CommonName: "muster:cluster:a"},
		"metadata of a cluster":         {CommonName: "muster:metadata", Organization: []string{"muster:cluster:a"}},
		"the account itself":            {CommonName: "muster:account"},
		"a component of a cluster":      {CommonName: "eks:authenticator"},
		"no id":                         {CommonName: "muster:authenticator:", Organization: []string{"muster:cluster:a"}},
		"without an id":                 {CommonName: "muster:authenticator", Organization: []string{"muster:cluster:a"}},
		"an id in small letters":        {CommonName: "muster:authenticator:0a1b", Organization: []string{"muster:cluster:a"}},
		"an id of 44 bytes":             {CommonName: "muster:authenticator:" + strings.Repeat("A", 44), Organization: []string{"muster:cluster:a"}},
		"a kubelet":                     {CommonName: "system:node:ip-10-0-0-1", Organization: []string{"system:nodes"}},
		"a cluster in another spelling": {CommonName: "Muster:Authenticator", Organization: []string{"muster:cluster:a"}},
	} {
		if got, err := caller.Of(&x509.Certificate{Subject: subject}); err == nil || got != (caller.Caller{}) {
			t.Errorf("%s: is taken for %s: %v", name, got, err)
		}
	}
}

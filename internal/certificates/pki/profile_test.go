// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

const (
	appServing = "beta.eks.amazonaws.com/app-serving"
	appClient  = "example.com/client"
)

// profiles of all signers, by name.
func profiles(t testing.TB) map[string]pki.Profile {
	t.Helper()
	all := map[string]pki.Profile{}
	for _, name := range []string{pki.SignerKubeletClient, pki.SignerKubeletServing, pki.SignerClient, pki.SignerLegacyUnknown} {
		p, ok := pki.ProfileFor(name)
		if !ok {
			t.Fatalf("no profile for %s", name)
		}
		all[name] = p
	}
	for name, kind := range map[string]string{appServing: pki.KindServing, appClient: pki.KindClient} {
		p, err := pki.CustomProfile(name, kind)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = p
	}
	return all
}

func TestUsages(t *testing.T) {
	const sig, enc, client, server = pki.UsageDigitalSignature, pki.UsageKeyEncipherment, pki.UsageClientAuth, pki.UsageServerAuth
	const kc, ks, api, legacy = pki.SignerKubeletClient, pki.SignerKubeletServing, pki.SignerClient, pki.SignerLegacyUnknown
	for _, tc := range []struct {
		name   string
		usages []string
		want   string // signers that allow them
	}{
		{"client", []string{sig, client}, kc + " " + api + " " + legacy + " " + appClient},
		{"client, other order, RSA", []string{client, enc, sig}, kc + " " + api + " " + legacy + " " + appClient},
		{"client auth alone", []string{client}, api + " " + legacy + " " + appClient},
		{"serving", []string{server, sig}, ks + " " + legacy + " " + appServing},
		{"serving, RSA", []string{enc, server, sig}, ks + " " + legacy + " " + appServing},
		{"server auth alone", []string{server}, legacy + " " + appServing},
		{"both", []string{sig, client, server}, legacy},
		{"no extended usage", []string{sig, enc}, legacy},
		{"none", nil, ""},
		{"any third usage", []string{sig, server, "cert sign"}, ""},
		{"a fourth", []string{sig, enc, server, "cert sign"}, ""},
		{"the same twice", []string{sig, server, server}, ""},
		{"the same twice instead of one", []string{server, server}, ""},
		{"any", []string{sig, client, "any"}, ""},
		{"crl sign", []string{"crl sign"}, ""},
		{"ocsp signing", []string{"ocsp signing"}, ""},
		{"code signing", []string{sig, "code signing"}, legacy},
		{"one that does not exist", []string{sig, client, "hand-waving"}, ""},
		{"upper case", []string{"Digital Signature", client}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for signer, p := range profiles(t) {
				want := strings.Contains(" "+tc.want+" ", " "+signer+" ")
				if got := p.AllowsUsages(tc.usages); got != want {
					t.Errorf("%s: %v", signer, got)
				}
			}
		})
	}
}

func TestCustomProfileRefuses(t *testing.T) {
	for _, tc := range []struct{ name, signer, kind string }{
		{"one of upstream's", pki.SignerKubeletClient, pki.KindClient},
		{"a domain of upstream's", "foo.kubernetes.io/a", pki.KindClient},
		{"no domain", "/a", pki.KindClient},
		{"no path", "example.com/", pki.KindClient},
		{"no slash", "example.com", pki.KindClient},
		{"no kind", "example.com/a", ""},
		{"another kind", "example.com/a", "both"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if p, err := pki.CustomProfile(tc.signer, tc.kind); err == nil || p.Valid() {
				t.Errorf("made %+v", p)
			}
		})
	}
}

func TestProfilesArePureOrNotAtAll(t *testing.T) {
	for signer, p := range profiles(t) {
		if !p.Valid() {
			t.Errorf("%s is not its own", signer)
		}
		for name, change := range map[string]func(*pki.Profile){
			"another signer": func(p *pki.Profile) { p.SignerName = "example.com/other2/" },
			"another name":   func(p *pki.Profile) { p.Name += "x" },
			"one usage more": func(p *pki.Profile) { p.MayUse = append(p.MayUse, "cert sign") },
			"no usage":       func(p *pki.Profile) { p.Usages, p.MayUse = nil, nil },
			"other names":    func(p *pki.Profile) { p.Names = "many" },
			"manual":         func(p *pki.Profile) { p.Manual = !p.Manual },
			"node":           func(p *pki.Profile) { p.Node = !p.Node },
		} {
			q := p
			if change(&q); name != "another signer" && q.Valid() || q.SignerName == pki.SignerKubeletClient && name == "another signer" {
				t.Errorf("%s with %s counts as one of ours", signer, name)
			}
		}
	}
	if (pki.Profile{}).Valid() {
		t.Error("nothing counts as a profile")
	}
	if (pki.Profile{Names: "many"}).AllowsNames(1) {
		t.Error("a profile that says nothing about names allows them")
	}
}

// issue makes a certificate of a template's contents.
func issue(t *testing.T, profile pki.Profile, csr []byte, usages ...string) *x509.Certificate {
	t.Helper()
	ca, key := pkitest.Authority(t, "kubernetes", now, 1000*time.Hour)
	r, err := pki.Parse(csr)
	if err != nil {
		t.Fatal(err)
	}
	ord := order(ca)
	ord.Profile, ord.Usages = profile, usages
	p, err := pki.Prepare(r, ord)
	if err != nil {
		t.Fatal(err)
	}
	data, err := p.Sign(rand.Reader, ca, key)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckSignatureFrom(ca); err != nil {
		t.Error(err)
	}
	return c
}

// The user of many guides, as cfssl asks for it, with the usage that kubectl's documentation gives it.
func TestUserCertificate(t *testing.T) {
	csr := pkitest.Raw(t, rdns(attr("NZ", 2, 5, 4, 6), attr("Wellington", 2, 5, 4, 8), attr("Wellington", 2, 5, 4, 7),
		o("newlands"), o("a second"), attr("Test", 2, 5, 4, 11), cn("vip")))
	c := issue(t, profiles(t)[pki.SignerClient], csr, pki.UsageClientAuth)
	got := c.Subject
	got.Names = nil
	want := pkix.Name{
		Country: []string{"NZ"}, Province: []string{"Wellington"}, Locality: []string{"Wellington"},
		Organization: []string{"newlands", "a second"}, OrganizationalUnit: []string{"Test"}, CommonName: "vip",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.KeyUsage != 0 || len(c.ExtKeyUsage) != 1 || c.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth {
		t.Errorf("usages %b %v: they must be those that were asked for", c.KeyUsage, c.ExtKeyUsage)
	}
}

func TestCertificatesOfOtherSigners(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	service := pkitest.Template("", "a.default.svc", "10.20.0.1")
	service.Subject = pkix.Name{CommonName: "a.default.svc"}
	c := issue(t, profiles(t)[appServing], pkitest.Encode(t, rsaKey, service), "digital signature", "key encipherment", "server auth")
	if c.KeyUsage != x509.KeyUsageDigitalSignature|x509.KeyUsageKeyEncipherment || c.ExtKeyUsage[0] != x509.ExtKeyUsageServerAuth || len(c.ExtKeyUsage) != 1 {
		t.Errorf("usages %b %v", c.KeyUsage, c.ExtKeyUsage)
	}
	if c.VerifyHostname("a.default.svc") != nil || c.VerifyHostname("10.20.0.1") != nil || len(c.Subject.Organization) != 0 {
		t.Errorf("names %v %v", c.DNSNames, c.IPAddresses)
	}
	service.DNSNames, service.IPAddresses = nil, nil
	bare := pkitest.Encode(t, pkitest.Key(t), service)
	if c = issue(t, profiles(t)[appServing], bare, "server auth"); len(c.DNSNames) != 0 {
		t.Errorf("names %v", c.DNSNames)
	}
	c = issue(t, profiles(t)[pki.SignerLegacyUnknown], pkitest.Encode(t, rsaKey, service), "signing", "digital signature", "data encipherment", "s/mime", "email protection", "timestamping")
	if c.KeyUsage != x509.KeyUsageDigitalSignature|x509.KeyUsageDataEncipherment || len(c.ExtKeyUsage) != 2 {
		t.Errorf("usages %b %v", c.KeyUsage, c.ExtKeyUsage)
	}
	if c = issue(t, profiles(t)[pki.SignerLegacyUnknown], bare, "digital signature", "key encipherment"); c.KeyUsage != x509.KeyUsageDigitalSignature || len(c.ExtKeyUsage) != 0 {
		t.Errorf("usages %b %v", c.KeyUsage, c.ExtKeyUsage)
	}
}

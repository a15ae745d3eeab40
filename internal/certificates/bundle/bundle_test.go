// SPDX-License-Identifier: Apache-2.0

package bundle_test

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/certificates/bundle"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func authority(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	certificate, _ := pkitest.Authority(t, name, now, time.Hour)
	return certificate
}

func TestPEMIsTheSameForTheSameAuthorities(t *testing.T) {
	a, b, again := authority(t, "a"), authority(t, "b"), authority(t, "b") // two of one name, as a careless rotation makes
	want := string(bundle.PEM(a, b, again))
	for _, order := range [][]*x509.Certificate{{again, b, a}, {b, a, again, a}, {a, again, b, b}} {
		if diff := cmp.Diff(want, string(bundle.PEM(order...))); diff != "" {
			t.Errorf("another order, another bundle:\n%s", diff)
		}
	}
	parsed, err := bundle.Parse([]byte(want))
	if err != nil || len(parsed) != 3 || !parsed[0].Equal(a) {
		t.Errorf("%d certificates are read again (%v)", len(parsed), err)
	}
	if got := bundle.PEM(); len(got) != 0 {
		t.Errorf("nothing is rendered as %q", got)
	}
}

func TestParseRefuses(t *testing.T) {
	good := string(bundle.PEM(authority(t, "a")))
	for name, raw := range map[string]string{
		"nothing":      "",
		"no PEM":       "words",
		"a key only":   "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
		"a broken one": good + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
	} {
		if _, err := bundle.Parse([]byte(raw)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestConfigMaps(t *testing.T) {
	a, b := authority(t, "a"), authority(t, "b")
	for _, name := range []string{bundle.Client, bundle.Serving} {
		m := bundle.ConfigMap("kube-system", name, b, a)
		if m.Namespace != "kube-system" || m.Name != name || m.Kind != "ConfigMap" || m.APIVersion != "v1" {
			t.Errorf("it is %s %s/%s", m.Kind, m.Namespace, m.Name)
		}
		if diff := cmp.Diff(map[string]string{"ca.crt": string(bundle.PEM(a, b))}, m.Data); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if !strings.Contains(m.Annotations["kubernetes.io/description"], strings.Split(name, "-")[2]) {
			t.Errorf("%s does not say what it is for: %v", name, m.Annotations)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now()
	reports := Read(w.dir, now)
	r := reports[1]
	if r.Kind != Serving || r.CommonName != "system:node:"+nodeName || !r.KeyMatches || r.Issuer != "CN=kubelet-1" || r.Mode != "-rw-------" || len(r.Problems) > 0 {
		t.Errorf("got %+v", r)
	}
	if diff := cmp.Diff([][]string{{nodeName}, {"192.168.64.11"}, {"system:nodes"}}, [][]string{r.DNSNames, r.Addresses, r.Organization}); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	life := r.NotAfter.Sub(r.NotBefore)
	if got := r.Rotation.From.Sub(r.NotBefore); got != life*7/10 {
		t.Errorf("rotation from %s of %s", got, life)
	}
	if got := r.Rotation.Until.Sub(r.NotBefore); got != life*9/10 {
		t.Errorf("rotation until %s of %s", got, life)
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*world)
		trouble Trouble
		want    string
	}{
		"not joined": {func(w *world) { _ = os.Remove(filepath.Join(w.dir, Client.link())) }, Missing, "the node has not joined a cluster; it joins with a bootstrap token"},
		"leads nowhere": {func(w *world) {
			target, _ := os.Readlink(filepath.Join(w.dir, Client.link()))
			_ = os.Remove(target)
		}, Missing, "which does not exist; restart the kubelet with a bootstrap token"},
		"a file": {func(w *world) {
			_ = os.Remove(filepath.Join(w.dir, Client.link()))
			write(w.t, filepath.Join(w.dir, Client.link()), w.pair(Client, nil), 0o600)
		}, NotALink, "so the kubelet cannot rotate it; mv "},
		"a directory": {func(w *world) {
			target, _ := os.Readlink(filepath.Join(w.dir, Client.link()))
			_ = os.Remove(target)
			_ = os.Mkdir(target, 0o700)
		}, Unreadable, "is not a file"},
		"exposed": {func(w *world) { write(w.t, w.put(Client, w.pair(Client, nil)), w.pair(Client, nil), 0o640) }, Exposed, "has mode 0640: others than root can use it; chmod 600 /"},
		"garbage": {func(w *world) { w.put(Client, []byte("garbage")) }, Unreadable, "block 1 is not PEM"},
		"another's key": {func(w *world) {
			certificate, _, _ := bytes.Cut(w.pair(Client, nil), []byte("-----BEGIN EC"))
			_, key, _ := bytes.Cut(w.pair(Client, nil), []byte("-----BEGIN EC"))
			w.put(Client, slices.Concat(certificate, []byte("-----BEGIN EC"), key))
		}, KeyMismatch, "the key is not the certificate's"},
		"expired": {func(w *world) {
			w.put(Client, w.pair(Client, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }))
		}, Expired, "cannot renew it: it needs a bootstrap token"},
		"not yet": {func(w *world) {
			w.put(Client, w.pair(Client, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) }))
		}, NotYetValid, "set the clock"},
		"overdue": {func(w *world) {
			w.put(Client, w.pair(Client, func(c *x509.Certificate) {
				c.NotBefore, c.NotAfter = time.Now().Add(-95*time.Minute), time.Now().Add(5*time.Minute)
			}))
		}, Overdue, "the kubelet should have replaced it by"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			test.change(w)
			r := read(w.dir, Client, time.Now())
			if !r.Has(test.trouble) || !strings.Contains(fmt.Sprint(r.Problems), test.want) {
				t.Errorf("got %v, want %s: %q", r.Problems, test.trouble, test.want)
			}
			if strings.Contains(fmt.Sprintf("%+v", r), "PRIVATE KEY") {
				t.Error("the report holds a key")
			}
		})
	}
	t.Run("a kubelet's own serving certificate", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if r := read(dir, Serving, time.Now()); !strings.Contains(fmt.Sprint(r.Problems), "has got no serving certificate yet; `kubectl get csr`") {
			t.Errorf("got %v", r.Problems)
		}
		write(t, filepath.Join(dir, "kubelet.crt"), nil, 0o644)
		if r := read(dir, Serving, time.Now()); !strings.Contains(fmt.Sprint(r.Problems), "which it signed itself; set serverTLSBootstrap: true") {
			t.Errorf("got %v", r.Problems)
		}
	})
}

func TestParse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := string(w.pair(Client, nil))
	certificate, key, _ := strings.Cut(good, "-----BEGIN EC")
	key = "-----BEGIN EC" + key
	ed := func() string {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(private)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}))
	for name, test := range map[string]struct{ raw, want string }{
		"as upstream writes it":    {good, ""},
		"key first":                {key + certificate, ""},
		"spaces between":           {"\n\n" + certificate + "\r\n" + key + "\n\n", ""},
		"PKCS 8":                   {certificate + ed, ""},
		"RSA":                      {certificate + rsaKey, ""},
		"chain":                    {certificate + certificate + key, ""},
		"nothing":                  {"", "it has no certificate"},
		"no key":                   {certificate, "it has no key"},
		"no certificate":           {key, "it has no certificate"},
		"two keys":                 {certificate + key + key, "block 3: it is a second private key"},
		"text between":             {certificate + "x\n" + key, "block 2 is not PEM"},
		"text after":               {good + "x", "block 3 is not PEM"},
		"cut":                      {good[:len(good)-10], "block 2 is not PEM"},
		"another block":            {good + "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n", "block 3: it is neither"},
		"headers":                  {strings.Replace(good, "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\n\n", 1), "block 2 has PEM headers"},
		"a key that is none":       {certificate + "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n", "block 2: the private key cannot be read"},
		"a certificate that isn't": {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "block 1: reading the certificate"},
		"long chain":               {strings.Repeat(certificate, maxChain+1) + key, "more than 8 certificates"},
		"too long":                 {good + strings.Repeat("\n", maxPair), "more than 65536"},
	} {
		_, err := Parse([]byte(test.raw))
		if got := fmt.Sprint(err); test.want == "" && err != nil || test.want != "" && !strings.Contains(got, test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// Whatever a file holds, reading it neither fails in another way nor tells what stands in it.
func FuzzParse(f *testing.F) {
	raw := newAuthority(f, "a").pair(Client, nil)
	f.Add(raw)
	f.Add(append([]byte("\n"), raw...))
	f.Add(raw[:len(raw)/2])
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := Parse(raw)
		if err == nil && (len(p.Chain) == 0 || p.Key == nil || p.Leaf() == nil) {
			t.Error("half a pair")
		}
		if err == nil {
			_ = p.Matches()
		}
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("a long error: %s", err)
		}
	})
}

const line = `I1120 17:08:36.240364      49 certificate_manager.go:715] "Certificate rotation deadline determined" logger="kubernetes.io/kubelet-serving" expiration="2026-11-27 17:03:35 +0000 UTC" deadline="2026-11-25 21:15:13.93933718 +0000 UTC"`

func TestDrawn(t *testing.T) {
	t.Parallel()
	from, until := time.Date(2026, 11, 20, 17, 3, 35, 0, time.UTC), time.Date(2026, 11, 27, 17, 3, 35, 0, time.UTC)
	later := strings.Replace(line, "11-25 21:15", "11-26 01:15", 1)
	for name, test := range map[string]struct{ log, want string }{
		"one":                    {line, "2026-11-25T21:15:13.93933718Z"},
		"the last":               {line + "\n" + later + "\nmore", "2026-11-26T01:15:13.93933718Z"},
		"in systemd's journal":   {"Nov 20 17:08:36 worker kubelet[49]: " + line, "2026-11-25T21:15:13.93933718Z"},
		"of another certificate": {strings.Replace(line, "17:03:35 ", "17:03:36 ", 1), ""},
		"of the other kind":      {strings.ReplaceAll(line, "kubelet-serving", "kube-apiserver-client-kubelet"), ""},
		"out of its life":        {strings.Replace(line, `deadline="2026-11-25`, `deadline="2027-11-25`, 1), ""},
		"no time":                {strings.Replace(line, `deadline="2026`, `deadline="x`, 1), ""},
		"cut":                    {line[:len(line)-8], ""},
		"very long":              {strings.Repeat("x", 2*maxLogLine) + line + "\n", ""},
		"after a long one":       {strings.Repeat("x", 2*maxLogLine) + "\n" + line, "2026-11-25T21:15:13.93933718Z"},
		"nothing":                {"", ""},
	} {
		path := filepath.Join(t.TempDir(), "kubelet.log")
		write(t, path, []byte(test.log), 0o600)
		reports := []Report{{Kind: Client, NotBefore: from, NotAfter: until.Add(time.Second)}, {Kind: Serving, NotBefore: from, NotAfter: until}}
		if err := Drawn(reports, path); err != nil {
			t.Fatal(err)
		}
		got := ""
		if at := reports[1].Rotation.Drawn; !at.IsZero() {
			got = at.Format(time.RFC3339Nano)
		}
		if got != test.want || !reports[0].Rotation.Drawn.IsZero() {
			t.Errorf("%s: got %q, want %q; of the other %v", name, got, test.want, reports[0].Rotation.Drawn)
		}
	}
	if err := Drawn(nil, "/does/not/exist"); err != nil {
		t.Error(err)
	}
}

func FuzzParseDeadline(f *testing.F) {
	f.Add(line)
	f.Add(`"Certificate rotation deadline determined" expiration="" deadline="`)
	f.Fuzz(func(t *testing.T, line string) {
		if d, ok := parseDeadline(line); ok && (d.expiration.IsZero() && d.instant.IsZero()) && !strings.Contains(line, "0001-01-01") {
			t.Errorf("%q: %+v", line, d)
		}
	})
}

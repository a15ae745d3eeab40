// SPDX-License-Identifier: Apache-2.0

package sshkey

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Keys of ssh-keygen (OpenSSH), with the fingerprints that OpenSSL and ssh-keygen say: of the first the MD5 of its DER
// form, as EC2 has it.
const (
	anRSAKey     = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCbOpBqlbQJSyei+XPmwTtIMLpOU0EsyUymjbu6yAV5c5pIl2/qwE7uKm0hq2giP+lTABOsTHLSy/42ONaTbQKDbKG2i7HvXghgP+1p6x8eXZRWiv/KcRnixC8Ujp+ylkeoSSaSAAW2SJQgCPWsnlarAEzOB+aEcWa+HV+pvTyAeOPMeqhA6aYwOpT1D53aSVS+/KOADKaLw/cJnVeNO8TP0fIK9hMJLapyCf+XLw8SIkavlw00fqOeB2b8WH8r+T/nLkdBrjfLalvo0zivJ+2IUxoozmZbLvebBotQ6lW/OqxxuGxn6vIYfseCha4l6Wz5/XvvILeEzHca2LRZtfqL"
	rsaSum       = "a1:64:c5:d1:37:f2:d7:8d:44:5e:81:3e:f3:68:31:07"
	anED25519Key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP4YQBfgXXKd/5iTYYmwvDG8FPqi7w/bbC0+hQ6+Q5ID"
	ed25519Sum   = "GxY72oldkyEVr8i8k0SiaLRC7c2xWfDEUMAeqXEF9k8="
)

func TestParse(t *testing.T) {
	for text, want := range map[string]struct{ kind, fingerprint string }{
		anRSAKey + " a b\n": {RSA, rsaSum}, anED25519Key: {ED25519, ed25519Sum},
	} {
		key, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := key.Fingerprint()
		if err != nil || key.Type != want.kind || sum != want.fingerprint || !strings.HasPrefix(text, key.String()) {
			t.Errorf("%s: %s %s, %v", text, key.Type, sum, err)
		}
	}
	for _, text := range []string{
		"", "ssh-rsa", "ssh-rsa AAAA", "ssh-dss " + strings.Fields(anRSAKey)[1], "ssh-ed25519 " + strings.Fields(anRSAKey)[1], anRSAKey + "\n" + anRSAKey,
		strings.TrimSuffix(anED25519Key, anED25519Key[len(anED25519Key)-4:]), "-----BEGIN PUBLIC KEY-----",
	} {
		if key, err := Parse(text); err == nil {
			t.Errorf("%q is %+v", text, key)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(anRSAKey)
	f.Add(anED25519Key)
	f.Fuzz(func(t *testing.T, text string) {
		key, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(key.String()); err != nil || again.String() != key.String() {
			t.Errorf("%q is %s, and read again %s, %v", text, key, again, err)
		}
		if _, err := key.Fingerprint(); err != nil {
			t.Error(err)
		}
	})
}

func TestNew(t *testing.T) {
	for kind, block := range map[string]string{RSA: "RSA PRIVATE KEY", ED25519: "OPENSSH PRIVATE KEY"} {
		public, private, fingerprint, err := New(kind)
		if err != nil {
			t.Fatal(err)
		}
		decoded, rest := pem.Decode([]byte(private))
		if decoded == nil || decoded.Type != block || len(rest) != 0 || fingerprint == "" || public.Type != kind {
			t.Fatalf("%s: %s %s", kind, fingerprint, private)
		}
		if read, err := Parse(public.String()); err != nil || read.String() != public.String() {
			t.Errorf("the public half of %s: %v", kind, err)
		}
		if kind == RSA {
			if key, err := x509.ParsePKCS1PrivateKey(decoded.Bytes); err != nil || key.N.Cmp(public.rsa.N) != 0 {
				t.Errorf("the halves differ: %v", err)
			}
		}
		program, err := exec.LookPath("ssh-keygen") // the judge, where there is one
		if err != nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, []byte(private), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), program, "-y", "-P", "", "-f", file).Output(); err != nil || !strings.HasPrefix(string(out), public.String()) {
			t.Errorf("ssh-keygen says %s, %v; want %s", out, err, public)
		}
	}
}

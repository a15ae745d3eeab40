// SPDX-License-Identifier: Apache-2.0

package signer_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/signer"
)

func ecdsaKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func rsaKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// authority makes a certificate authority of a key.
func authority(t *testing.T, name string, key crypto.Signer) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func digestOf(t *testing.T, hash crypto.Hash, data string) []byte {
	t.Helper()
	h := hash.New()
	if _, err := h.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
	return h.Sum(nil)
}

// signs has a key sign something and verifies it.
func signs(ctx context.Context, key signer.Key, digest []byte, opts crypto.SignerOpts) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // a test that hangs says nothing
	defer cancel()
	signature, err := key.Sign(ctx, digest, opts)
	if err != nil {
		return err
	}
	good := false
	switch public := key.Public().(type) {
	case *ecdsa.PublicKey:
		good = ecdsa.VerifyASN1(public, digest, signature)
	case *rsa.PublicKey:
		if pss, ok := opts.(*rsa.PSSOptions); ok {
			want := *pss
			if want.SaltLength == rsa.PSSSaltLengthAuto { // which verifies any
				want.SaltLength = public.Size() - 2 - len(digest)
			}
			good = rsa.VerifyPSS(public, opts.HashFunc(), digest, signature, &want) == nil
		} else {
			good = rsa.VerifyPKCS1v15(public, opts.HashFunc(), digest, signature) == nil
		}
	}
	if !good {
		return errors.New("the signature is wrong")
	}
	return nil
}

func TestTokenSigns(t *testing.T) {
	k := newToken(t)
	for _, tc := range []struct {
		name string
		key  crypto.Signer
	}{
		{"P-256", ecdsaKey(t, elliptic.P256())},
		{"P-384", ecdsaKey(t, elliptic.P384())},
		{"P-521", ecdsaKey(t, elliptic.P521())},
		{"RSA-2048", rsaKey(t, 2048)},
		{"RSA-3072", rsaKey(t, 3072)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k.put(tc.key, tc.name, "0"+string(tc.name[len(tc.name)-1]))
			c := k.config
			c.KeyLabel = tc.name
			p, err := signer.NewPKCS11(c)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			key, err := p.Key(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(tc.key.Public()) {
				t.Fatalf("another public key: %v", key.Public())
			}
			var opts []crypto.SignerOpts
			for _, hash := range []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512} {
				opts = append(opts, hash)
				if _, ok := tc.key.(*rsa.PrivateKey); ok {
					for _, salt := range []int{rsa.PSSSaltLengthEqualsHash, rsa.PSSSaltLengthAuto, 20} {
						opts = append(opts, &rsa.PSSOptions{SaltLength: salt, Hash: hash})
					}
				}
			}
			for _, o := range opts {
				for range 3 { // r and s are shorter now and then
					if err := signs(t.Context(), key, digestOf(t, o.HashFunc(), tc.name), o); err != nil {
						t.Errorf("%T %v: %v", o, o.HashFunc(), err)
					}
				}
			}
			if _, err := key.Sign(t.Context(), make([]byte, 20), crypto.SHA1); err == nil || !strings.Contains(err.Error(), "SHA-1") {
				t.Errorf("SHA-1: %v", err)
			}
			if _, err := key.Sign(t.Context(), make([]byte, 20), crypto.SHA256); err == nil || !strings.Contains(err.Error(), "20 bytes") {
				t.Errorf("a short digest: %v", err)
			}

			ca := authority(t, tc.name, tc.key)
			d := newDisk(t)
			d.replace(d.cert, certPEM(ca))
			s, err := signer.New(t.Context(), signer.Config{Certificate: d.cert, Key: p.Key, Logger: c.Logger})
			if err != nil {
				t.Fatal(err)
			}
			signsAs(t, s, ca)
		})
	}
}

func TestTokenRefusals(t *testing.T) {
	k := newToken(t)
	k.put(ecdsaKey(t, elliptic.P256()), "ca", "01")
	k.put(ecdsaKey(t, elliptic.P256()), "twin", "02")
	k.put(ecdsaKey(t, elliptic.P256()), "twin", "03")
	k.put(ecdsaKey(t, elliptic.P224()), "old", "04")
	k.util("--init-token", "--free", "--label", "double", "--so-pin", "12345678", "--pin", pin)
	k.util("--init-token", "--free", "--label", "double", "--so-pin", "12345678", "--pin", pin)
	file := func(name, data string, mode os.FileMode) string {
		k.write(name, data)
		path := filepath.Join(k.dir, name)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	k.write("text.so", "not a library")
	for _, tc := range []struct {
		name   string
		change func(*signer.PKCS11Config)
		want   string
		passes bool // it may go better by itself
	}{
		{"library missing", func(c *signer.PKCS11Config) { c.Module = k.dir + "/none.so" }, "no such file", false},
		{"not a library", func(c *signer.PKCS11Config) { c.Module = k.dir + "/text.so" }, "cannot be loaded", false},
		{"a library of another kind", func(c *signer.PKCS11Config) { c.Module = "/lib/x86_64-linux-gnu/libc.so.6" }, "cannot be loaded", false},
		{"token missing", func(c *signer.PKCS11Config) { c.Token = "other" }, `no token with the label "other"; there are: `, true},
		{"two tokens", func(c *signer.PKCS11Config) { c.Token = "double" }, `2 tokens have the label "double"`, false},
		{"key missing", func(c *signer.PKCS11Config) { c.KeyLabel = "none" }, `no private key with the label "none"`, false},
		{"ID of another key", func(c *signer.PKCS11Config) { c.KeyID = "02" }, `no private key with the label "ca" and the ID 02`, false},
		{"two keys", func(c *signer.PKCS11Config) { c.KeyLabel = "twin" }, `2 private keys with the label "twin" (label "twin", ID 0`, false},
		{"a curve that nobody uses", func(c *signer.PKCS11Config) { c.KeyLabel = "old" }, "use P-256, P-384 or P-521", false},
		{"wrong PIN", func(c *signer.PKCS11Config) { c.PINFile = file("wrong", otherPIN, 0o600) }, "CKR_PIN_INCORRECT", true},
		{"no PIN", func(c *signer.PKCS11Config) { c.PINFile = file("empty", "\n", 0o600) }, "on one line", true},
		{"two PINs", func(c *signer.PKCS11Config) { c.PINFile = file("two", pin+"\n"+pin, 0o600) }, "on one line", true},
		{"no file of the PIN", func(c *signer.PKCS11Config) { c.PINFile = k.dir + "/nopin" }, "no such file", true},
		{"others read the PIN", func(c *signer.PKCS11Config) { c.PINFile = file("open", pin, 0o604) }, "its mode is 0604", true},
		{"a group reads the PIN", func(c *signer.PKCS11Config) { c.PINFile = file("group", pin, 0o640) }, "its mode is 0640", true},
		{"the PIN is a directory", func(c *signer.PKCS11Config) { c.PINFile = k.dir }, "not a regular file", true},
		{"program missing", func(c *signer.PKCS11Config) { c.Program = k.dir + "/none" }, "no such file", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := k.config
			tc.change(&c)
			p, err := signer.NewPKCS11(c)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			_, err = p.Key(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if errors.Is(err, signer.ErrUnavailable) != tc.passes {
				t.Errorf("unavailable should be %v: %v", tc.passes, err)
			}
			if strings.Contains(err.Error(), pin) || strings.Contains(err.Error(), otherPIN) {
				t.Errorf("the error shows the PIN: %v", err)
			}
		})
	}
	for name, change := range map[string]func(*signer.PKCS11Config){
		"label and ID": func(c *signer.PKCS11Config) { c.KeyLabel, c.KeyID = "twin", "03" },
		"ID":           func(c *signer.PKCS11Config) { c.KeyLabel, c.KeyID = "", "03" },
	} {
		t.Run(name, func(t *testing.T) {
			c := k.config
			change(&c)
			p, err := signer.NewPKCS11(c)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if _, err := p.Key(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A public key that is not the private key's would show in no other way: SoftHSM makes pairs only.
func TestASignatureIsTriedFirst(t *testing.T) {
	k := newToken(t)
	k.put(ecdsaKey(t, elliptic.P256()), "ca", "01")
	k.fault("flip")
	if _, err := k.open().Key(t.Context()); err == nil || !strings.Contains(err.Error(), "is not its own") {
		t.Errorf("got %v", err)
	}
}

func TestNewPKCS11Refuses(t *testing.T) {
	good := signer.PKCS11Config{Program: "/bin/false", Module: "/m", Token: "t", KeyLabel: "k", PINFile: "/p", Logger: slog.New(slog.DiscardHandler)}
	for name, change := range map[string]func(*signer.PKCS11Config){
		"no module":         func(c *signer.PKCS11Config) { c.Module = "" },
		"relative module":   func(c *signer.PKCS11Config) { c.Module = "m.so" },
		"no token":          func(c *signer.PKCS11Config) { c.Token = "" },
		"no PIN":            func(c *signer.PKCS11Config) { c.PINFile = "" },
		"no key":            func(c *signer.PKCS11Config) { c.KeyLabel = "" },
		"ID in plain text":  func(c *signer.PKCS11Config) { c.KeyID = "ca.1" },
		"negative sessions": func(c *signer.PKCS11Config) { c.Sessions = -1 },
		"too many sessions": func(c *signer.PKCS11Config) { c.Sessions = 1025 },
		"no logger":         func(c *signer.PKCS11Config) { c.Logger = nil },
		"unknown program":   func(c *signer.PKCS11Config) { c.Program = "muster-no-such-program" },
	} {
		c := good
		change(&c)
		if p, err := signer.NewPKCS11(c); err == nil {
			p.Close()
			t.Errorf("%s: accepted", name)
		}
	}
	p, err := signer.NewPKCS11(good)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if _, err := p.Key(t.Context()); !errors.Is(err, signer.ErrUnavailable) {
		t.Errorf("a closed one: %v", err)
	}
}

func TestTokenAndCertificateMustFit(t *testing.T) {
	k := newToken(t)
	key, other := ecdsaKey(t, elliptic.P256()), ecdsaKey(t, elliptic.P256())
	k.put(key, "ca", "01")
	p := k.open()
	d := newDisk(t)
	config := signer.Config{Certificate: d.cert, Key: p.Key, Logger: k.config.Logger}

	d.replace(d.cert, certPEM(authority(t, "a", other)))
	if _, err := signer.New(t.Context(), config); err == nil || !strings.Contains(err.Error(), "not the certificate's") {
		t.Fatalf("got %v", err)
	}
	first := authority(t, "first", key)
	d.replace(d.cert, certPEM(first))
	s, err := signer.New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	signsAs(t, s, first)
	renewed := authority(t, "renewed", key)
	d.replace(d.cert, certPEM(renewed))
	signsAs(t, s, renewed)
	d.replace(d.cert, certPEM(authority(t, "another's", other)))
	signsAs(t, s, renewed)
	if !strings.Contains(k.log.String(), "the old pair goes on") {
		t.Error("nothing was logged")
	}
}

func TestATokenThatComesLater(t *testing.T) {
	k := newToken(t)
	key := ecdsaKey(t, elliptic.P256())
	ca := authority(t, "ca", key)
	d := newDisk(t)
	d.replace(d.cert, certPEM(ca))
	k.config.Token = "late"
	p := k.open()
	s, err := signer.New(t.Context(), signer.Config{Certificate: d.cert, Key: p.Key, Logger: k.config.Logger})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Issuer(t.Context()); !errors.Is(err, signer.ErrUnavailable) || !strings.Contains(err.Error(), "no token") {
		t.Errorf("got %v", err)
	}
	// It appears with its key at once.
	k.write("import.pem", string(keyPEM(t, key)))
	k.util("--init-token", "--free", "--label", "late", "--so-pin", "12345678", "--pin", pin)
	k.util("--import", filepath.Join(k.dir, "import.pem"), "--token", "late", "--label", "ca", "--id", "01", "--pin", pin)
	until(t, "the token is found", func() bool { _, err := s.Issuer(t.Context()); return err == nil })
	signsAs(t, s, ca)
}

func TestAWrongPINIsTriedOnce(t *testing.T) {
	k := newToken(t)
	key := pkitest.Key(t)
	k.put(key, "ca", "01")
	k.write("pin", otherPIN)
	p := k.open()
	for range 3 {
		if _, err := p.Key(t.Context()); !errors.Is(err, signer.ErrUnavailable) || !strings.Contains(err.Error(), "CKR_PIN_INCORRECT") {
			t.Fatalf("got %v", err)
		}
	}
	// The child would have been started again three times by then.
	for start := time.Now(); time.Since(start) < time.Second; <-time.After(10 * time.Millisecond) {
		if n := k.logins(); n != 1 {
			t.Fatalf("%d logins", n)
		}
	}
	k.write("pin", pin)
	until(t, "the right PIN is noticed", func() bool { _, err := p.Key(t.Context()); return err == nil })
	if n := k.logins(); n != 2 {
		t.Errorf("%d logins, one with each PIN was enough", n)
	}
	if err := signs(t.Context(), k.key(p), digestOf(t, crypto.SHA256, "a"), crypto.SHA256); err != nil {
		t.Error(err)
	}
}

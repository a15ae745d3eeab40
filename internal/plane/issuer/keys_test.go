// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jose "gopkg.in/go-jose/go-jose.v2"
)

func file(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func someIssuer(t *testing.T) Issuer {
	t.Helper()
	i, err := Parse("https://127.9.8.7/id/" + someID)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// TestRender compares with what kube-apiserver v1.36.3 makes of the issuer, the URL of its keys
// (--service-account-jwks-uri=ISSUER/keys) and these four files of --service-account-key-file: testdata holds what its
// own code renders at its start (k8s.io/kubernetes/pkg/serviceaccount, NewOpenIDMetadataProvider). A story compares
// with a running one.
func TestRender(t *testing.T) {
	got, err := Render(someIssuer(t), file(t, "p256.pem"), file(t, "p384.pem"), file(t, "p521.pem"), file(t, "rsa.pem"))
	if err != nil {
		t.Fatal(err)
	}
	if want := file(t, "jwks.json"); !bytes.Equal(got.Keys, want) {
		t.Errorf("the keys are\n%s\nkube-apiserver's are\n%s", got.Keys, want)
	}
	var ours, theirs map[string]any
	if err := json.Unmarshal(got.Discovery, &ours); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file(t, "openid-configuration.json"), &theirs); err != nil {
		t.Fatal(err)
	}
	theirs["authorization_endpoint"], theirs["claims_supported"] = "urn:kubernetes:programmatic_authorization", []any{"sub", "iss"} // EKS's
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("kube-apiserver's discovery document differs (-theirs +ours):\n%s", diff)
	}
}

func encodePEM(t *testing.T, kind string, der []byte, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Of a private key only the public part is published.
func TestRenderPrivateKey(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	private := encodePEM(t, "EC PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(key.Public())
	public := encodePEM(t, "PUBLIC KEY", der, err)
	got, err := Render(someIssuer(t), private)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Render(someIssuer(t), public)
	if err != nil || !bytes.Equal(got.Keys, want.Keys) || !bytes.Equal(got.Discovery, want.Discovery) {
		t.Errorf("of the private key: %s\nof the public one: %s, %v", got.Keys, want.Keys, err)
	}
	secret, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if all := string(got.Keys) + string(got.Discovery); strings.Contains(all, base64.RawURLEncoding.EncodeToString(secret)) || strings.Contains(all, `"d"`) {
		t.Error("the private key is published")
	}
	// While keys are rotated both are there, each once.
	both, err := Render(someIssuer(t), file(t, "p256.pem"), private, public)
	if err != nil {
		t.Fatal(err)
	}
	var set keySet
	if err := json.Unmarshal(both.Keys, &set); err != nil || len(set.Keys) != 2 || set.Keys[0].Kid == set.Keys[1].Kid {
		t.Errorf("%s, %v", both.Keys, err)
	}
	if !strings.Contains(string(both.Discovery), `"id_token_signing_alg_values_supported":["ES256"]`) {
		t.Errorf("%s", both.Discovery)
	}
}

// A coordinate that begins with zeros is as long as any other (RFC 7518, section 6.2.1.2).
func TestShortCoordinate(t *testing.T) {
	for range 10_000 {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		point, err := key.PublicKey.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if point[1] != 0 && point[33] != 0 {
			continue
		}
		got, err := encode(&key.PublicKey)
		if err != nil || got.X != encoded(point[1:33]) || got.Y != encoded(point[33:]) || len(got.X) != 43 || len(got.Y) != 43 {
			t.Errorf("%+v, %v", got, err)
		}
		return
	}
	t.Error("no such key in 10,000")
}

func TestKeysThatAreNotPublished(t *testing.T) {
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edwards, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	public := func(key any) []byte {
		der, err := x509.MarshalPKIXPublicKey(key)
		return encodePEM(t, "PUBLIC KEY", der, err)
	}
	for want, raw := range map[string][]byte{
		"reading the keys of service account tokens": []byte("half a ke"),
		"key on curve P-224: must be":                public(p224.Public()),
		"RSA key of 1024 bits: must have 2048":       public(short.Public()),
		"service account tokens":                     public(edwards),
	} {
		// One key that cannot be published stops all: verifiers would refuse tokens for a reason that nobody sees.
		if got, err := Render(someIssuer(t), file(t, "p256.pem"), raw); err == nil || got.Keys != nil || got.Discovery != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", got.Keys, err, want)
		}
	}
	if _, err := Render(someIssuer(t)); err == nil {
		t.Error("no key at all was published")
	}
}

// Published keys verify signed tokens, in the eyes of another implementation.
func TestAnotherLibraryVerifies(t *testing.T) {
	elliptical, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	modular, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for algorithm, key := range map[jose.SignatureAlgorithm]crypto.Signer{jose.ES256: elliptical, jose.RS256: modular} {
		der, err := x509.MarshalPKIXPublicKey(key.Public())
		documents, renderErr := Render(someIssuer(t), encodePEM(t, "PUBLIC KEY", der, err))
		if renderErr != nil {
			t.Fatal(renderErr)
		}
		sum := sha256.Sum256(der)
		id := base64.RawURLEncoding.EncodeToString(sum[:])
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signer.Sign([]byte("claims"))
		if err != nil {
			t.Fatal(err)
		}
		var set jose.JSONWebKeySet
		if err := json.Unmarshal(documents.Keys, &set); err != nil {
			t.Fatal(err)
		}
		found := set.Key(id)
		if len(found) != 1 || !found[0].Valid() || !found[0].IsPublic() || found[0].Algorithm != string(algorithm) || found[0].Use != "sig" {
			t.Fatalf("%s: %+v", algorithm, found)
		}
		if got, err := signed.Verify(found[0]); err != nil || string(got) != "claims" {
			t.Errorf("%s: %s, %v", algorithm, got, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package mutualclient

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// server asks for a client certificate, whoever made it, and says whose it was.
func server(t *testing.T, h http.HandlerFunc) (s *httptest.Server, authority, credential string) {
	t.Helper()
	s = httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	t.Cleanup(s.Close)
	pair := s.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	dir := t.TempDir()
	authority, credential = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "client.pem")
	for path, content := range map[string][]byte{
		authority: certificate, credential: append(certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s, authority, credential
}

func TestFilesAreReadForEachConnection(t *testing.T) {
	s, authority, credential := server(t, func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) != 1 {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	client := New(authority, credential, "", time.Minute) // httptest's certificate has no common name
	defer client.CloseIdleConnections()
	ask := func() error {
		client.CloseIdleConnections()
		response, err := client.Get(s.URL)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			t.Error(response.Status)
		}
		return response.Body.Close()
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{authority, credential} {
		was, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte("half"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if ask() == nil {
			t.Errorf("with a damaged %s it is answered", filepath.Base(file))
		}
		if err := os.WriteFile(file, was, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := ask(); err != nil {
			t.Errorf("with another %s: %v", filepath.Base(file), err)
		}
	}
}

func TestStrangersAreAskedNothing(t *testing.T) {
	asked := false
	s, _, _ := server(t, func(http.ResponseWriter, *http.Request) { asked = true })
	other, _, _ := server(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, s.URL, http.StatusTemporaryRedirect) })
	_, authority, credential := server(t, nil)
	own := filepath.Join(t.TempDir(), "other.pem")
	// httptest has one certificate: a server with another authority is one for another name.
	client := New(authority, credential, "", time.Minute) // httptest's certificate has no common name
	defer client.CloseIdleConnections()
	refuses := func(what string, client *http.Client, url string) {
		t.Helper()
		response, err := client.Get(url)
		if err == nil {
			_ = response.Body.Close()
		}
		if err == nil || asked {
			t.Errorf("%s: %v", what, err)
		}
	}
	refuses("a server whose certificate is for another address", client, "https://localhost"+s.URL[len("https://127.0.0.1"):])
	refuses("a server of another common name", New(authority, credential, "signer", time.Minute), s.URL)
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refuses("an authority without a certificate", New(own, credential, "", time.Minute), s.URL)
	response, err := client.Get(other.URL)
	if err != nil || response.StatusCode != http.StatusTemporaryRedirect || asked {
		t.Fatalf("%v, %v", response, err)
	}
	_ = response.Body.Close()
}

// SPDX-License-Identifier: Apache-2.0

package httpserve

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/certificates/pki/pkitest"
)

// pair writes a new certificate and its key, which were changed at a moment.
func pair(t *testing.T, dir, name string, at time.Time) (certificate, key string) {
	t.Helper()
	c, k := pkitest.Authority(t, name, time.Now(), time.Hour)
	certificate, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, data := range map[string][]byte{certificate: certPEM(c), key: keyPEM(t, k)} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

func certPEM(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func keyPEM(t *testing.T, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	certificate, key := pair(t, dir, "first", time.Now().Add(-time.Hour))
	var log bytes.Buffer
	files, err := ReadFiles("metrics", certificate, key, "", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		current, err := files.Config().GetConfigForClient(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := current.Certificates[0].Leaf.Subject.CommonName; got != want || current.MinVersion != tls.VersionTLS12 || current.ClientAuth != tls.NoClientCert {
			t.Errorf("%s is served, not %s; from TLS %x on, callers' certificates: %s", got, want, current.MinVersion, current.ClientAuth)
		}
	}
	expect("first")
	pair(t, dir, "second", time.Now().Add(-time.Minute))
	expect("second")
	if err := os.WriteFile(key, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("second")
	expect("second")
	if got := log.String(); strings.Count(got, "not reloaded") != 1 || !strings.Contains(got, "of=metrics") {
		t.Errorf("the log says, not once:\n%s", got)
	}
}

// A pair that could not be read when it was new, as while the process has no descriptors left, is served as soon as it can
// be read, though it does not change again.
func TestFilesThatCannotBeReadAtFirst(t *testing.T) {
	dir := t.TempDir()
	certificate, key := pair(t, dir, "first", time.Now().Add(-time.Hour))
	var log bytes.Buffer
	files, err := ReadFiles("metrics", certificate, key, "", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	pair(t, dir, "second", time.Now().Add(-time.Minute))
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	_, first := files.Config().GetConfigForClient(nil)
	_, again := files.Config().GetConfigForClient(nil)
	if err := errors.Join(first, again, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)); err != nil {
		t.Fatal(err)
	}
	current, err := files.Config().GetConfigForClient(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := current.Certificates[0].Leaf.Subject.CommonName; got != "second" {
		t.Errorf("%s is served, not second", got)
	}
	if got := log.String(); strings.Count(got, "not reloaded") != 1 {
		t.Errorf("the log says, not once:\n%s", got)
	}
}

func TestFilesThatDoNotFit(t *testing.T) {
	dir := t.TempDir()
	certificate, key := pair(t, dir, "name", time.Now())
	none := filepath.Join(dir, "none")
	for want, names := range map[string][3]string{
		"certificate of TokenReviews": {none, key, ""},
		"none: no such file":          {certificate, key, none},
		"no certificate in PEM":       {certificate, key, key},
	} {
		if _, err := ReadFiles("TokenReviews", names[0], names[1], names[2], slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v; want %s", names, err, want)
		}
	}
	files, err := ReadFiles("TokenReviews", certificate, key, certificate, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for config, want := range map[*tls.Config]tls.ClientAuthType{files.Config(): tls.RequireAndVerifyClientCert, files.ConfigIfGiven(): tls.VerifyClientCertIfGiven} {
		current, err := config.GetConfigForClient(nil)
		if err != nil || current.ClientAuth != want || current.ClientCAs == nil {
			t.Errorf("callers' certificates: %s, %v; want %s", current.ClientAuth, err, want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// stsAuthority is the file of the fake STS's certificate, in the benchmark's directory.
const stsAuthority = "sts.pem"

// nullAuthority is that of the server that only answers.
const nullAuthority = "null.pem"

// stsMain is an STS that answers at once and checks nothing: what is measured with it is an upper bound. It speaks
// HTTP/1.1 by TLS, as AWS's does, and lives as long as its standard input.
func stsMain(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("sts", flag.ContinueOnError)
	dir := flags.String("dir", "", "directory for the certificate")
	if err := flags.Parse(args); err != nil {
		return err
	}
	certificate, err := newCertificate(filepath.Join(*dir, stsAuthority))
	if err != nil {
		return err
	}
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	return serveAtOnce(ctx, certificate, http1, answerSTS)
}

// nullMain is a server that only answers, as API servers do by HTTP/2: what asking it takes is the load's own.
func nullMain(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("null", flag.ContinueOnError)
	dir := flags.String("dir", "", "directory for the certificate")
	if err := flags.Parse(args); err != nil {
		return err
	}
	certificate, err := newCertificate(filepath.Join(*dir, nullAuthority))
	if err != nil {
		return err
	}
	http2 := new(http.Protocols)
	http2.SetHTTP2(true)
	return serveAtOnce(ctx, certificate, http2, func(http.ResponseWriter, *http.Request) {})
}

func serveAtOnce(ctx context.Context, certificate tls.Certificate, protocols *http.Protocols, answer http.HandlerFunc) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: answer, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Protocols: protocols,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}},
	}
	fmt.Println(listener.Addr())
	go func() {
		untilClosed()
		_ = server.Close() // whoever asks has gone, too
	}()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// untilClosed waits for the end of standard input, which comes when whoever started this ends, however.
func untilClosed() { _, _ = io.Copy(io.Discard, os.Stdin) }

func answerSTS(w http.ResponseWriter, r *http.Request) {
	query := r.URL.RawQuery
	_, id, _ := strings.Cut(query, "X-Amz-Credential=")
	id = id[:min(len(id), len(goodKey)+16)]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case !strings.HasPrefix(id, goodKey):
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"Error":{"Code":"InvalidClientTokenId","Message":"The security token included in the request is invalid.","Type":"Sender"},"RequestId":"r"}`)
	case strings.Contains(query, "X-Amz-Signature="+noSignature):
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"Error":{"Code":"SignatureDoesNotMatch","Message":"The request signature we calculated does not match the signature you provided.","Type":"Sender"},"RequestId":"r"}`)
	default:
		body := `{"GetCallerIdentityResponse":{"GetCallerIdentityResult":{"Account":"` + account + `","Arn":"` + sessionARNOf(id) + `","UserId":"` +
			userIDOf(id) + ":" + sessionNameOf(id) + `"},"ResponseMetadata":{"RequestId":"00000000-0000-0000-0000-000000000000"}}}`
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body) //nolint:gosec // G705: JSON for programs on loopback
	}
}

// newCertificate makes one that is its own authority, for STS's name and for loopback.
func newCertificate(path string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making STS's key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
		DNSNames: []string{host}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making STS's certificate: %w", err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return tls.Certificate{}, fmt.Errorf("writing STS's certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

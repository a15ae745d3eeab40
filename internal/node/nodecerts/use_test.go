// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"crypto/tls"
	"io"
	"testing"
)

// The kubelet is asked which certificate it serves.
func TestUses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	pair, err := tls.X509KeyPair(w.pair(Serving, nil), w.pair(Serving, nil))
	if err == nil {
		t.Fatal("two pairs match", pair)
	}
	raw := w.pair(Serving, nil)
	if pair, err = tls.X509KeyPair(raw, raw); err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, connection); _ = connection.Close() }()
		}
	}()
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	parsed, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := serves(t.Context(), dialer, listener.Addr().String(), []Rotated{{Kind: Serving, leaf: parsed.Leaf()}}); err != nil {
		t.Error(err)
	}
	if err := serves(t.Context(), dialer, listener.Addr().String(), []Rotated{{Kind: Serving, leaf: w.certificate}}); err == nil {
		t.Error("another certificate is taken for it")
	}
}

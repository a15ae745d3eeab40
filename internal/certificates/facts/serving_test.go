// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
)

// kubelet answers at a port of loopback with a certificate, and counts its clients. Its port is the one of all
// addresses of 127.0.0.0/8.
type kubelet struct {
	port  int
	asked atomic.Int32
}

func newKubelet(t *testing.T, authority string, change func(*x509.Certificate)) *kubelet {
	t.Helper()
	now := time.Now()
	ca, key := pkitest.Authority(t, "kubelets", now, time.Hour)
	write(t, authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})))
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour),
		Subject:  pkix.Name{CommonName: "system:node:a", Organization: []string{"system:nodes"}},
		DNSNames: []string{"a", "a.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP("2001:db8::1")},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	change(leaf)
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, own.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: own}},
	})
	if err != nil {
		t.Fatal(err)
	}
	address, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	k := &kubelet{port: int(address.Port())}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			k.asked.Add(1)
			if secure, ok := conn.(*tls.Conn); ok {
				_ = secure.SetDeadline(time.Now().Add(time.Minute))
				_ = secure.Handshake()
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return k
}

func newServing(t *testing.T, authority string, port int) (*Serving, *ear) {
	t.Helper()
	e := &ear{}
	s, err := NewServing(ServingConfig{Authorities: []string{authority}, Port: port, Timeout: 2 * time.Second, OnChange: e.hear, Logger: e.logger()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return s, e
}

func asks(t *testing.T, s *Serving, addresses ...netip.Addr) policy.Fact[policy.Serving] {
	t.Helper()
	var f policy.Fact[policy.Serving]
	until(t, "the kubelet has answered", func() bool { f = s.Ask("a", addresses); return !f.Soon })
	return f
}

func TestServing(t *testing.T) {
	authority := filepath.Join(t.TempDir(), "ca.crt")
	k := newKubelet(t, authority, func(*x509.Certificate) {})
	s, e := newServing(t, authority, k.port)
	f := asks(t, s, netip.MustParseAddr("127.0.0.1"))
	if f.State != policy.Known || f.Value.Node != "a" || strings.Join(f.Value.Names, " ") != "a a.example" ||
		len(f.Value.Addresses) != 2 || f.Value.Addresses[0] != netip.MustParseAddr("127.0.0.1") || f.Value.Asked != f.Value.Addresses[0] {
		t.Errorf("%+v", f)
	}
	until(t, "it is told", func() bool { c := e.heard(); return len(c) == 1 && len(c[0].Nodes) == 1 && c[0].Nodes[0] == "a" })
	for range 5 {
		asks(t, s, netip.MustParseAddr("127.0.0.1"))
	}
	if n := k.asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	// Where nobody answers, the next address is tried.
	if f := asks(t, s, netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")); f.State != policy.Known || f.Value.Asked != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("%+v", f)
	}
}

// Whatever is not exactly a kubelet's certificate for the address is none.
func TestServingThatIsNone(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*x509.Certificate)
		other  bool // the file has another authority by then
		want   string
	}{
		"of another authority":   {func(*x509.Certificate) {}, true, "certificate signed by unknown authority"},
		"expired":                {func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }, false, "expired"},
		"for clients":            {func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, false, "incompatible key usage"},
		"for another address":    {func(c *x509.Certificate) { c.IPAddresses = c.IPAddresses[1:] }, false, "not 127.0.0.1"},
		"of no node":             {func(c *x509.Certificate) { c.Subject.CommonName = "a" }, false, "which is not a node"},
		"of a node in no group":  {func(c *x509.Certificate) { c.Subject.Organization = nil }, false, "which is not a node"},
		"of a node in more than": {func(c *x509.Certificate) { c.Subject.Organization = append(c.Subject.Organization, "x") }, false, "which is not a node"},
	} {
		t.Run(name, func(t *testing.T) {
			authority := filepath.Join(t.TempDir(), "ca.crt")
			k := newKubelet(t, authority, tc.change)
			if tc.other {
				newKubelet(t, authority, tc.change)
			}
			s, _ := newServing(t, authority, k.port)
			if f := asks(t, s, netip.MustParseAddr("127.0.0.1")); f.State != policy.Unknown || !strings.Contains(f.Why, tc.want) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// However many nodes ask, no more than so many wait to be asked.
func TestServingIsBounded(t *testing.T) {
	authority := filepath.Join(t.TempDir(), "ca.crt")
	newKubelet(t, authority, func(*x509.Certificate) {})
	s, err := NewServing(ServingConfig{Authorities: []string{authority}, OnChange: func(Change) {}, Logger: (&ear{}).logger()})
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddr("10.0.0.1")
	for range mostServing {
		if f := s.Ask("a"+at.String(), []netip.Addr{at}); !f.Soon {
			t.Fatalf("%+v", f)
		}
		at = at.Next()
	}
	if f := s.Ask("one more", []netip.Addr{at}); f.State != policy.Unknown || f.Soon || !strings.Contains(f.Why, "too many") {
		t.Errorf("%+v", f)
	}
	if n := s.entries.Len(); n > mostServing {
		t.Errorf("%d are remembered", n)
	}
	if _, err := NewServing(ServingConfig{Authorities: []string{authority + ".gone"}, OnChange: func(Change) {}, Logger: (&ear{}).logger()}); err == nil {
		t.Error("an authority that is not there was taken")
	}
}

// One node that asks under ever other addresses, where nobody answers, keeps no other from being asked about.
func TestServingOfANodeAmongAThousandRequestsOfAnother(t *testing.T) {
	authority := filepath.Join(t.TempDir(), "ca.crt")
	k := newKubelet(t, authority, func(*x509.Certificate) {})
	silent, err := net.Listen("tcp", "127.0.0.2:"+strconv.Itoa(k.port)) // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	s, _ := newServing(t, authority, k.port)
	for n := range mostServing {
		if f := s.Ask("hostile", []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.AddrFrom4([4]byte{127, 1, byte(n >> 8), byte(n)})}); f.State != policy.Unknown {
			t.Fatalf("%+v", f)
		}
	}
	if f := asks(t, s, netip.MustParseAddr("127.0.0.1")); f.State != policy.Known {
		t.Errorf("%+v", f)
	}
}

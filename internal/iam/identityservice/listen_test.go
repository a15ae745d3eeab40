// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"golang.org/x/time/rate"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/platform/proxyheader"
)

// served is the service of a world as people reach it: over TLS on loopback.
type served struct {
	*world
	address string
	trust   *tls.Config
}

func serve(t *testing.T, connections int) *served {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serveAt(t, listener, connections, (*awsfront.Front).Serve)
	s.url, s.address = "https://"+listener.Addr().String(), listener.Addr().String()
	return s
}

// serveAt has a service answer by one of its ways to do so.
func serveAt(t *testing.T, listener net.Listener, connections int, by func(*awsfront.Front, context.Context, net.Listener, awsfront.Certificate) error) *served {
	t.Helper()
	w := newWorldWith(t, connections, func(c *identityservice.Config) { c.Rate, c.Burst = 1e6, 1e6 })
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- by(w.front, ctx, listener, func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &served{world: w, trust: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
}

// call is how long one call of STS takes, on a connection of its own unless a client is given.
func (s *served) call(by *http.Client) time.Duration {
	s.t.Helper()
	if by == nil {
		by = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: s.trust, DisableKeepAlives: true}}
	}
	config := s.config(s.admin())
	config.HTTPClient, config.Retryer = by, nil // the SDK tries again by itself
	began := time.Now()
	if _, err := sts.NewFromConfig(config).GetCallerIdentity(s.t.Context(), &sts.GetCallerIdentityInput{}); err != nil {
		s.t.Error(err)
	}
	return time.Since(began)
}

// hello makes a TLS session over a connection.
func (s *served) hello(raw net.Conn) (net.Conn, error) {
	config := s.trust.Clone()
	config.ServerName = "127.0.0.1"
	over := tls.Client(raw, config)
	return over, over.HandshakeContext(s.t.Context())
}

// idle is more than the service takes at once.
const idle = 300

// Connections that say nothing, or half of something, or that nobody proved anything on, make way for one that asks.
func TestIdleConnectionsDelayNobody(t *testing.T) {
	const half = "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nAction="
	for what, say := range map[string]func(*served, net.Conn) error{
		"that say nothing": func(*served, net.Conn) error { return nil },
		"that said hello":  func(s *served, c net.Conn) error { _, err := s.hello(c); return err },
		"with half a request": func(s *served, c net.Conn) error {
			over, err := s.hello(c)
			if err == nil {
				_, err = io.WriteString(over, half)
			}
			return err
		},
		"whose request was refused": func(s *served, c net.Conn) error {
			over, err := s.hello(c)
			if err == nil {
				_, err = io.WriteString(over, half+strings.Repeat("x", 93))
			}
			if err == nil {
				_, err = over.Read(make([]byte, 64))
			}
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := serve(t, 256)
			var said sync.WaitGroup
			done := make(chan struct{}, idle)
			for range idle {
				raw, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = raw.Close() })
				said.Go(func() { _ = say(s, raw); done <- struct{}{} }) // cut off or not
			}
			t.Cleanup(said.Wait)
			for range 200 { // fewer than there are places: the rest may wait where places are not given up
				<-done
			}
			took := s.call(nil)
			t.Logf("beside %d connections %s one call takes %s", idle, what, took.Round(time.Millisecond))
			if took > time.Second {
				t.Errorf("beside %d connections %s one call takes %s", idle, what, took)
			}
		})
	}
}

// Connections are made all the time, and none of them is given back, while one client calls.
func TestAStormOfConnectionsDelaysNobodyLong(t *testing.T) {
	const lasts = 3 * time.Second
	for what, storm := range map[string]struct {
		perSecond int
		hello     bool
	}{"silent": {1500, false}, "with TLS": {150, true}} {
		t.Run(what, func(t *testing.T) {
			s := serve(t, 256)
			ctx, stop := context.WithTimeout(t.Context(), lasts)
			defer stop()
			var made atomic.Int32
			var makers sync.WaitGroup
			pace := rate.NewLimiter(rate.Limit(storm.perSecond), 1)
			for range 2 {
				makers.Go(func() {
					for pace.Wait(ctx) == nil {
						c, err := new(net.Dialer).DialContext(ctx, "tcp", s.address)
						if err != nil {
							return
						}
						defer func() { _ = c.Close() }()
						if storm.hello {
							_ = c.SetDeadline(time.Now().Add(lasts))
							_, _ = s.hello(c) //nolint:contextcheck // the connection has a deadline; cut off or not
						}
						made.Add(1)
					}
				})
			}
			var took []time.Duration
			for ctx.Err() == nil {
				took = append(took, s.call(nil))
			}
			makers.Wait()
			slices.Sort(took)
			longest := took[len(took)-1]
			t.Logf("%d connections %s in %s: %d calls, median %s, longest %s", made.Load(), what, lasts, len(took), took[len(took)/2].Round(time.Millisecond), longest.Round(time.Millisecond))
			if longest > time.Second {
				t.Errorf("a call took %s", longest)
			}
		})
	}
}

// behind makes connections as the VPC's relay does for a machine.
func (s *served) behind(machine string) *http.Client {
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig: s.trust, MaxIdleConnsPerHost: 1,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return s.relay(machine) }, //nolint:contextcheck // a local socket
	}}
	s.t.Cleanup(client.CloseIdleConnections)
	return client
}

// relay connects for a machine: an address, or one of another VPC as vpc-…/address.
func (s *served) relay(machine string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(s.t.Context(), "unix", s.address)
	if err != nil {
		return nil, err
	}
	vpc, machine, elsewhere := strings.Cut(machine, "/")
	if !elsewhere {
		vpc, machine = "vpc-0000000000000000a", vpc
	}
	return c, proxyheader.Write(c, proxyheader.Header{
		Source: netip.AddrPortFrom(netip.MustParseAddr(machine), 40000), Destination: netip.MustParseAddrPort("192.168.64.3:443"), VPC: vpc,
	})
}

// A machine takes nobody's places but its own, and is known by its address behind the relay.
func TestMachinesHaveTheirShare(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := serveAt(t, listener, 0, (*awsfront.Front).ServeMachines)
	s.url, s.address = "https://127.0.0.1", socket

	good := s.behind("192.168.64.12")
	s.call(good)
	var closed sync.WaitGroup
	ends := make(chan struct{}, idle)
	for range idle {
		c, err := s.relay("192.168.64.11")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		closed.Go(func() {
			if _, err := c.Read(make([]byte, 1)); err != nil {
				ends <- struct{}{}
			}
		})
	}
	t.Cleanup(closed.Wait)
	for range idle - 32 { // all but its share are cut off at once
		select {
		case <-ends:
		case <-time.After(4 * time.Second): // before the five that each has for a header
			t.Fatal("a machine keeps more connections than its share")
		}
	}
	s.call(good) // on the connection that it had, which nobody cut
	if took := s.call(s.behind("192.168.64.11")); took > time.Second {
		t.Errorf("the machine's own call takes %s", took)
	}
	// A machine of another VPC with that address has a share of its own.
	for range 32 {
		c, err := s.relay("vpc-0000000000000000b/192.168.64.11")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a connection of the other VPC's machine is closed: %v", err)
		}
	}

	direct := httptest.NewServer(s.front)
	t.Cleanup(direct.Close)
	overTheRelay := s.url
	s.url = direct.URL
	alice := s.user("alice")
	s.url = overTheRelay
	document := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:ListUsers","Resource":"*","Condition":{"IpAddress":{"aws:SourceIp":"192.168.64.13"}}}]}`
	config := s.config(s.admin())
	config.HTTPClient = good
	must[*iam.PutUserPolicyOutput](s.world)(iam.NewFromConfig(config).PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("p"), PolicyDocument: &document}))
	for machine, want := range map[string]string{"192.168.64.13": "", "192.168.64.12": "AccessDenied"} {
		config := s.config(alice)
		config.HTTPClient = s.behind(machine)
		_, err := iam.NewFromConfig(config).ListUsers(t.Context(), &iam.ListUsersInput{})
		s.wants("from "+machine, err, want)
	}
}

// Without a header nobody is answered, and others are, meanwhile and afterwards.
func TestTheRelaySaysWhoComes(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := serveAt(t, listener, 0, (*awsfront.Front).ServeMachines)
	s.url, s.address = "https://127.0.0.1", socket
	raw, err := new(net.Dialer).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	silent, err := new(net.Dialer).DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	if took := s.call(s.behind("192.168.64.11")); took > time.Second { // it has two seconds to send a header
		t.Errorf("behind a connection that sends nothing, a call takes %s", took)
	}
	if _, err := s.hello(raw); err == nil {
		t.Error("a connection without a header was answered")
	}
	s.call(s.behind("192.168.64.11"))
}

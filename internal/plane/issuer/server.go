// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/preflight"
	"muster.dev/muster/internal/platform/httpserve"
	"muster.dev/muster/internal/platform/proxyheader"
	"muster.dev/muster/internal/platform/socketdir"
)

const (
	// maxConnections at once; the kernel keeps others waiting. A verifier asks once an hour.
	maxConnections = 128
	// maxRelayed is how many connections relays bring: as many as one of them has at once, with a share of each machine
	// that the relay keeps.
	maxRelayed = 2048
	maxStreams = 16
	maxHeader  = 8 << 10
	// patience is how long an answer may take to be read, and a connection may say nothing.
	patience = 10 * time.Second
	grace    = time.Second
)

// ServerConfig configures a server.
type ServerConfig struct {
	// Address and Port to listen on.
	Address netip.Addr
	Port    int
	// Credential is the file with the certificate and its key, which may be replaced at any time.
	Credential string
	Lookup     Lookup
	// Socket is a unix socket to which relays of VPCs bring pods and machines; empty if none do.
	Socket string
	// CredentialOf is the credential for a client in a VPC, as it is that whom the client trusts has signed.
	CredentialOf func(source netip.Addr, vpc string) string
	Log          *slog.Logger
	// Listening is called once when the port is open; it may be nil.
	Listening func()
}

// Serve answers until the context ends, or something keeps it from that. Then it may be called again.
func Serve(ctx context.Context, c ServerConfig) error {
	if !c.Address.IsValid() || c.Credential == "" || c.Lookup == nil || c.Log == nil || (c.Socket != "") != (c.CredentialOf != nil) {
		return errors.New("the server of issuers needs an address, a credential, a lookup and a log")
	}
	files, err := httpserve.ReadFiles("issuers", c.Credential, c.Credential, "", c.Log)
	if err != nil {
		return err
	}
	set := httpserve.Set{Logger: c.Log, Grace: grace}
	defer set.Close()
	at := netip.AddrPortFrom(c.Address, uint16(c.Port)) //nolint:gosec // G115: a port
	listener, err := set.Open(ctx, "the documents of service account issuers", at.String())
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("%s is in use by %s, so service account issuers are not served there: stop that program, or make it listen on other addresses (ss -ltnp shows it)", at, holder(at))
	case err != nil:
		return err
	}
	listeners := []net.Listener{tls.NewListener(netutil.LimitListener(listener, maxConnections), files.Config())}
	if c.Socket != "" {
		relayed, err := c.listenRelayed(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = relayed.Close() }() // it may be closed by now
		listeners = append(listeners, relayed)
	}
	if c.Listening != nil {
		c.Listening()
	}
	for _, l := range listeners {
		server := set.Handle(l, Handler(c.Lookup))
		server.MaxHeaderBytes, server.WriteTimeout, server.IdleTimeout = maxHeader, patience, patience
		server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams}
	}
	return set.Serve(ctx)
}

// holder names the program that has an address, as far as it can be seen from here: an ordinary user sees programs of
// its own alone.
func holder(at netip.AddrPort) string {
	who, err := preflight.ListenerAt(at)
	if err != nil || who == "" {
		return "another program"
	}
	return who
}

// listenRelayed makes the socket for relays, in place of one that a killed process left.
func (c ServerConfig) listenRelayed(ctx context.Context) (net.Listener, error) {
	listener, err := socketdir.ListenPrivate(ctx, c.Socket)
	if err != nil {
		return nil, fmt.Errorf("listening for pods' requests of issuers' documents: %w", err)
	}
	chosen := &byClient{config: c, files: map[string]*httpserve.Files{}}
	// The limit is below: a TLS connection must be able to tell whom the relay named.
	relayed := proxyheader.NewListener(netutil.LimitListener(listener, maxRelayed), c.Log)
	return tls.NewListener(relayed, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: chosen.get}), nil
}

// byClient has the certificate for each client of a relay.
type byClient struct {
	config ServerConfig
	mu     sync.Mutex
	files  map[string]*httpserve.Files
}

func (b *byClient) get(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	connection, ok := hello.Conn.(*proxyheader.Conn)
	if !ok {
		return nil, fmt.Errorf("a connection of type %T was not brought by a relay", hello.Conn)
	}
	path := b.config.CredentialOf(connection.Header.Source.Addr(), connection.Header.VPC)
	b.mu.Lock()
	defer b.mu.Unlock()
	files, ok := b.files[path]
	if !ok {
		var err error
		if files, err = httpserve.ReadFiles("issuers", path, path, "", b.config.Log); err != nil {
			return nil, err
		}
		b.files[path] = files
	}
	return files.Config().GetConfigForClient(hello)
}

// Permitted reports whether this process may listen on a port of an address, whether or not another program does so
// now.
func Permitted(address netip.Addr, port int) bool {
	listener, err := net.Listen("tcp", netip.AddrPortFrom(address, uint16(port)).String()) //nolint:gosec,noctx // G115: a port; it does not block
	if err == nil {
		_ = listener.Close()
		return true
	}
	return !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM)
}

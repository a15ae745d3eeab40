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
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/httpserve"
)

const (
	// maxConnections at once; the kernel keeps others waiting. A verifier asks once an hour.
	maxConnections = 128
	maxStreams     = 16
	maxHeader      = 8 << 10
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
	Log        *slog.Logger
	// Listening is called once when the port is open; it may be nil.
	Listening func()
}

// Serve answers until the context ends, or something keeps it from that. Then it may be called again.
func Serve(ctx context.Context, c ServerConfig) error {
	if !c.Address.IsValid() || c.Credential == "" || c.Lookup == nil || c.Log == nil {
		return errors.New("the server of issuers needs an address, a credential, a lookup and a log")
	}
	files, err := httpserve.ReadFiles("issuers", c.Credential, c.Credential, "", c.Log)
	if err != nil {
		return err
	}
	set := httpserve.Set{Logger: c.Log, Grace: grace}
	defer set.Close()
	at := netip.AddrPortFrom(c.Address, uint16(c.Port)).String() //nolint:gosec // G115: a port
	listener, err := set.Open(ctx, "the documents of service account issuers", at)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("%s is in use by another program, so service account issuers are not served: stop that program, or make it listen on other addresses (ss -ltnp shows it)", at)
	case err != nil:
		return err
	}
	if c.Listening != nil {
		c.Listening()
	}
	server := set.Handle(tls.NewListener(netutil.LimitListener(listener, maxConnections), files.Config()), Handler(c.Lookup))
	server.MaxHeaderBytes, server.WriteTimeout, server.IdleTimeout = maxHeader, patience, patience
	server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams}
	return set.Serve(ctx)
}

// Permitted reports whether this process may listen on a port of an address, whether or not another program does so now.
func Permitted(address netip.Addr, port int) bool {
	listener, err := net.Listen("tcp", netip.AddrPortFrom(address, uint16(port)).String()) //nolint:gosec,noctx // G115: a port; it does not block
	if err == nil {
		_ = listener.Close()
		return true
	}
	return !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM)
}

// SPDX-License-Identifier: Apache-2.0

package webhookproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"muster.dev/muster/internal/platform/connectproxy"
	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/splice"
)

const (
	// ownTimeout is how long connecting on the host may take, vpcTimeout waiting for the VPC's process and connecting
	// by it.
	ownTimeout, vpcTimeout = 5 * time.Second, 20 * time.Second
	// vpcPatience is how long the VPC's process is waited for.
	vpcPatience = 5 * time.Second
)

// Config configures the proxy of one cluster.
type Config struct {
	// Socket is made in a directory that its owner alone can use.
	Socket string
	// Own are the account's own ports on the host that the API server's flags and files name.
	Own []string
	// VPCSocket is where the process of the cluster's VPC connects to anything else; empty for a cluster without a VPC.
	VPCSocket string
	Log       *slog.Logger
}

// Run serves until the context ends. /readyz on the same socket says that it does.
func Run(ctx context.Context, c Config) error {
	p, err := newProxy(c)
	if err != nil {
		return err
	}
	listener, err := socketdir.Listen(ctx, c.Socket)
	if err != nil {
		return err
	}
	c.Log.Info("dialling for the API server", "own", c.Own, "others", c.VPCSocket)
	server := connectproxy.Server{Dial: p.dial}
	return server.Serve(ctx, listener)
}

// proxy decides where to a target is dialled.
type proxy struct {
	own       map[string]bool
	vpcSocket string
}

func newProxy(c Config) (*proxy, error) {
	if c.Socket == "" || c.Log == nil {
		return nil, errors.New("the webhook proxy needs a socket and a log")
	}
	p := &proxy{own: map[string]bool{}, vpcSocket: c.VPCSocket}
	for _, text := range c.Own {
		port, err := netip.ParseAddrPort(text)
		if err != nil || !port.Addr().IsLoopback() || port.Port() == 0 || port.String() != text {
			return nil, fmt.Errorf("invalid own port %q: must be a loopback address and a port, as 127.0.0.1:29310", text)
		}
		p.own[text] = true
	}
	return p, nil
}

// dial connects to a target, host and port as the API server wrote them. A port of the account on the host must be
// spelled exactly as in the API server's files: no other spelling leads to the host.
func (p *proxy) dial(ctx context.Context, target string) (net.Conn, error) {
	switch {
	case p.own[target]:
		ctx, cancel := context.WithTimeout(ctx, ownTimeout)
		defer cancel()
		return (&net.Dialer{KeepAliveConfig: splice.KeepAlive()}).DialContext(ctx, "tcp4", target)
	case p.vpcSocket == "":
		return nil, connectproxy.Refuse("%s is not a port of this cluster's own, and the cluster has no VPC that its API server could dial in: it reaches no webhooks and no APIs of others", target)
	}
	connection, err := p.dialVPC(ctx, target)
	if refused := (*connectproxy.Refused)(nil); err != nil && !errors.As(err, &refused) {
		err = fmt.Errorf("connecting to %s in the VPC: %w", target, err)
	}
	return connection, err
}

// dialVPC connects by the VPC's process, which bounds these connections. It is waited for while it starts again.
func (p *proxy) dialVPC(ctx context.Context, target string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, vpcTimeout)
	defer cancel()
	return connectproxy.Through(ctx, p.vpcSocket, target, vpcPatience)
}

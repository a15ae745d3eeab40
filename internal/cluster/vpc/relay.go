// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// RelayConfig says what the relay connects.
type RelayConfig struct {
	Network *Network
	// PodCIDR holds the addresses of pods, which API servers may reach too: webhooks and aggregated API servers run there.
	PodCIDR netip.Prefix
	// APIServer is the address on the host's loopback that the ENI stands for.
	APIServer string
	// EgressSocket is the unix socket by which API servers reach into the VPC.
	EgressSocket string
	// IdentitySocket is the unix socket at which STS and IAM answer machines; empty for a VPC without.
	IdentitySocket string
	// Metadata is the instance metadata service, served on [Metadata]; nil for a VPC without it.
	Metadata Service
	// Names answers DNS queries at [ENI], where Amazon's resolver is too; nil for a VPC without.
	Names NameService
	Log   *slog.Logger
}

// Service answers on a listener in the VPC until the context ends.
type Service interface {
	Serve(ctx context.Context, listener net.Listener) error
}

// NameService answers on both sockets, which it closes, until the context ends.
type NameService interface {
	Serve(ctx context.Context, packets net.PacketConn, listener net.Listener) error
}

// Relay joins the API server and the VPC, both ways, and lets machines reach STS and IAM. It keeps no state: killed and started again it goes on.
type Relay struct {
	config RelayConfig
	// slots bounds the connections of API servers and to them together.
	slots chan struct{}
}

const (
	// maxConnections is for a hundred machines with a dozen connections each, and as many again for exec and logs.
	maxConnections = 4096
	maxPerMachine  = 512
	// Those to STS and IAM are short, and the service cuts the ones off that rest before these are taken.
	maxIdentity           = 2048
	maxIdentityPerMachine = 64

	endpointPort = 443
	namesPort    = 53
	// patience is how long a machine's connection is held while what it wants is being restarted. A kubelet that is refused
	// waits for two seconds before it tries again (pkg/kubelet/certificate/bootstrap, waitForServer).
	patience    = 5 * time.Second
	dialTimeout = 10 * time.Second
)

// NewRelay checks the configuration.
func NewRelay(config RelayConfig) (*Relay, error) {
	server, err := netip.ParseAddrPort(config.APIServer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("API server's address %q: %w", config.APIServer, err)
	case !server.Addr().IsLoopback():
		return nil, fmt.Errorf("API server's address %s is not on the host's loopback", server)
	case !config.PodCIDR.IsValid():
		return nil, errors.New("the relay needs the CIDR of pods")
	case config.Network == nil || config.Log == nil || config.EgressSocket == "":
		return nil, errors.New("the relay needs a network, a socket and a log")
	}
	return &Relay{config: config, slots: make(chan struct{}, maxConnections)}, nil
}

// Run makes the network if need be and relays until the context ends.
func (r *Relay) Run(ctx context.Context) error {
	if err := r.config.Network.Ensure(); err != nil {
		return err
	}
	namespace, err := r.config.Network.Open()
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()

	endpoints, err := r.listen(ctx, namespace)
	if err != nil {
		return err
	}
	owners, err := newOwners(namespace, r.config.PodCIDR)
	if err != nil {
		return err
	}
	defer owners.handle.Close()
	if err := r.config.Network.Pin(); err != nil {
		return err
	}
	metadata, err := r.listenMetadata(ctx, namespace)
	if err != nil {
		return err
	}
	names, err := r.listenNames(ctx, namespace)
	if err != nil {
		return err
	}
	// The listeners above are the lock: a second relay of this VPC has failed by now, so a socket that is there is stale.
	if err := os.Remove(r.config.EgressSocket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing stale egress socket: %w", err)
	}
	door, err := listenPrivate(ctx, r.config.EgressSocket)
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	failed := make(chan error, len(endpoints)+3)
	for _, e := range endpoints {
		running.Go(func() { failed <- r.serveEndpoint(ctx, e, owners) })
	}
	running.Go(func() { failed <- r.serveEgress(ctx, door, namespace) })
	if metadata != nil {
		running.Go(func() { failed <- r.config.Metadata.Serve(ctx, metadata) })
	}
	if names != nil {
		running.Go(func() { failed <- r.config.Names.Serve(ctx, names.packets, names.listener) })
	}
	r.config.Log.Info("relay serves", "endpoint", ENI(r.config.Network.cidr).String(), "api_server", r.config.APIServer, "egress", r.config.EgressSocket)
	err = <-failed
	cancel()
	running.Wait()
	return err
}

// listen opens the API server's endpoint in the VPC, at port 443 and at its own port, by which the Endpoints of the Service
// "kubernetes" name it, and that of STS and IAM.
func (r *Relay) listen(ctx context.Context, namespace *os.File) ([]endpoint, error) {
	api := endpoint{what: "API server", dial: r.dialAPIServer, slots: r.slots, shares: newShares(maxPerMachine)}
	identity := endpoint{what: "identity service", dial: r.dialIdentity, slots: make(chan struct{}, maxIdentity), shares: newShares(maxIdentityPerMachine)}
	type place struct {
		at netip.AddrPort
		endpoint
	}
	wanted := []place{{netip.AddrPortFrom(ENI(r.config.Network.cidr), endpointPort), api}}
	if own := netip.MustParseAddrPort(r.config.APIServer).Port(); own != endpointPort {
		wanted = append(wanted, place{netip.AddrPortFrom(ENI(r.config.Network.cidr), own), api})
	}
	if r.config.IdentitySocket != "" {
		wanted = append(wanted, place{netip.AddrPortFrom(Services(r.config.Network.cidr), endpointPort), identity})
	}
	var endpoints []endpoint
	err := host.InNetwork(namespace, func() error {
		for _, p := range wanted {
			listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", p.at.String())
			if errors.Is(err, unix.EADDRINUSE) {
				return fmt.Errorf("another relay of this VPC is running: %w", err)
			}
			if err != nil {
				return fmt.Errorf("listening in the VPC: %w", err)
			}
			p.listener = listener
			endpoints = append(endpoints, p.endpoint)
		}
		return nil
	})
	if err != nil {
		for _, e := range endpoints {
			_ = e.listener.Close()
		}
		return nil, err
	}
	return endpoints, nil
}

// listenMetadata opens the address of the metadata service, if there is to be one.
func (r *Relay) listenMetadata(ctx context.Context, namespace *os.File) (listener net.Listener, err error) {
	if r.config.Metadata == nil {
		return nil, nil
	}
	err = host.InNetwork(namespace, func() (err error) {
		// Keep-alive is HTTP's here; a machine that is gone is found by the time it may take to ask.
		listener, err = (&net.ListenConfig{KeepAlive: -1}).Listen(ctx, "tcp4", netip.AddrPortFrom(Metadata(), MetadataPort).String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening for metadata requests of machines: %w", err)
	}
	return listener, nil
}

// nameSockets are where queries come in.
type nameSockets struct {
	packets  net.PacketConn
	listener net.Listener
}

// listenNames opens the address of the name server, if there is to be one.
func (r *Relay) listenNames(ctx context.Context, namespace *os.File) (*nameSockets, error) {
	if r.config.Names == nil {
		return nil, nil //nolint:nilnil // none is wanted
	}
	sockets := &nameSockets{}
	err := host.InNetwork(namespace, func() (err error) {
		address := netip.AddrPortFrom(ENI(r.config.Network.cidr), namesPort).String()
		if sockets.packets, err = new(net.ListenConfig).ListenPacket(ctx, "udp4", address); err != nil {
			return err
		}
		if sockets.listener, err = new(net.ListenConfig).Listen(ctx, "tcp4", address); err != nil {
			return errors.Join(err, sockets.packets.Close())
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listening for DNS queries of machines: %w", err)
	}
	return sockets, nil
}

// listenPrivate makes a unix socket that only its owner can use, from the first moment on.
func listenPrivate(ctx context.Context, path string) (net.Listener, error) {
	old := unix.Umask(0o177)
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	unix.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("listening on egress socket: %w", err)
	}
	return listener, nil
}

// dialVPC connects to a machine or a pod.
func (r *Relay) dialVPC(ctx context.Context, namespace *os.File, address netip.AddrPort) (net.Conn, error) {
	var connection net.Conn
	err := host.InNetwork(namespace, func() error {
		// One address and no fallback: the dialer makes its socket on this very thread.
		dialer := net.Dialer{FallbackDelay: -1, KeepAliveConfig: keepAlive()}
		var err error
		connection, err = dialer.DialContext(ctx, "tcp4", net.JoinHostPort(address.Addr().String(), strconv.Itoa(int(address.Port()))))
		return err
	})
	return connection, err
}

// keepAlive finds dead peers: a machine that is killed says no goodbye, since its network goes with it.
func keepAlive() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 4}
}

// pause waits, and reports whether it did so to the end.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

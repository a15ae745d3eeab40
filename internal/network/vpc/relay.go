// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/splice"
)

// RelayConfig says what the relay connects. Which clusters have endpoints is in a file of the network's (see
// [Network.SetEndpoint]).
type RelayConfig struct {
	Network *Network
	// Machines says which cluster's a machine is.
	Machines Machines
	// Socket is a unix socket that says whether the relay serves.
	Socket string
	// IdentitySocket is the unix socket at which STS and IAM answer machines; empty for a VPC without.
	IdentitySocket string
	// RegistryName is the name of the account's image registry, which answers at the same address as STS and IAM, and
	// RegistrySocket the unix socket behind it; empty for a VPC without.
	RegistryName, RegistrySocket string
	// IssuerName is the DNS name in the URLs of service account issuers, which answer at the same address, and
	// IssuerSocket the unix socket behind it; empty for an account whose issuers have an address of the host.
	IssuerName, IssuerSocket string
	// Metadata is the instance metadata service, served on [Metadata]; nil for a VPC without it.
	Metadata Service
	// Names answers DNS queries at [Resolver] and [LinkLocalResolver], where Amazon's resolver is too; nil for a VPC
	// without.
	Names NameService
	Log   *slog.Logger
}

// Machines knows the machines of a VPC.
type Machines interface {
	// Cluster returns the name of the cluster that the machine with an address was launched for; false if no machine
	// has it.
	Cluster(address netip.Addr) (name string, known bool, err error)
}

// Service answers on a listener in the VPC until the context ends.
type Service interface {
	Serve(ctx context.Context, listener net.Listener) error
}

// NameService answers on both sockets, which it closes, until the context ends.
type NameService interface {
	// MachineOf is the machine that an address belongs to, its own or a pod's.
	Serve(ctx context.Context, packets net.PacketConn, listener net.Listener, machineOf func(netip.Addr) netip.Addr) error
	// Lookup finds the IPv4 addresses of a name, for a client in the VPC.
	Lookup(ctx context.Context, client netip.Addr, name string) ([]netip.Addr, error)
}

// Relay joins API servers and the VPC, both ways, and lets machines reach STS and IAM. It keeps no state: killed and
// started again it goes on.
type Relay struct{ config RelayConfig }

const (
	// maxConnections of a cluster are for a hundred machines with a dozen connections each, and as many again for exec
	// and logs.
	maxConnections = 4096
	maxPerMachine  = 512
	// Connections to STS and IAM are short, and the service ends idle ones before this limit is reached.
	maxIdentity           = 2048
	maxIdentityPerMachine = 64

	endpointPort = 443
	namesPort    = 53
	// patience is how long a machine's connection is held while what it wants is being restarted. A kubelet that is
	// refused waits for two seconds before it tries again (pkg/kubelet/certificate/bootstrap, waitForServer).
	patience    = 5 * time.Second
	dialTimeout = 10 * time.Second
)

// lockName is the lock that the one relay of a network holds, in its directory.
const lockName = "relay.lock"

// NewRelay checks the configuration.
func NewRelay(config RelayConfig) (*Relay, error) {
	switch {
	case config.Network == nil || config.Log == nil || config.Machines == nil || config.Socket == "":
		return nil, errors.New("the relay needs a network, a list of machines, a socket and a log")
	case config.IdentitySocket != "" && config.Network.id == "":
		return nil, errors.New("the relay needs a VPC with an id: STS and IAM know machines by it")
	}
	return &Relay{config: config}, nil
}

// Run makes the network if need be and relays until the context ends.
func (r *Relay) Run(ctx context.Context) error {
	if err := r.config.Network.Ensure(); err != nil {
		return err
	}
	release, err := filelock.Take(r.config.Network.dir, lockName)
	if errors.Is(err, filelock.ErrTaken) {
		return fmt.Errorf("another relay of this VPC is running: %w", err)
	}
	if err != nil {
		return err
	}
	defer release()
	namespace, err := r.config.Network.Open()
	if err != nil {
		return err
	}
	defer func() { _ = namespace.Close() }()
	owners, err := newOwners(namespace)
	if err != nil {
		return err
	}
	defer owners.handle.Close()
	if err := r.config.Network.Pin(); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	doors := &doors{relay: r, namespace: namespace, owners: owners, network: r.config.Network, open: map[string]*door{}}
	defer func() {
		cancel()
		running.Wait()
		doors.closeAll()
	}()
	failed := make(chan error, 8) // more than there are services
	if err := r.serveVPC(ctx, namespace, owners, func(serve func() error) {
		running.Go(func() { failed <- serve() })
	}); err != nil {
		return err
	}
	first := make(chan struct{})
	running.Go(func() {
		doors.follow(ctx, sync.OnceFunc(func() { close(first) }))
		failed <- nil
	})
	select {
	case <-first:
	case err := <-failed:
		return err
	}
	ready, err := socketdir.ListenPrivate(ctx, r.config.Socket)
	if err != nil {
		return err
	}
	running.Go(func() { failed <- serveReady(ctx, ready) })
	r.config.Log.Info("relay serves", "vpc", r.config.Network.id, "range", r.config.Network.cidr.String())
	return <-failed
}

// serveVPC begins what every VPC has, whichever clusters are in it: STS and IAM, metadata, names.
func (r *Relay) serveVPC(ctx context.Context, namespace *os.File, owners *owners, begin func(func() error)) error {
	if r.config.IdentitySocket != "" {
		listener, err := listenAt(ctx, namespace, netip.AddrPortFrom(Services(r.config.Network.cidr), endpointPort))
		if err != nil {
			return err
		}
		identity := endpoint{
			what: "identity service", listener: listener, dial: r.dialIdentity, slots: make(chan struct{}, maxIdentity), shares: newShares(maxIdentityPerMachine),
		}
		identity.shares.room = func() int { return cap(identity.slots) - len(identity.slots) }
		begin(func() error { return r.serveEndpoint(ctx, identity, owners) })
	}
	metadata, err := r.listenMetadata(ctx, namespace)
	if err != nil {
		return err
	}
	if metadata != nil {
		begin(func() error { return r.config.Metadata.Serve(ctx, metadata) })
	}
	if r.config.Names == nil {
		return nil
	}
	for _, address := range []netip.Addr{Resolver(r.config.Network.cidr), LinkLocalResolver()} {
		names, err := r.listenNames(ctx, namespace, address)
		if err != nil {
			return err
		}
		begin(func() error { return r.config.Names.Serve(ctx, names.packets, names.listener, owners.of) })
	}
	return nil
}

// listenAt listens in the VPC.
func listenAt(ctx context.Context, namespace *os.File, at netip.AddrPort) (listener net.Listener, err error) {
	err = host.InNetwork(namespace, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp4", at.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening in the VPC: %w", err)
	}
	return listener, nil
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

// listenNames opens an address of the name server.
func (r *Relay) listenNames(ctx context.Context, namespace *os.File, at netip.Addr) (*nameSockets, error) {
	sockets := &nameSockets{}
	err := host.InNetwork(namespace, func() (err error) {
		address := netip.AddrPortFrom(at, namesPort).String()
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

// serveReady answers GET /readyz.
func serveReady(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: readiness(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 4 << 10}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the socket of the VPC: %w", err)
	}
	return nil
}

func readiness() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	return mux
}

// dialVPC connects to a machine or a pod, from an address of the API server's: security groups know it by that.
func dialVPC(ctx context.Context, namespace *os.File, source netip.Addr, address netip.AddrPort) (net.Conn, error) {
	var connection net.Conn
	err := host.InNetwork(namespace, func() error {
		// One address and no fallback: the dialer makes its socket on this very thread.
		dialer := net.Dialer{
			FallbackDelay: -1, KeepAliveConfig: splice.KeepAlive(), LocalAddr: &net.TCPAddr{IP: source.AsSlice()}, ControlContext: bindWithoutPort,
		}
		var err error
		connection, err = dialer.DialContext(ctx, "tcp4", net.JoinHostPort(address.Addr().String(), strconv.Itoa(int(address.Port()))))
		return err
	})
	return connection, err
}

// bindWithoutPort leaves the choice of the local port to connect: a port may serve connections to several machines
// (ip(7)).
func bindWithoutPort(_ context.Context, _, _ string, raw syscall.RawConn) (err error) {
	if failed := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
	}); failed != nil {
		return failed
	}
	return err
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

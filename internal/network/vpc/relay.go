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

	"muster.dev/muster/internal/platform/handover"
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
// started again it goes on. Replaced by the next one it gives that one its sockets, and keeps its connections.
type Relay struct {
	config       RelayConfig
	answerWithin time.Duration // that of another relay; tests have less patience
}

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
	return &Relay{config: config, answerWithin: handover.Patience}, nil
}

// Run makes the network if need be and relays until the context ends or the next relay has taken over. In the second
// case it returns with its last connection, or after a day.
func (r *Relay) Run(ctx context.Context) error {
	if err := r.config.Network.Ensure(); err != nil {
		return err
	}
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
	// The relay that serves now is asked last, after all that can fail.
	release, inherited, err := r.obtain(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	release = sync.OnceFunc(release)
	defer release()
	sockets := newSockets(namespace, inherited)
	defer sockets.drop()
	return r.work(ctx, sockets, owners, release)
}

// work is Run with the lock.
func (r *Relay) work(ctx context.Context, sockets *sockets, owners *owners, release func()) error {
	ctx, cancel := context.WithCancel(ctx)   // ends with the last connection
	serving, stop := context.WithCancel(ctx) // ends when another relay takes over
	defer stop()
	var running sync.WaitGroup
	doors := &doors{relay: r, sockets: sockets, owners: owners, network: r.config.Network, open: map[string]*door{}}
	defer func() {
		cancel()
		running.Wait()
		doors.closeAll()
	}()
	failed := make(chan error, 8) // more than there are parts
	begin := func(serve func() error) { running.Go(func() { failed <- serve() }) }
	if err := r.serveVPC(ctx, serving, sockets, owners, begin); err != nil {
		return err
	}
	first, followed, answered := make(chan struct{}), make(chan struct{}), make(chan struct{})
	begin(func() error {
		defer close(followed)
		doors.follow(serving, ctx, sync.OnceFunc(func() { close(first) }))
		return nil
	})
	select {
	case <-first:
	case err := <-failed:
		return err
	}
	next, ready, err := r.listen(ctx)
	if err != nil {
		return err
	}
	begin(func() error {
		defer close(answered)
		return serveReady(serving, ready)
	})
	taken := make(chan struct{})
	begin(func() error {
		return r.handover().Offer(ctx, next, sockets.offer, func() {
			close(taken)
			stop()
			<-followed
			<-answered
			_ = next.Close()
			sockets.close()
			release()
		})
	})
	r.config.Log.Info("relay serves", "vpc", r.config.Network.id, "range", r.config.Network.cidr.String())
	err = <-failed
	select {
	case <-taken:
		r.leave(ctx, func() {
			running.Wait()
			doors.wait()
		})
		return nil
	default:
		return err
	}
}

// listen opens the sockets at which the next relay takes over, and at which this one says that it serves: whoever finds
// that it does finds that it hands over, too.
func (r *Relay) listen(ctx context.Context) (next, ready net.Listener, err error) {
	if next, err = socketdir.ListenPrivate(ctx, r.next()); err != nil {
		return nil, nil, err
	}
	if ready, err = socketdir.ListenPrivate(ctx, r.config.Socket); err != nil {
		return nil, nil, errors.Join(err, next.Close())
	}
	return next, ready, nil
}

// leave waits for the last connection.
func (r *Relay) leave(ctx context.Context, wait func()) {
	r.config.Log.Info("another relay has taken over", "vpc", r.config.Network.id)
	last := make(chan struct{})
	go func() {
		wait()
		close(last)
	}()
	select {
	case <-last:
	case <-ctx.Done(): // it was told to end
	case <-time.After(leaveAfter):
		r.config.Log.Warn("connections are cut", "after", leaveAfter)
	}
}

// serveVPC begins what every VPC has, whichever clusters are in it: STS and IAM, whose connections end with the context,
// and metadata and names, which answer while this relay serves.
func (r *Relay) serveVPC(ctx, serving context.Context, sockets *sockets, owners *owners, begin func(func() error)) error {
	if r.config.IdentitySocket != "" {
		listener, err := listenAt(ctx, sockets, netip.AddrPortFrom(Services(r.config.Network.cidr), endpointPort))
		if err != nil {
			return err
		}
		identity := endpoint{
			what: "identity service", listener: listener, dial: r.dialIdentity, slots: make(chan struct{}, maxIdentity), shares: newShares(maxIdentityPerMachine),
		}
		identity.shares.room = func() int { return cap(identity.slots) - len(identity.slots) }
		begin(func() error { return r.serveEndpoint(ctx, identity, owners) })
	}
	if r.config.Metadata != nil {
		// Keep-alive is HTTP's here; a machine that is gone is found by the time it may take to ask.
		listener, err := sockets.tcp(ctx, net.ListenConfig{KeepAlive: -1}, netip.AddrPortFrom(Metadata(), MetadataPort))
		if err != nil {
			return fmt.Errorf("listening for metadata requests of machines: %w", err)
		}
		begin(func() error { return r.config.Metadata.Serve(serving, listener) })
	}
	if r.config.Names == nil {
		return nil
	}
	for _, address := range []netip.Addr{Resolver(r.config.Network.cidr), LinkLocalResolver()} {
		packets, listener, err := listenNames(ctx, sockets, netip.AddrPortFrom(address, namesPort))
		if err != nil {
			return fmt.Errorf("listening for DNS queries of machines: %w", err)
		}
		begin(func() error { return r.config.Names.Serve(serving, packets, listener, owners.of) })
	}
	return nil
}

// listenAt listens in the VPC.
func listenAt(ctx context.Context, sockets *sockets, at netip.AddrPort) (net.Listener, error) {
	listener, err := sockets.tcp(ctx, net.ListenConfig{}, at)
	if err != nil {
		return nil, fmt.Errorf("listening in the VPC: %w", err)
	}
	return listener, nil
}

// listenNames opens an address of the name server.
func listenNames(ctx context.Context, sockets *sockets, at netip.AddrPort) (net.PacketConn, net.Listener, error) {
	packets, err := sockets.udp(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	listener, err := sockets.tcp(ctx, net.ListenConfig{}, at)
	if err != nil {
		return nil, nil, errors.Join(err, packets.Close())
	}
	return packets, listener, nil
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

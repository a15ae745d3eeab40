// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root. Their addresses are in those namespaces only.

package vpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/miekg/dns"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/privatedns"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/handover"
)

// lines is a log that tells of a line, and may have no errors.
type lines struct {
	t    *testing.T
	want string
	seen chan struct{}
}

func (l *lines) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("level=ERROR")) {
		l.t.Errorf("the log says %s", line)
	}
	if bytes.Contains(line, []byte(l.want)) {
		l.seen <- struct{}{}
	}
	return len(line), nil
}

// running is a relay of a test.
type running struct {
	end   context.CancelFunc
	ended chan error
}

// begin runs a relay until it serves.
func begin(t *testing.T, config RelayConfig) *running {
	t.Helper()
	log := &lines{t: t, want: "relay serves", seen: make(chan struct{}, 1)}
	config.Log = slog.New(slog.NewTextHandler(io.MultiWriter(log, t.Output()), nil))
	relay, err := NewRelay(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{cancel, make(chan error, 1)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.ended <- relay.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	select {
	case <-log.seen:
	case err := <-r.ended:
		t.Fatalf("the relay ended: %v", err)
	case <-time.After(generous):
		t.Fatal("the relay does not serve")
	}
	return r
}

// serves fails if a relay has ended.
func (r *running) serves(t *testing.T) {
	t.Helper()
	select {
	case err := <-r.ended:
		t.Fatalf("the relay ended: %v", err)
	default:
	}
}

// leaves fails if a relay does not end by itself.
func (r *running) leaves(t *testing.T) {
	t.Helper()
	select {
	case err := <-r.ended:
		if err != nil {
			t.Errorf("the relay: %v", err)
		}
	case <-time.After(generous):
		t.Fatal("the relay does not end")
	}
}

// stop ends a relay.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.end()
	r.leaves(t)
}

// says sends a line and fails if that is not what comes back.
func (c *kept) says(t *testing.T, line string) {
	t.Helper()
	if err := c.SetDeadline(time.Now().Add(generous)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(c, line); err != nil {
		t.Fatalf("a connection that is kept: %v", err)
	}
	if got, err := c.reader.ReadString('\n'); err != nil || got != line+"\n" {
		t.Fatalf("a connection that is kept: %q, %v", got, err)
	}
}

// kept is a connection to an API server that says its name first, or to a machine.
type kept struct {
	net.Conn
	reader *bufio.Reader
}

func keep(c net.Conn) *kept { return &kept{c, bufio.NewReader(c)} }

// full is a relay with all that a VPC may have.
func full(t *testing.T, n *Network) RelayConfig {
	t.Helper()
	config := relayConfig(t, n)
	address := netip.MustParseAddr(firstMachine)
	records := []machine.Record{{ID: "i-0123456789abcdef0", PrivateIP: address, PrivateDNSName: machine.PrivateDNSName(address, "ec2.internal"), Domain: "ec2.internal"}}
	names, err := privatedns.NewServer(privatedns.Config{Machines: func() ([]machine.Record, error) { return records, nil }, Log: config.Log})
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := imds.NewServer(imds.ServerConfig{Directory: directory{address: 1}, Key: bytes.Repeat([]byte{1}, 32), Log: config.Log})
	if err != nil {
		t.Fatal(err)
	}
	config.Names, config.Metadata, config.IdentitySocket = names, metadata, filepath.Join(t.TempDir(), "machines.sock")
	identity, err := new(net.ListenConfig).Listen(t.Context(), "unix", config.IdentitySocket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = identity.Close() })
	echo(t, identity)
	return config
}

// asking asks for everything from a machine, over new connections, until the function that it returns is called, which
// returns how often it did.
func asking(t *testing.T, machine *os.File, e Endpoint) (stop func() int) {
	t.Helper()
	over, counted := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-over:
				counted <- n
				return
			default:
			}
			if connection, err := dialIn(t, machine, "192.168.64.4:443"); err != nil {
				t.Errorf("the API server: %v", err)
			} else if said, err := bufio.NewReader(connection).ReadString('\n'); err != nil || said != "api\n" {
				t.Errorf("the API server says %q, %v", said, err)
			} else {
				_ = connection.Close()
			}
			if connection, err := dialIn(t, machine, "192.168.64.3:443"); err != nil {
				t.Errorf("the identity service: %v", err)
			} else if said, err := tell(connection, 1); err != nil || len(said) == 0 {
				t.Errorf("the identity service says %q, %v", said, err)
			}
			// A machine that asks this often is told so.
			if _, err := tokenOf(machine, "", generous); err != nil && err.Error() != "503 Service Unavailable" {
				t.Errorf("metadata: %v", err)
			}
			for _, network := range []string{"udp4", "tcp4"} {
				if reply := resolve(t, machine, Resolver(cidr), network, "ip-192-168-64-11.ec2.internal."); len(reply.Answer) != 1 || reply.Rcode != dns.RcodeSuccess {
					t.Errorf("names over %s: %v", network, reply)
				}
			}
			for _, socket := range []string{e.EgressSocket, e.WebhookSocket} {
				if connection, status := connect(t, socket, firstMachine+":10250"); status != http.StatusOK {
					t.Errorf("CONNECT by %s: %d", socket, status)
				} else {
					_ = connection.Close()
				}
			}
		}
	}()
	return func() int {
		close(over)
		return <-counted
	}
}

// handoverWorld is a network with a machine and an endpoint.
func handoverWorld(t *testing.T) (RelayConfig, *os.File, Endpoint) {
	t.Helper()
	n := newNetwork(t)
	machine := newMachine(t, n, firstMachine)
	listener := listenIn(t, machine, firstMachine+":10250")
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(connection, connection)
				_ = connection.Close()
			}()
		}
	}()
	e := endpointOf(apiServerSaying(t, "api"), filepath.Join(t.TempDir(), "egress.sock"))
	e.WebhookSocket = filepath.Join(filepath.Dir(e.EgressSocket), "webhooks.sock")
	if err := n.SetEndpoint(e); err != nil {
		t.Fatal(err)
	}
	return full(t, n), machine, e
}

// A relay takes over from the one before without a connection that is refused or cut, again and again. Each goes with its
// last connection, and sockets go with the last relay.
func TestHandover(t *testing.T) {
	config, machine, e := handoverWorld(t)
	old := begin(t, config)
	dialled, err := dialIn(t, machine, "192.168.96.4:443")
	if err != nil {
		t.Fatal(err)
	}
	apiServer := keep(dialled)
	if said, err := apiServer.reader.ReadString('\n'); err != nil || said != "api\n" {
		t.Fatalf("%q, %v", said, err)
	}
	tunnels := []*kept{apiServer}
	for _, socket := range []string{e.EgressSocket, e.WebhookSocket} {
		connection, status := connect(t, socket, firstMachine+":10250")
		if status != http.StatusOK {
			t.Fatalf("CONNECT by %s: %d", socket, status)
		}
		tunnels = append(tunnels, keep(connection))
	}
	stop := asking(t, machine, e)
	next := begin(t, config)
	for range 3 {
		before := next
		next = begin(t, config)
		before.leaves(t)
	}
	t.Logf("asked %d times", stop())
	old.serves(t)
	for _, tunnel := range tunnels {
		tunnel.says(t, "still here")
		_ = tunnel.Close()
	}
	old.leaves(t)
	if _, err := filelock.Take(config.Network.dir, lockName); err == nil {
		t.Error("no relay has the lock")
	}
	next.stop(t)
	for _, socket := range []string{e.EgressSocket, e.WebhookSocket, config.Socket} {
		if _, err := os.Lstat(socket); err == nil {
			t.Errorf("%s is left", socket)
		}
	}
	begin(t, config).stop(t)
}

// A next relay that ends before it accepts leaves the one that serves as it was, sockets and all.
func TestANextRelayThatDies(t *testing.T) {
	config, machine, e := handoverWorld(t)
	serving := begin(t, config)
	relay, err := NewRelay(config)
	if err != nil {
		t.Fatal(err)
	}
	died := errors.New("it died")
	for range 3 {
		err := relay.handover().Take(t.Context(), func(sockets map[string]*os.File) error {
			defer handover.Close(sockets)
			// Both addresses of the API server, its two sockets, STS and IAM, metadata, and names at two addresses.
			if len(sockets) != 10 {
				t.Errorf("it got %v", sockets)
			}
			return died
		})
		if !errors.Is(err, died) {
			t.Fatal(err)
		}
	}
	stop := asking(t, machine, e)
	begun := begin(t, config)
	if n := stop(); n == 0 {
		t.Error("nothing was asked")
	}
	serving.leaves(t)
	begun.stop(t)
}

// The next relay closes sockets that no endpoint names any more, and opens an endpoint that is new.
func TestSocketsThatAreNotWanted(t *testing.T) {
	config, machine, e := handoverWorld(t)
	serving := begin(t, config)
	relay, err := NewRelay(config)
	if err != nil {
		t.Fatal(err)
	}
	release, inherited, err := relay.obtain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	serving.leaves(t)
	if err := config.Network.RemoveEndpoint(e.Cluster); err != nil {
		t.Fatal(err)
	}
	owners, err := newOwners(openNamespace(t, config.Network))
	if err != nil {
		t.Fatal(err)
	}
	defer owners.handle.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- relay.work(ctx, newSockets(openNamespace(t, config.Network), inherited), owners, release)
	}()
	eventually(t, "the endpoint is gone", func() error {
		if connection, err := dialIn(t, machine, "192.168.64.4:443"); err == nil {
			_ = connection.Close()
			return fs.ErrExist
		}
		return nil
	})
	eventually(t, "the rest is served", func() error {
		_, err := tokenOf(machine, "", generous)
		return err
	})
	if err := config.Network.SetEndpoint(e); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the endpoint is opened", func() error {
		connection, err := dialIn(t, machine, "192.168.64.4:443")
		if err == nil {
			_ = connection.Close()
		}
		return err
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func openNamespace(t *testing.T, n *Network) *os.File {
	t.Helper()
	namespace, err := n.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = namespace.Close() })
	return namespace
}

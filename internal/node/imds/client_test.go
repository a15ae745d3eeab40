// SPDX-License-Identifier: Apache-2.0

package imds

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	awsimds "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"golang.org/x/sys/unix"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// serve runs a server on a loopback port for the machines of a directory.
func serve(t *testing.T, known machines) (endpoint string) {
	t.Helper()
	s, err := NewServer(ServerConfig{Directory: known, Key: bytes.Repeat([]byte{7}, keySize), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

func TestClient(t *testing.T) {
	client := NewClient(serve(t, machines{loopback: instance("i-0000000000000000a", loopback)}))
	identity, err := client.Identity(t.Context())
	want := Identity{
		ID: "i-0000000000000000a", Type: "m5.large", Region: "us-east-1", AvailabilityZone: "us-east-1b", AvailabilityZoneID: "use1-az2",
		PrivateIP: loopback, PrivateDNSName: "ip-192-168-64-11.muster.test", ImageID: "ami-0123456789abcdef0",
	}
	if err != nil || identity != want {
		t.Errorf("got %+v, %v; want %+v", identity, err, want)
	}
	if raw, err := client.UserData(t.Context()); err != nil || string(raw) != "user data of i-0000000000000000a" {
		t.Errorf("user data: %q, %v", raw, err)
	}
	if _, err := client.Metadata(t.Context(), "nothing"); !errors.Is(err, ErrNotFound) {
		t.Errorf("what is not there: %v", err)
	}
	none := serve(t, machines{loopback: instance("i-0000000000000000e", loopback)})
	if _, err := FetchUserData(t.Context(), none); !errors.Is(err, ErrNotFound) {
		t.Errorf("no user data: %v", err)
	}
	if _, err := NewClient(serve(t, machines{})).UserData(t.Context()); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown machine: %v", err)
	}
}

// A machine may have an address of the other kind, too.
func TestClientTellsIPv6(t *testing.T) {
	known := instance("i-0000000000000000a", loopback)
	known.IPv6 = netip.MustParseAddr("fd00:1::5")
	identity, err := NewClient(serve(t, machines{loopback: known})).Identity(t.Context())
	if err != nil || identity.IPv6 != known.IPv6 || identity.PrivateIP != loopback {
		t.Errorf("got %+v, %v", identity, err)
	}
}

// A machine may have a range for its pods, where EC2 has delegated prefixes.
func TestClientTellsPodRange(t *testing.T) {
	known := instance("i-0000000000000000a", loopback)
	known.PodRange = netip.MustParsePrefix("127.0.1.128/25")
	client := NewClient(serve(t, machines{loopback: known}))
	identity, err := client.Identity(t.Context())
	if err != nil || identity.PodRange != known.PodRange {
		t.Errorf("got %+v, %v", identity, err)
	}
	if got, err := client.Metadata(t.Context(), "network/interfaces/macs/"+known.MAC.String()+"/ipv4-prefix"); err != nil || got != "127.0.1.128/25" {
		t.Errorf("got %q, %v", got, err)
	}
	if identity, err = NewClient(serve(t, machines{loopback: instance("i-0000000000000000e", loopback)})).Identity(t.Context()); err != nil || identity.PodRange.IsValid() {
		t.Errorf("without one: %+v, %v", identity, err)
	}
}

// AWS's own client, as any program on a machine has it, with nothing changed but the address.
func TestUnmodifiedSDK(t *testing.T) {
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", serve(t, machines{loopback: instance("i-0000000000000000a", loopback)}))
	client := awsimds.New(awsimds.Options{})
	document, err := client.GetInstanceIdentityDocument(t.Context(), nil)
	if err != nil || document.InstanceID != "i-0000000000000000a" || document.PrivateIP != "127.0.0.1" || !document.PendingTime.Equal(time.Unix(1700000000, 0)) {
		t.Errorf("identity document: %+v, %v", document, err)
	}
	region, err := client.GetRegion(t.Context(), nil)
	if err != nil || region.Region != "us-east-1" {
		t.Errorf("region: %+v, %v", region, err)
	}
	userData, err := client.GetUserData(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(userData.Content); err != nil || string(raw) != "user data of i-0000000000000000a" {
		t.Errorf("user data: %q, %v", raw, err)
	}
	metadata, err := client.GetMetadata(t.Context(), &awsimds.GetMetadataInput{Path: "placement/availability-zone"})
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(metadata.Content); err != nil || string(raw) != "us-east-1b" {
		t.Errorf("zone: %q, %v", raw, err)
	}
}

// A service that is not there yet is waited for.
func TestFetchWaits(t *testing.T) {
	refusals := 3
	good := serve(t, machines{loopback: instance("i-0000000000000000a", loopback)})
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			if refusals--; refusals >= 0 {
				_ = connection.Close()
				continue
			}
			go func() {
				defer connection.Close()
				server, err := new(net.Dialer).Dial("tcp4", strings.TrimPrefix(good, "http://"))
				if err != nil {
					return
				}
				defer server.Close()
				go func() { _, _ = io.Copy(server, connection) }()
				_, _ = io.Copy(connection, server)
			}()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	raw, err := FetchUserData(t.Context(), "http://"+listener.Addr().String())
	if err != nil || string(raw) != "user data of i-0000000000000000a" {
		t.Errorf("%q, %v", raw, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := FetchUserData(ctx, "http://127.0.0.1:1"); err == nil {
		t.Error("a service that is not there answered")
	}
}

// changing is a directory that others look at while it changes.
type changing struct {
	mutex sync.Mutex
	known machines
}

func (c *changing) set(known machines) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.known = known
}

func (c *changing) Lookup(address netip.Addr) (Instance, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.known.Lookup(address)
}

func (c *changing) UserData(id string) ([]byte, error) { return machines{}.UserData(id) }

// A machine has a limited number of connections. Connections that end make room. Each carries the machine's hop limit.
// A pod's own address is a hop further than its machine's.
func TestGate(t *testing.T) {
	known := &changing{known: machines{loopback: instance("i-0000000000000000a", loopback)}}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	g := newGate(listener, known, slog.New(slog.DiscardHandler))
	dial := func() net.Conn {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp4", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = connection.Close() })
		return connection
	}
	refused := func() bool { // by a reset, which may come before the caller knows that it is connected
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp4", listener.Addr().String())
		if err == nil {
			defer connection.Close()
			_ = connection.SetReadDeadline(time.Now().Add(time.Minute))
			_, err = connection.Read(make([]byte, 1))
		}
		return errors.Is(err, unix.ECONNRESET)
	}
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for {
			connection, err := g.Accept()
			if err != nil {
				return
			}
			accepted <- connection
		}
	}()
	var open []net.Conn
	for range maxPerMachine {
		dial()
		open = append(open, <-accepted)
	}
	if got := hops(t, open[0]); got != 1 {
		t.Errorf("hop limit is %d, want 1", got)
	}
	if !refused() {
		t.Error("one connection too many was admitted")
	}
	for range 2 { // closing twice gives back once
		_ = open[0].Close()
	}
	dial()
	<-accepted
	if !refused() {
		t.Error("a connection that was closed twice made room for two")
	}
	for _, connection := range open {
		_ = connection.Close()
	}

	behind := instance("i-0000000000000000a", first) // so that the client is not the machine itself
	known.set(machines{loopback: behind})
	if !refused() {
		t.Error("a pod was admitted")
	}
	behind.HopLimit = 2
	known.set(machines{loopback: behind})
	dial()
	if got := hops(t, <-accepted); got != 2 {
		t.Errorf("hop limit is %d, want 2", got)
	}
	known.set(machines{})
	if !refused() {
		t.Error("an unknown address was admitted")
	}
}

func hops(t *testing.T, connection net.Conn) (hops int) {
	t.Helper()
	tcp, ok := connection.(*admitted).Conn.(*net.TCPConn)
	if !ok {
		t.Fatal("not TCP")
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) { hops, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TTL) })
	if err != nil {
		t.Fatal(err)
	}
	return hops
}

// A machine that sends nothing, or half a request, is let go.
func TestNoRequest(t *testing.T) {
	endpoint := serve(t, machines{loopback: instance("i-0000000000000000a", loopback)})
	connection, err := new(net.Dialer).DialContext(t.Context(), "tcp4", strings.TrimPrefix(endpoint, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "PUT /latest/api/token HTTP/1.1\r\nX-Long: "+strings.Repeat("x", 16<<10)); err != nil && !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
		t.Fatal(err)
	}
	_ = connection.SetReadDeadline(time.Now().Add(time.Minute))
	answer, _ := io.ReadAll(connection)
	if !bytes.Contains(answer, []byte(http.StatusText(http.StatusRequestHeaderFieldsTooLarge))) && len(answer) > 0 {
		t.Errorf("answer is %q", answer)
	}
}

// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/plane/frontservers"
	"muster.dev/muster/internal/platform/atomicfile"
)

// backend is a server with TLS, as a kube-apiserver is one: it says whether it is ready, and who it is.
type backend struct {
	*httptest.Server
	address netip.AddrPort
	unready atomic.Bool
}

func newBackend(t *testing.T, name string) *backend {
	t.Helper()
	b := &backend{}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if b.unready.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })
	b.Server = httptest.NewUnstartedServer(mux)
	b.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	b.StartTLS()
	t.Cleanup(b.Close)
	b.address = netip.MustParseAddrPort(b.Listener.Addr().String())
	return b
}

// world is a front with its files.
type world struct {
	config   Config
	client   *http.Client
	patience time.Duration // of its fronts with each other; the usual one if 0
	hurry    time.Duration // how long a probe may take; as long as usual if 0
	every    time.Duration // the pause between two probes; the usual one if 0

	descriptors uint64 // that a process of its may have open; as many as the test's if 0
}

func newWorld(t *testing.T, servers ...frontservers.Server) *world {
	t.Helper()
	dir := t.TempDir()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := netip.MustParseAddrPort(free.Addr().String())
	_ = free.Close()
	w := &world{config: Config{
		Listen: listen, Servers: filepath.Join(dir, "servers.json"), Authority: filepath.Join(dir, "ca.pem"),
		Socket: filepath.Join(dir, "front.sock"), Log: slog.New(slog.DiscardHandler),
	}}
	other := httptest.NewUnstartedServer(nil) // every server of httptest has the same certificate
	other.StartTLS()
	defer other.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})
	if err := os.WriteFile(w.config.Authority, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	w.tell(t, servers...)
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: other.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}} //nolint:forcetypeassert // httptest's
	w.client = &http.Client{Transport: transport, Timeout: 10 * time.Second}
	return w
}

// tell replaces the file of servers.
func (w *world) tell(t *testing.T, servers ...frontservers.Server) {
	t.Helper()
	if err := atomicfile.Write(w.config.Servers, frontservers.Marshal(servers), 0o600); err != nil {
		t.Fatal(err)
	}
}

// start runs a front, and returns it, what ends it, and what it returns.
func (w *world) start(t *testing.T) (f *Front, end func(), ended <-chan error) {
	t.Helper()
	f, err := New(w.config)
	if err != nil {
		t.Fatal(err)
	}
	if w.patience != 0 {
		f.answerWithin = w.patience
	}
	if w.hurry != 0 {
		f.asker.timeout = w.hurry
	}
	if w.every != 0 {
		f.probeEvery = w.every
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	var over sync.WaitGroup
	over.Go(func() { done <- f.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		over.Wait()
	})
	return f, cancel, done
}

// ask asks the front over a new connection.
func (w *world) ask() (string, error) {
	response, err := w.client.Get("https://" + w.config.Listen.String() + "/")
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	return string(raw), err
}

// soon waits until something is true.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal(what + ": not within 20 s")
		}
	}
}

func (f *Front) isReady(address netip.AddrPort) bool {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	m := f.pool.find(address)
	return m != nil && m.ready
}

// New connections go to a server that is ready, whatever others there are, and a connection stays where it is.
func TestConnectionsGoToReadyServers(t *testing.T) {
	a, b := newBackend(t, "a"), newBackend(t, "b")
	b.unready.Store(true)
	w := newWorld(t, frontservers.Server{Address: a.address}, frontservers.Server{Address: b.address})
	f, _, _ := w.start(t)
	soon(t, "a is ready", func() bool { return f.isReady(a.address) })
	for range 10 {
		if got, err := w.ask(); got != "a" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	kept := &http.Client{Transport: &http.Transport{TLSClientConfig: w.client.Transport.(*http.Transport).TLSClientConfig.Clone()}} //nolint:forcetypeassert // ours
	defer kept.CloseIdleConnections()
	get := func() string {
		response, err := kept.Get("https://" + w.config.Listen.String() + "/")
		if err != nil {
			return err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		raw, _ := io.ReadAll(response.Body)
		return string(raw)
	}
	if got := get(); got != "a" {
		t.Fatal(got)
	}
	b.unready.Store(false)
	soon(t, "b is ready", func() bool { return f.isReady(b.address) })
	w.tell(t, frontservers.Server{Address: a.address, Draining: true}, frontservers.Server{Address: b.address})
	soon(t, "new connections go to b", func() bool { got, _ := w.ask(); return got == "b" })
	for range 10 {
		if got, err := w.ask(); got != "b" {
			t.Fatalf("%q, %v", got, err)
		}
		if got := get(); got != "a" {
			t.Fatal("the kept connection: " + got)
		}
	}
}

// A server that refuses connections is passed over, before a probe has said so.
func TestAServerThatIsGone(t *testing.T) {
	a, b := newBackend(t, "a"), newBackend(t, "b")
	w := newWorld(t, frontservers.Server{Address: a.address}, frontservers.Server{Address: b.address})
	f, _, _ := w.start(t)
	soon(t, "both are ready", func() bool { return f.isReady(a.address) && f.isReady(b.address) })
	a.Close()
	for range 20 {
		if got, err := w.ask(); got != "b" {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

// A process that listens again where one was killed gets no connections before it is ready, though it has the fewest: not
// when connections were refused meanwhile, and not when the killed one ended connections.
func TestAServerThatIsKilled(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world){
		"refused": func(w *world) {
			for range 2 { // of which one is offered to it first
				_, _ = w.ask()
			}
		},
		"cut": func(*world) {},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newBackend(t, "a"), newBackend(t, "b")
			w := newWorld(t, frontservers.Server{Address: a.address}, frontservers.Server{Address: b.address})
			w.every = time.Hour // else a probe would tell soon
			f, _, _ := w.start(t)
			soon(t, "both are ready", func() bool { return f.isReady(a.address) && f.isReady(b.address) })
			for _, server := range f.pool.snapshot() {
				for range 2 { // of which one goes to a
					kept, err := tls.Dial("tcp", w.config.Listen.String(), w.client.Transport.(*http.Transport).TLSClientConfig) //nolint:forcetypeassert // ours
					if err != nil {
						t.Fatal(server.Address, err)
					}
					defer func() { _ = kept.Close() }()
				}
			}
			_ = a.Listener.Close()
			a.CloseClientConnections()
			meanwhile(w)
			soon(t, "the front knows", func() bool { return !f.isReady(a.address) })
			listener, err := net.Listen("tcp", a.address.String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			go func() { // it accepts connections, and does not answer yet
				for {
					if _, err := listener.Accept(); err != nil {
						return
					}
				}
			}()
			for range 20 {
				if got, err := w.ask(); got != "b" {
					t.Fatalf("%q, %v", got, err)
				}
			}
		})
	}
}

// While no server is ready a connection waits for one; then it goes to any that accepts it; then it is reset.
func TestNoServerIsReady(t *testing.T) {
	a := newBackend(t, "a")
	a.unready.Store(true)
	w := newWorld(t, frontservers.Server{Address: a.address})
	f, _, _ := w.start(t)
	soon(t, "the front listens", func() bool {
		c, err := net.Dial("tcp", w.config.Listen.String())
		return err == nil && c.Close() == nil
	})
	began := time.Now()
	if got, err := w.ask(); got != "a" || time.Since(began) < patience {
		t.Errorf("%q, %v after %v", got, err, time.Since(began))
	}
	answer := make(chan string, 1)
	go func() {
		got, err := w.ask()
		answer <- fmt.Sprint(got, err)
	}()
	a.unready.Store(false)
	if got := <-answer; got != "a<nil>" {
		t.Error(got)
	}
	a.Close()
	soon(t, "a is gone", func() bool { return !f.isReady(a.address) })
	if _, err := w.ask(); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("no server: %v", err)
	}
}

// A connection that comes while the only server starts again is held, and answered by the new one.
func TestConnectionsAreHeld(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	f, _, _ := w.start(t)
	soon(t, "the server is ready", func() bool { return f.isReady(a.address) })
	a.Close()
	answer := make(chan string, 1)
	go func() {
		got, err := w.ask()
		answer <- fmt.Sprint(got, err)
	}()
	soon(t, "the connection is held", func() bool { return len(f.slots) == 1 })
	again := newBackend(t, "again")
	w.tell(t, frontservers.Server{Address: again.address})
	if got := <-answer; got != "again<nil>" {
		t.Error(got)
	}
}

// A front waits while another process has its address.
func TestTheAddressIsBusy(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	other, err := net.Listen("tcp", w.config.Listen.String())
	if err != nil {
		t.Fatal(err)
	}
	_, _, ended := w.start(t)
	select {
	case err := <-ended:
		t.Fatalf("the front ended: %v", err)
	case <-time.After(3 * busyEvery):
	}
	_ = other.Close()
	soon(t, "the front serves", func() bool { got, _ := w.ask(); return got == "a" })
}

// A front takes the listener over from another one while clients connect: none is refused, and a connection through the
// old one goes on.
func TestHandover(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	old, _, ended := w.start(t)
	soon(t, "the server is ready", func() bool { return old.isReady(a.address) })
	kept, err := tls.Dial("tcp", w.config.Listen.String(), w.client.Transport.(*http.Transport).TLSClientConfig) //nolint:forcetypeassert // ours
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()

	var clients sync.WaitGroup
	var asked atomic.Int64
	stop := make(chan struct{})
	for range 4 {
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got, err := w.ask(); got != "a" {
					t.Errorf("during the handover: %q, %v", got, err)
					return
				}
				asked.Add(1)
			}
		})
	}
	for turn := range 5 {
		next, _, nextEnded := w.start(t)
		soon(t, fmt.Sprintf("turn %d: the next front serves", turn), func() bool { return next.isReady(a.address) })
		if turn > 0 { // the first one has a connection
			if err := <-ended; err != nil {
				t.Errorf("turn %d: the front before: %v", turn, err)
			}
			ended = nextEnded
			continue
		}
		before := asked.Load()
		soon(t, "more is asked", func() bool { return asked.Load() > before+20 })
		if _, err := io.WriteString(kept, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := kept.Read(make([]byte, 1)); err != nil {
			t.Errorf("the kept connection: %v", err)
		}
		select {
		case err := <-ended:
			t.Errorf("the old front ended before its connection: %v", err)
		default:
		}
		_ = kept.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended = nextEnded
	}
	close(stop)
	clients.Wait()
}

func TestNew(t *testing.T) {
	good := newWorld(t).config
	for name, change := range map[string]func(*Config){
		"address":   func(c *Config) { c.Listen = netip.MustParseAddrPort("0.0.0.0:1") },
		"port":      func(c *Config) { c.Listen = at(0) },
		"authority": func(c *Config) { c.Authority = "" },
		"log":       func(c *Config) { c.Log = nil },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("no %s is taken", name)
		}
	}
}

// askOver asks over a connection of the test's own.
func (w *world) askOver(connection net.Conn) (string, error) {
	secured := w.client.Transport.(*http.Transport).TLSClientConfig.Clone() //nolint:forcetypeassert // ours
	secured.ServerName = w.config.Listen.Addr().String()
	c := tls.Client(connection, secured)
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	return string(raw), err
}

// pipe is a TCP connection with both its ends.
func pipe(t *testing.T) (client, server *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	client, err = dial(t.Context(), netip.MustParseAddrPort(listener.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	c, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server = c.(*net.TCPConn) //nolint:forcetypeassert // of a TCP listener
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

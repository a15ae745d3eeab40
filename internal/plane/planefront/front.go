// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/plane/frontservers"
	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/watchfile"
)

const (
	// maxConnections of a front are for 500 nodes with a dozen connections each, and as many again. Each takes two file
	// descriptors.
	maxConnections = 12288
	// dialTimeout is how long a server may take to accept. Everything is on this host.
	dialTimeout = time.Second
	// patience is how long a connection waits for a server that is ready before it is offered to all, retryEvery how often
	// servers are tried that do not accept, and hold how long a connection waits in all. It is less than a client of
	// upstream's gives a TLS handshake (10 s), and more than a kube-apiserver takes to start again: the watches of all
	// clients go on by their next connection, where one that is reset lists everything anew.
	patience   = 2 * time.Second
	retryEvery = 50 * time.Millisecond
	hold       = 8 * time.Second
	// busyFor is how long the published address may be another process's, as that of a kube-apiserver of a Muster from
	// before, which listens there until it is replaced; busyEvery is the pause between two tries.
	busyFor   = time.Minute
	busyEvery = 100 * time.Millisecond
	// acceptPause is the time until another try when the process has no file descriptors left.
	acceptPause = 50 * time.Millisecond
	// lookAgain is how often the file of servers is read even if nothing tells that it changed.
	lookAgain = 5 * time.Second
	// leaveAfter is how long a front that was replaced keeps connections.
	leaveAfter = 24 * time.Hour
)

// Config is what a front works with.
type Config struct {
	// Listen is the published address of the plane.
	Listen netip.AddrPort
	// Servers is the path of the file of servers.
	Servers string
	// Authority is the path of the certificates by which servers are known.
	Authority string
	// Socket is the path of the unix socket at which the front answers /readyz and /metrics (package socketdir). In its
	// directory is another one, at which the next front takes the listener over.
	Socket string
	Log    *slog.Logger
}

// Front passes connections on.
type Front struct {
	config  Config
	pool    *pool
	metrics *metrics
	asker   *asker
	look    chan struct{} // probe now
	slots   chan struct{}
	open    sync.WaitGroup // connections

	answerWithin time.Duration // the constant; tests have less patience
}

// New checks the configuration.
func New(c Config) (*Front, error) {
	if !c.Listen.Addr().IsLoopback() || c.Listen.Port() == 0 {
		return nil, fmt.Errorf("the front listens at %s: it must be a port on loopback", c.Listen)
	}
	if c.Servers == "" || c.Authority == "" || c.Socket == "" || c.Log == nil {
		return nil, errors.New("the front needs a file of servers, an authority, a socket and a log")
	}
	f := &Front{config: c, pool: newPool(), asker: &asker{authority: c.Authority}, look: make(chan struct{}, 1), slots: make(chan struct{}, maxConnections), answerWithin: answerWithin}
	f.metrics = newMetrics(f.pool)
	return f, nil
}

// Run passes connections on until the context ends or another front has taken the listener over. In the second case it
// returns with its last connection, or after a day.
func (f *Front) Run(ctx context.Context) error {
	if err := socketdir.MakeDir(f.config.Socket); err != nil {
		return err
	}
	// A front that knows no servers takes no listener from one that does.
	if err := f.take(f.servers()); err != nil {
		return err
	}
	listener, err := f.listen(ctx)
	if ctx.Err() != nil {
		if err == nil {
			_ = listener.Close()
		}
		return nil
	}
	if err != nil {
		return err
	}
	return f.work(ctx, listener)
}

// work is Run with a listener.
func (f *Front) work(ctx context.Context, listener net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	defer func() { _ = listener.Close() }()
	serving, stop := context.WithCancel(ctx) // ends when another front takes over
	defer stop()
	connections, cut := context.WithCancel(ctx) // ends with the last connection
	defer cut()
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cut()
	defer stop()

	parts.Go(func() { f.follow(connections, f.servers()) })
	parts.Go(func() { f.keepProbing(connections) })
	failed := make(chan error, 2)
	parts.Go(func() {
		status := make(chan struct{})
		parts.Go(func() {
			defer close(status)
			if err := f.serveStatus(serving); err != nil {
				failed <- err
				_ = listener.Close()
			}
		})
		err := f.giveAway(serving, listener, func() {
			stop()
			<-status
			_ = listener.Close()
		})
		if err != nil {
			failed <- err
		}
		_ = listener.Close()
	})

	f.config.Log.Info("front serves", "address", f.config.Listen.String())
	// The last connection has come when accept has returned: only then is there a last one to wait for.
	err := f.accept(connections, listener)
	stop()
	select {
	case err = <-failed:
	default:
	}
	if err == nil && ctx.Err() == nil {
		f.config.Log.Info("another front has taken over", "connections", len(f.slots))
		f.leave(ctx)
	}
	cut()
	f.open.Wait()
	return err
}

// leave waits for the last connection.
func (f *Front) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveAfter)
	defer cancel()
	last := make(chan struct{})
	go func() {
		f.open.Wait()
		close(last)
	}()
	select {
	case <-last:
	case <-ctx.Done():
		f.config.Log.Warn("connections are cut", "connections", len(f.slots), "after", leaveAfter)
	}
}

// servers is the file of servers.
func (f *Front) servers() watchfile.File {
	return watchfile.File{
		Path: f.config.Servers, What: "file of servers", Poll: lookAgain, Quiet: time.Millisecond, MaxSize: frontservers.MaxSize, Logger: f.config.Log,
	}
}

// follow takes the file of servers over whenever it changes, until the context ends. While it cannot be read the servers
// are as they were, and the log says so once.
func (f *Front) follow(ctx context.Context, file watchfile.File) {
	told := ""
	file.Run(ctx, func() {
		err := f.take(file)
		if err != nil && err.Error() != told {
			f.config.Log.Error("the file of servers is not used, and the servers stay", "error", err)
		}
		told = ""
		if err != nil {
			told = err.Error()
		}
	})
}

// take takes the file of servers over once.
func (f *Front) take(file watchfile.File) error {
	raw, err := file.Read()
	if err != nil {
		return fmt.Errorf("reading the file of servers: %w", err)
	}
	servers, err := frontservers.Read(raw)
	if err != nil {
		return err
	}
	f.pool.set(servers)
	select {
	case f.look <- struct{}{}:
	default:
	}
	return nil
}

// accept passes connections on until the listener is closed, which is not an error.
func (f *Front) accept(ctx context.Context, listener net.Listener) error {
	for {
		client, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ECONNABORTED) {
			f.config.Log.Warn("cannot accept a connection", "error", err)
			time.Sleep(acceptPause)
			continue
		}
		if err != nil {
			return fmt.Errorf("accepting connections: %w", err)
		}
		select {
		case f.slots <- struct{}{}:
		default:
			f.metrics.refused.WithLabelValues(refusedLimit).Inc()
			reset(client)
			continue
		}
		f.open.Go(func() {
			defer func() { <-f.slots }()
			f.serve(ctx, client)
		})
	}
}

// serve passes one connection to a server.
func (f *Front) serve(ctx context.Context, client net.Conn) {
	server, done := f.connect(ctx)
	if server == nil {
		f.metrics.refused.WithLabelValues(refusedNoServer).Inc()
		reset(client)
		return
	}
	defer done()
	f.metrics.connections.Inc()
	join(ctx, client.(*net.TCPConn), server) //nolint:forcetypeassert // of a TCP listener
}

// connect offers a connection to servers until one accepts; nil if none does in time. Nothing of the client's has been
// read yet, so any of them will do.
func (f *Front) connect(ctx context.Context) (*net.TCPConn, func()) {
	ctx, cancel := context.WithTimeout(ctx, hold)
	defer cancel()
	late, toAll := time.After(patience), false
	for {
		order, ready, changed := f.pool.choose()
		var again <-chan time.Time
		if ready || toAll {
			for _, address := range order {
				if server, err := dial(ctx, address); err == nil {
					return server, f.pool.took(address)
				}
			}
			again = time.After(retryEvery)
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-late:
			toAll = true
		case <-changed:
		case <-again:
		}
	}
}

func dial(ctx context.Context, address netip.AddrPort) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: -1}
	return dialer.DialTCP(ctx, "tcp", netip.AddrPort{}, address)
}

// reset ends a connection in a way that no client takes for an answer.
func reset(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = connection.Close()
}

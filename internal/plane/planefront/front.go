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
	"golang.org/x/time/rate"

	"muster.dev/muster/internal/platform/handover"
	"muster.dev/muster/internal/platform/socketdir"
)

const (
	// maxConnections of a front are for 500 nodes with a dozen connections each, and as many again. Each takes two file
	// descriptors. A process that may have fewer passes fewer on, and keeps spared descriptors: for probes, its own
	// sockets and the next front.
	maxConnections = 12288
	spared         = 128
	// busyFor is how long the published address may be another process's, as that of a kube-apiserver of a Muster from
	// before, which listens there until it is replaced; busyEvery is the pause between two tries.
	busyFor   = time.Minute
	busyEvery = 100 * time.Millisecond
	// againAfter is the time until a part of a front that failed begins anew.
	againAfter = time.Second
	// seldom is how often the log may say what clients or the host can have a front say again and again.
	seldom = time.Minute
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

	probeEvery time.Duration // usualProbe; tests have other ones
	slots      chan struct{}
	open       sync.WaitGroup // connections

	answerWithin time.Duration // that of another front; tests have less patience

	noAccept, noPlace rate.Sometimes // lines of the log
}

// New checks the configuration.
func New(c Config) (*Front, error) {
	if !c.Listen.Addr().IsLoopback() || c.Listen.Port() == 0 {
		return nil, fmt.Errorf("the front listens at %s: it must be a port on loopback", c.Listen)
	}
	if c.Servers == "" || c.Authority == "" || c.Socket == "" || c.Log == nil {
		return nil, errors.New("the front needs a file of servers, an authority, a socket and a log")
	}
	places, err := places()
	if err != nil {
		return nil, err
	}
	f := &Front{
		config: c, pool: newPool(), look: make(chan struct{}, 1), probeEvery: usualProbe, slots: make(chan struct{}, places), answerWithin: handover.Patience,
		asker:    &asker{authority: c.Authority, timeout: probeTimeout, log: c.Log, unread: rate.Sometimes{Interval: seldom}},
		noAccept: rate.Sometimes{Interval: seldom}, noPlace: rate.Sometimes{Interval: seldom},
	}
	f.metrics = newMetrics(f.pool)
	return f, nil
}

// places is how many connections this process has file descriptors for.
func places() (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("reading the limit of open files: %w", err)
	}
	if limit.Cur <= spared+1 {
		return 0, fmt.Errorf("the limit of open files is %d: a front needs more than %d", limit.Cur, spared+1)
	}
	return int(min(maxConnections, (limit.Cur-spared)/2)), nil
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
	status := make(chan struct{})
	parts.Go(func() {
		defer close(status)
		f.keep(serving, "answering at the socket of the front", f.serveStatus)
	})
	parts.Go(func() {
		f.keep(serving, "offering the listener to the next front", func(ctx context.Context) error {
			return f.giveAway(ctx, listener, func() {
				stop()
				<-status
				_ = listener.Close()
			})
		})
	})

	f.config.Log.Info("front serves", "address", f.config.Listen.String(), "places", cap(f.slots))
	// The last connection has come when accept has returned: only then is there a last one to wait for.
	err := f.accept(connections, listener)
	stop()
	if err == nil && ctx.Err() == nil {
		f.config.Log.Info("another front has taken over", "connections", len(f.slots))
		f.leave(ctx)
	}
	cut()
	f.open.Wait()
	return err
}

// keep has a part of a front work until the context ends. A part that fails, as on a full disk, does not end the front
// and the connections with it.
func (f *Front) keep(ctx context.Context, what string, part func(context.Context) error) {
	said := rate.Sometimes{Interval: seldom}
	for ctx.Err() == nil {
		err := part(ctx)
		if ctx.Err() != nil {
			return
		}
		said.Do(func() { f.config.Log.Error("a part of the front begins anew", "part", what, "error", err) })
		pause(ctx, againAfter)
	}
}

// pause waits for a while, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// leave waits for the last connection.
func (f *Front) leave(ctx context.Context) {
	last := make(chan struct{})
	go func() {
		f.open.Wait()
		close(last)
	}()
	select {
	case <-last:
	case <-ctx.Done(): // it was told to end
	case <-time.After(leaveAfter):
		f.config.Log.Warn("connections are cut", "connections", len(f.slots), "after", leaveAfter)
	}
}

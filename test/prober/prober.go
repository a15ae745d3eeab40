// SPDX-License-Identifier: Apache-2.0

// Package prober asks an API server without a pause, and counts what fails. It has connections of its own below the
// clients that repeat requests by themselves (net/http, client-go), so that a connection that is cut is a failure. It is
// an open loop: a request begins at its time whether or not those before are answered, and how long it took is counted
// from that time.
//
//	doors    where the API server answers: its front's port, its address in the VPC
//	ways     a new connection each by HTTP/1.1; one that is kept, by HTTP/2
//	calls    GET of a Lease, consistent LIST, PUT of a Lease with the next number
//	watches  of these Leases, by all doors and ways: a number that is missing, or comes twice, is a failure, and so is one
//	         that comes more than 20 s after its write has begun
//	more     whatever else is asked, once a second each, by the first door over its connection that is kept
//
// Each door, way and call is a row of its own in the report. A transport error, a status that is not of success, and an
// answer after more than 20 s are failures. 429 with Retry-After is counted apart, and repeated once after that time,
// with which the row counts it.
//
// One more request is repeated once, and counted with them: that of which a server that leaves has said that it has not
// looked at it (RFC 9113, section 6.8: its stream is above the last one that a GOAWAY names). A client cannot know of
// such a GOAWAY before it asks, and no request is done twice by repeating it. Nothing else is repeated, in particular
// nothing that was cut: a kept connection that ends without a GOAWAY fails what it carried, and the request after it
// even if it carried none; and so does a watch that is not ended by the server. A watch that the server has ended goes
// on after its last event, over another connection.
package prober

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// patience is how long a request may take, and so may the one that repeats it.
	patience = 20 * time.Second
	// ahead is how long writes may take before there is no Lease any more to begin the next one of: at most one write of
	// each is under way, as its watches could not tell a gap from writes that overtook each other.
	ahead = 5 * time.Second
	// late is how long after the last write a watch may tell of it.
	late = 5 * time.Second
	// moreEvery is the pause between two calls of Config.More.
	moreEvery = time.Second
)

// The ways to a door.
const (
	newConnection  = "new connection"
	keptConnection = "kept connection"
)

// Config is what a prober asks.
type Config struct {
	// Doors of the API server, at least one.
	Doors []Door
	// TLS with the client's certificate. Its protocols are the prober's.
	TLS *tls.Config
	// Every is the pause between two requests of a row.
	Every time.Duration
	// Watches is how many there are.
	Watches int
	// Namespace of the prober's own. It must be there.
	Namespace string
	// More is what is asked besides.
	More []Call
}

// Door is where an API server answers.
type Door struct {
	// Name in the report.
	Name string
	// Address is the host and the port.
	Address string
	// Dial makes a connection to the address; nil for one from the network of the process.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Call is a request besides those of Leases.
type Call struct {
	// Name in the report.
	Name string
	// Method and Path of the request, with its query.
	Method, Path string
	// Body of the request, as JSON.
	Body string
	// Says is a part of the answer; any answer will do if it is empty.
	Says string
}

// Prober asks until it is stopped.
type Prober struct {
	config  Config
	began   time.Time
	rows    []*row
	watches []*watch
	ways    []*way
	asked   atomic.Int64

	asking, watching  sync.WaitGroup
	endAsking, endAll context.CancelFunc
	stop              sync.Once

	mu       sync.Mutex
	ended    time.Time
	failed   map[string]int // by what happened
	failures []string
}

// Start begins to ask. The connections that are kept, and the watches, are there when it returns.
func Start(ctx context.Context, c Config) (*Prober, error) {
	all, endAll := context.WithCancel(ctx)
	asking, endAsking := context.WithCancel(all)
	p := &Prober{config: c, endAsking: endAsking, endAll: endAll, failed: map[string]int{}}
	leases := p.plan()
	if err := p.prepare(all, leases); err != nil {
		p.end()
		return nil, err
	}
	p.began = time.Now()
	for n, r := range p.rows {
		first := p.began.Add(r.every * time.Duration(n) / time.Duration(len(p.rows))) // not all at once
		p.asking.Go(func() { r.loop(asking, all, first) })
	}
	return p, nil
}

// plan makes the rows and the watches, and returns the Leases.
func (p *Prober) plan() (leases []*lease) {
	objects := "/apis/coordination.k8s.io/v1/namespaces/" + p.config.Namespace + "/leases"
	for _, door := range p.config.Doors {
		for _, name := range []string{newConnection, keptConnection} {
			w := newWay(p.config, door, name)
			p.ways = append(p.ways, w)
			own := make(chan *lease, max(int(ahead/p.config.Every), 1))
			for range cap(own) {
				l := newLease(objects, len(leases), p.config.Watches)
				leases = append(leases, l)
				own <- l
			}
			p.rows = append(p.rows,
				p.row(w, "GET", p.config.Every, Call{Method: http.MethodGet, Path: leases[len(leases)-1].path()}.ask),
				p.row(w, "LIST", p.config.Every, Call{Method: http.MethodGet, Path: "/api/v1/namespaces/" + p.config.Namespace + "/configmaps"}.ask),
				p.row(w, "PUT", p.config.Every, writer(own)),
			)
		}
	}
	for _, call := range p.config.More {
		p.rows = append(p.rows, p.row(p.ways[1], call.Name, moreEvery, call.ask))
	}
	for n := range p.config.Watches {
		w := &watch{prober: p, way: p.ways[n%len(p.ways)], number: n, collection: objects, last: map[string]int64{}}
		for at := n; at < len(leases); at += p.config.Watches {
			w.leases = append(w.leases, leases[at])
		}
		p.watches = append(p.watches, w)
	}
	return leases
}

// prepare makes the connections that are kept, the Leases, and the watches.
func (p *Prober) prepare(ctx context.Context, leases []*lease) error {
	for _, w := range p.ways {
		if k, ok := w.RoundTripper.(*kept); ok {
			if _, err := k.more(); err != nil { //nolint:contextcheck // a connection is for all that wait for one
				return fmt.Errorf("%s: %w", w.door.Name, err)
			}
		}
	}
	making, done := errgroup.WithContext(ctx)
	making.SetLimit(8)
	for _, l := range leases {
		making.Go(func() error {
			_, err := l.write(done, p.ways[1])
			return err
		})
	}
	if err := making.Wait(); err != nil {
		return fmt.Errorf("making Leases: %w", err)
	}
	for _, w := range p.watches {
		if err := w.begin(ctx); err != nil {
			return err
		}
		p.watching.Go(func() { w.follow(ctx) })
	}
	return nil
}

// Asked is how many requests have ended so far.
func (p *Prober) Asked() int { return int(p.asked.Load()) }

// Stopped reports whether Stop was called.
func (p *Prober) Stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.ended.IsZero()
}

// Stop ends the prober, once the requests that are under way have ended and the watches have told of every write, and
// returns what it has seen.
func (p *Prober) Stop() Report {
	p.stop.Do(func() {
		p.endAsking()
		p.mu.Lock()
		p.ended = time.Now()
		p.mu.Unlock()
		p.asking.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), late)
		defer cancel()
		for _, w := range p.watches {
			w.catchUp(ctx)
		}
		p.end()
	})
	return p.Report()
}

func (p *Prober) end() {
	p.endAll()
	for _, w := range p.ways {
		w.Close()
	}
	p.watching.Wait()
}

// fail counts a failure by what happened, and keeps the first ones of each.
func (p *Prober) fail(happened, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed[happened]++
	if p.failed[happened] <= maxFailures {
		p.failures = append(p.failures, fmt.Sprintf("at %s, %s: %s", time.Since(p.began).Round(time.Millisecond), happened, what))
	}
}

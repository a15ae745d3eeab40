// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// direct speaks HTTP/1.1 on connections of its own, in the goroutine that asks. Go's transport has two more for each
// connection, and handing questions and answers to and fro is most of what it costs (docs/benchmarks.md).
type direct struct {
	dialer    net.Dialer
	tls       *tls.Config
	header    string // as it is sent, from the end of Host on
	most      int    // connections to a host at once; four times as many may be idle in all
	mu        sync.Mutex
	hosts     map[url.URL]*pool
	idle      int
	sweeping  bool
	sweepTime time.Duration // after which a connection is closed that nobody used
}

// pool are the connections to one host.
type pool struct {
	at     url.URL
	users  int           // requests that have or wait for a place
	places chan struct{} // has one for each connection that is used
	idle   []*connection // the one that was used last is the last
}

func newDirect(config *tls.Config, connections int, header http.Header) *direct {
	config.NextProtos = []string{"http/1.1"}
	var b strings.Builder
	b.WriteString("\r\n")
	_ = header.Write(&b) // sorted, line breaks in values replaced; a builder takes all
	b.WriteString("\r\n")
	return &direct{
		dialer: net.Dialer{Timeout: dialTime, KeepAlive: 30 * time.Second}, tls: config, header: b.String(), most: connections,
		hosts: map[url.URL]*pool{}, sweepTime: idleTime,
	}
}

// errUnfit is about what cannot be a part of a request. Nobody makes such tokens: their form was checked.
var errUnfit = errors.New("the token has characters that no request has")

func (d *direct) ask(ctx context.Context, to *url.URL, host, query string) (response, error) {
	if !visible(host) || !visible(query) {
		return response{}, errUnfit
	}
	at := url.URL{Scheme: to.Scheme, Host: to.Host}
	p, err := d.enter(ctx, at)
	if err != nil {
		return response{}, err
	}
	defer d.leave(p)
	for again := false; ; again = true {
		c, err := d.connect(ctx, p, again)
		if err != nil {
			return response{}, err
		}
		r, err := c.ask(ctx, host, query, d.header)
		if err == nil && c.reusable {
			d.keep(p, c)
			return r, nil
		}
		_ = c.net.Close() // nothing was left to say
		// The other end may have just closed an idle connection. Asking twice changes nothing.
		if err == nil || again || !c.used || c.answered() || ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) {
			return r, err
		}
	}
}

// visible tells that there are no spaces, line breaks and the like.
func visible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] >= 0x7f {
			return false
		}
	}
	return true
}

// enter waits until there may be another connection to a host.
func (d *direct) enter(ctx context.Context, at url.URL) (*pool, error) {
	d.mu.Lock()
	p := d.hosts[at]
	if p == nil {
		p = &pool{at: at, places: make(chan struct{}, d.most)}
		d.hosts[at] = p
	}
	p.users++
	d.mu.Unlock()
	select {
	case p.places <- struct{}{}:
		return p, nil
	default:
	}
	select {
	case p.places <- struct{}{}:
		return p, nil
	case <-ctx.Done():
		d.mu.Lock()
		defer d.mu.Unlock()
		p.users--
		d.forget(p)
		return nil, fmt.Errorf("waiting for one of %d connections: %w", d.most, ctx.Err())
	}
}

func (d *direct) leave(p *pool) {
	<-p.places
	d.mu.Lock()
	defer d.mu.Unlock()
	p.users--
	d.forget(p)
}

// forget drops a pool that has nothing: tokens name hosts, and not all of those exist.
func (d *direct) forget(p *pool) {
	if p.users == 0 && len(p.idle) == 0 {
		delete(d.hosts, p.at)
	}
}

// connect takes an idle connection, or makes one.
func (d *direct) connect(ctx context.Context, p *pool, fresh bool) (*connection, error) {
	for !fresh {
		d.mu.Lock()
		last := len(p.idle) - 1
		if last < 0 {
			d.mu.Unlock()
			break
		}
		c := p.idle[last]
		p.idle[last], p.idle = nil, p.idle[:last]
		d.idle--
		d.mu.Unlock()
		if c.quiet() {
			c.used = true
			return c, nil
		}
		_ = c.net.Close() // the other end has, or says what nobody asked for
	}
	return d.dial(ctx, p.at)
}

func (d *direct) dial(ctx context.Context, at url.URL) (*connection, error) {
	port := at.Port()
	if port == "" {
		port = at.Scheme // net knows both by name
	}
	raw, err := d.dialer.DialContext(ctx, "tcp", net.JoinHostPort(at.Hostname(), port))
	if err != nil {
		return nil, err
	}
	if at.Scheme == "http" {
		return newConnection(raw, raw)
	}
	config := d.tls.Clone()
	config.ServerName = at.Hostname()
	secured := tls.Client(raw, config)
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // nothing was said
		return nil, err
	}
	return newConnection(raw, secured)
}

// keep puts a connection back. The one that nobody used the longest makes room.
func (d *direct) keep(p *pool, c *connection) {
	c.since = time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	p.idle = append(p.idle, c)
	if d.idle++; d.idle > 4*d.most {
		oldest := p
		for _, other := range d.hosts {
			if len(other.idle) > 0 && other.idle[0].since.Before(oldest.idle[0].since) {
				oldest = other
			}
		}
		d.drop(oldest, 1)
	}
	if !d.sweeping {
		d.sweeping = true
		time.AfterFunc(d.sweepTime, d.sweep)
	}
}

// drop closes the first n connections.
func (d *direct) drop(p *pool, n int) {
	for _, c := range p.idle[:n] {
		_ = c.net.Close() // nobody uses it
	}
	p.idle = slices.Delete(p.idle, 0, n)
	d.idle -= n
	d.forget(p)
}

// sweep closes what nobody used for a while, and comes again while there are others.
func (d *direct) sweep() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropBefore(time.Now().Add(-d.sweepTime))
	d.sweeping = d.idle > 0
	if d.sweeping {
		time.AfterFunc(d.sweepTime, d.sweep)
	}
}

func (d *direct) dropBefore(end time.Time) {
	for _, p := range d.hosts {
		n := 0
		for n < len(p.idle) && !p.idle[n].since.After(end) {
			n++
		}
		d.drop(p, n)
	}
}

func (d *direct) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropBefore(time.Now())
}

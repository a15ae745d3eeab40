// SPDX-License-Identifier: Apache-2.0

// Package prober asks an API server without a pause, and counts what fails. It has connections of its own below the
// clients that repeat requests by themselves (net/http, client-go), so that a connection that is cut is a failure. It is
// an open loop: a request begins at its time whether or not those before are answered.
//
//	a new connection each   GET, consistent LIST, PUT
//	one that is kept        GET, consistent LIST, PUT, by HTTP/2
//	a watch                 of numbered writes: a number that is missing, or comes twice, is a failure
//
// A transport error and a status of 500 and more are failures. 429 with Retry-After is counted apart, and repeated once
// after that time; so is a request of which a server that leaves says that it has not looked at it. A server that leaves
// says so: a kept connection that ends otherwise was cut, which is a failure, as is a watch that is not ended by the
// server. A watch that the server has ended goes on after its last event, over another connection.
package prober

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"sync"
	"time"
)

// patience is how long a request may take.
const patience = 20 * time.Second

// Config is what a prober asks.
type Config struct {
	// URL of the API server, whose address is dialled.
	URL *url.URL
	// TLS with the client's certificate. Its protocols are the prober's.
	TLS *tls.Config
	// Every is the pause between two requests of a kind on a way.
	Every time.Duration
	// Object is the path of an object of the prober's own without a kind that anybody else changes, such as a ConfigMap;
	// Collection is that of all of them. Both must be there.
	Object, Collection string
	// Body renders the object with a number, and Number reads it.
	Body   func(number int) []byte
	Number func(object json.RawMessage) (int, error)
}

// Report is what a prober has seen.
type Report struct {
	// Asked is the number of requests, Repeated those that were refused with 429 first, and Watched the events of the watch,
	// which was begun again Resumed times.
	Asked, Repeated, Watched, Resumed int
	// Longest is how long the request took that took longest.
	Longest time.Duration
	// Failures are the first of those that there were, and Failed is their number.
	Failures []string
	Failed   int
}

// maxFailures are kept.
const maxFailures = 20

// Prober asks until it is stopped.
type Prober struct {
	config Config
	end    context.CancelFunc
	parts  sync.WaitGroup

	mu     sync.Mutex
	report Report
}

// Start begins to ask. The connection that is kept, and the watch, are there when it returns.
func Start(ctx context.Context, c Config) (*Prober, error) {
	kept, watch := &kept{config: c}, &kept{config: c}
	ctx, cancel := context.WithCancel(ctx)
	p := &Prober{config: c, end: func() {
		cancel()
		kept.Close()
		watch.Close()
	}}
	_, err := kept.more()
	if err == nil {
		var events io.ReadCloser
		if events, err = p.watch(ctx, watch, ""); err == nil {
			p.parts.Go(func() { p.follow(ctx, watch, events) })
		}
	}
	if err != nil {
		p.end()
		return nil, err
	}
	p.parts.Go(func() { p.write(ctx, kept) })
	p.parts.Go(func() { p.ask(ctx, map[string]http.RoundTripper{"kept connection": kept, "new connection": fresh{c}}) })
	return p, nil
}

// Report is what was seen so far.
func (p *Prober) Report() Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.report
}

// Stop ends the prober and returns what it has seen. Requests that are not answered yet are not counted.
func (p *Prober) Stop() Report {
	p.end()
	p.parts.Wait()
	return p.Report()
}

// fresh asks by HTTP/1.1 over a connection of its own for each request.
type fresh struct{ config Config }

// RoundTrip implements http.RoundTripper.
func (f fresh) RoundTrip(r *http.Request) (*http.Response, error) {
	config := f.config.TLS.Clone()
	config.NextProtos = []string{"http/1.1"}
	raw, err := (&tls.Dialer{Config: config}).DialContext(r.Context(), "tcp", f.config.URL.Host)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(r.Context(), func() { _ = raw.Close() })()
	defer func() { _ = raw.Close() }()
	r.Header.Set("Connection", "close")
	if err := r.Write(raw); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(raw), r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, err
}

// ask asks by all ways, each time anew, until the context ends.
func (p *Prober) ask(ctx context.Context, ways map[string]http.RoundTripper) {
	var requests sync.WaitGroup
	defer requests.Wait()
	tick := time.NewTicker(p.config.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for name, way := range ways {
			requests.Go(func() { p.request(ctx, way, name, http.MethodGet, p.config.Object, nil) })
			requests.Go(func() { p.request(ctx, way, name, http.MethodGet, p.config.Collection, nil) })
		}
	}
}

// write writes numbers, one after the other, by new connections and by the kept one in turn.
func (p *Prober) write(ctx context.Context, kept http.RoundTripper) {
	tick := time.NewTicker(p.config.Every)
	defer tick.Stop()
	for number := 1; ; number++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		name, way := "kept connection", kept
		if number%2 == 0 {
			name, way = "new connection", fresh{p.config}
		}
		p.request(ctx, way, name, http.MethodPut, p.config.Object, p.config.Body(number))
	}
}

// request sends one request, and notes how it was answered.
func (p *Prober) request(ctx context.Context, way http.RoundTripper, name, method, at string, body []byte) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	code, after, err := p.send(ctx, way, method, at, body)
	if err == nil && code == http.StatusTooManyRequests && after > 0 || notProcessed(err) {
		p.count(func(r *Report) { r.Repeated++ })
		select {
		case <-ctx.Done():
		case <-time.After(after):
		}
		code, _, err = p.send(ctx, way, method, at, body)
	}
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return // it is over
	}
	if err == nil && code != http.StatusOK {
		err = errors.New(http.StatusText(code))
	}
	p.count(func(r *Report) { r.Asked, r.Longest = r.Asked+1, max(r.Longest, time.Since(began)-after) })
	if err != nil {
		p.fail(fmt.Sprintf("%s %s by a %s, after %s: %v", method, at, name, time.Since(began).Round(time.Millisecond), err))
	}
}

func (p *Prober) send(ctx context.Context, way http.RoundTripper, method, at string, body []byte) (code int, after time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, method, p.config.URL.JoinPath(at).String(), bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := way.RoundTrip(request)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return 0, 0, err
	}
	seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
	return answer.StatusCode, time.Duration(seconds) * time.Second, nil
}

// watch begins to watch the object, from what it is now or after a version.
func (p *Prober) watch(ctx context.Context, way http.RoundTripper, after string) (io.ReadCloser, error) {
	u := p.config.URL.JoinPath(p.config.Collection)
	u.RawQuery = url.Values{"watch": {"true"}, "fieldSelector": {"metadata.name=" + path.Base(p.config.Object)}, "resourceVersion": {after}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := way.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		if answer.StatusCode == http.StatusTooManyRequests {
			return nil, &tooMany{}
		}
		return nil, fmt.Errorf("watching: %s", answer.Status)
	}
	return answer.Body, nil
}

// follow reads numbers from the watch, and begins it again each time that the server has ended it.
func (p *Prober) follow(ctx context.Context, way http.RoundTripper, events io.ReadCloser) {
	defer func() { _ = events.Close() }()
	decoder, version := json.NewDecoder(events), ""
	for last := -1; ; {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		err := decoder.Decode(&event)
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && ctx.Err() == nil {
			_ = events.Close()
			if events, err = p.resume(ctx, way, version); err == nil {
				decoder = json.NewDecoder(events)
				p.count(func(r *Report) { r.Resumed++ })
				continue
			}
			events = http.NoBody
		}
		var number int
		if err == nil {
			number, err = p.config.Number(event.Object)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.fail("the watch: " + err.Error())
			return
		}
		if last >= 0 && number != last+1 {
			p.fail(fmt.Sprintf("the watch: %d comes after %d", number, last))
		}
		last = number
		var object struct {
			Metadata struct{ ResourceVersion string }
		}
		_ = json.Unmarshal(event.Object, &object) // Number could read it
		version = object.Metadata.ResourceVersion
		p.count(func(r *Report) { r.Watched++ })
	}
}

// resume begins the watch again after a version, and repeats that once if it is refused with 429.
func (p *Prober) resume(ctx context.Context, way http.RoundTripper, version string) (io.ReadCloser, error) {
	events, err := p.watch(ctx, way, version)
	if refused := (*tooMany)(nil); errors.As(err, &refused) || notProcessed(err) {
		p.count(func(r *Report) { r.Repeated++ })
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		events, err = p.watch(ctx, way, version)
	}
	return events, err
}

// tooMany is of a watch that was refused with 429.
type tooMany struct{}

func (*tooMany) Error() string { return http.StatusText(http.StatusTooManyRequests) }

func (p *Prober) fail(what string) {
	p.count(func(r *Report) {
		r.Failed++
		if len(r.Failures) < maxFailures {
			r.Failures = append(r.Failures, what)
		}
	})
}

func (p *Prober) count(change func(*Report)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.report)
}

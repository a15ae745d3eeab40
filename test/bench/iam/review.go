// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"

	"muster.dev/muster/test/plane"
)

// review measures TokenReviews through a real API server that asks one authenticator.
func (b *bench) review(ctx context.Context, s system, round int) (err error) {
	if !s.server {
		return nil
	}
	dir, err := os.MkdirTemp(b.place.dir, s.name+"-")
	if err != nil {
		return err
	}
	server, err := b.server(ctx, s, dir)
	if err != nil {
		return err
	}
	p, err := plane.Start(ctx, plane.Config{Bin: b.options.bin, APIServer: []string{
		"--authentication-token-webhook-config-file=" + server.kubeconfig, "--authentication-token-webhook-version=" + server.version,
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	process, err := p.Run(s.name, server.program, server.args...)
	if err != nil {
		return err
	}
	if err := process.Wait(ctx, "waiting for the authenticator", func(ctx context.Context) error { return answers(ctx, server.address) }); err != nil {
		return err
	}
	r, err := newReviewer(ctx, p, process, b.place)
	if err != nil {
		return err
	}
	defer r.close()
	size := int(b.options.rate * b.options.steady.Seconds())
	tokens, err := newTokens(ctx, 2*size+warmReviews, someKeys)
	if err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	first, err := r.reviews(tokens[:warmReviews])
	if err != nil {
		return err
	}
	if warm, err := r.run(ctx, r.admin, first, authenticated, b.options.rate); err != nil || warm.Refused == warmReviews {
		return errors.Join(errors.New("the first reviews"), err)
	}
	same := make([]string, size)
	for i := range same {
		same[i] = tokens[i%someKeys]
	}
	for _, part := range []struct {
		name   string
		by     *load
		as     func([]string) ([]question, error)
		good   func(string, []byte) error
		tokens []string
	}{
		{"a server that only answers", r.null, r.logins, succeeded, make([]string, size)},
		// Not by strangers: an API server ends an HTTP/2 connection of theirs with each answer.
		{"GET /version by certificate", r.admin, r.logins, succeeded, make([]string, size)},
		// The API server remembers a token itself, for 10 s at least, so only new ones reach the authenticator each time.
		{"logins (GET /version) by new tokens", r.nobody, r.logins, succeeded, tokens[warmReviews : warmReviews+size]},
		{"logins (GET /version) by 64 tokens", r.nobody, r.logins, succeeded, same},
		{"TokenReviews of new tokens", r.admin, r.reviews, authenticated, tokens[warmReviews+size:]},
		{"TokenReviews of 64 tokens", r.admin, r.reviews, authenticated, same},
	} {
		asked, err := part.as(part.tokens)
		if err != nil {
			return err
		}
		one, err := r.run(ctx, part.by, asked, part.good, b.options.rate)
		if err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		one.Part, one.System, one.Round = partReview, s.name, round
		one.Load = fmt.Sprintf("%s, %g/s", part.name, b.options.rate)
		b.report.add(one)
		fmt.Fprintf(os.Stderr, "round %d, %s, %s: p50 %.2f ms, p99 %.2f ms, max %.1f, lag %.2f, authenticator %.0f µs, API server %.0f µs, load %.0f µs, %.0f MiB\n",
			round+1, s.name, one.Load, one.P50, one.P99, one.Max, one.Lag, one.CPU, one.APIServerCPU, one.LoadCPU, one.APIServerMiB)
		if err := r.settle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// warmReviews are made before anything is measured.
const warmReviews = 500

// reviewer has an API server review tokens.
type reviewer struct {
	plane               *plane.Plane
	admin, nobody, null *load // with a client certificate, without, and to a server that only answers
	authenticator       *plane.Process
}

func newReviewer(ctx context.Context, p *plane.Plane, authenticator *plane.Process, at place) (r *reviewer, err error) {
	r = &reviewer{plane: p, authenticator: authenticator}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	config, err := p.RESTConfig("load", "system:masters")
	if err != nil {
		return r, err
	}
	for _, of := range []struct {
		into *(*load)
		who  *rest.Config
	}{{&r.admin, config}, {&r.nobody, p.Anonymous()}} {
		tlsConfig, err := rest.TLSConfigFor(of.who)
		if err != nil {
			return r, fmt.Errorf("making a client: %w", err)
		}
		if *of.into, err = newLoad(ctx, r.address(), tlsConfig); err != nil {
			return r, err
		}
	}
	roots, err := authorities(filepath.Join(at.dir, nullAuthority))
	if err != nil {
		return r, err
	}
	r.null, err = newLoad(ctx, at.null, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots})
	return r, err
}

func (r *reviewer) close() {
	for _, l := range []*load{r.admin, r.nobody, r.null} {
		if l != nil {
			l.close()
		}
	}
}

// An API server works on its own for some seconds after it is ready.
const (
	settleWindow = 500 * time.Millisecond
	settleUnder  = 50 * time.Millisecond // of CPU in a window
	settleWithin = 30 * time.Second
)

// settle waits until the API server has nothing to do.
func (r *reviewer) settle(ctx context.Context) error {
	for begun := time.Now(); time.Since(begun) < settleWithin; {
		before, err := r.plane.APIServer.Usage()
		if err != nil {
			return err
		}
		select {
		case <-time.After(settleWindow):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		after, err := r.plane.APIServer.Usage()
		if err != nil {
			return err
		}
		if after.CPU-before.CPU < settleUnder {
			return nil
		}
	}
	return nil // as idle as it gets
}

// run has all questions asked, so many a second, however long each takes.
func (r *reviewer) run(ctx context.Context, l *load, questions []question, good func(string, []byte) error, rate float64) (result, error) {
	defer withoutCollecting()()
	before, err := r.costs()
	if err != nil {
		return result{}, err
	}
	began := usage().cpu
	one, err := l.run(ctx, questions, good, rate)
	if err != nil {
		return result{}, err
	}
	spent := usage().cpu - began
	after, err := r.costs()
	if err := errors.Join(ctx.Err(), err); err != nil {
		return result{}, err
	}
	n := float64(len(questions))
	one.CPU = float64((after[0].CPU - before[0].CPU).Microseconds()) / n
	one.APIServerCPU = float64((after[1].CPU - before[1].CPU).Microseconds()) / n
	one.LoadCPU = float64(spent.Microseconds()) / n
	one.Peak = float64(after[0].Peak) / (1 << 20)
	one.APIServerMiB = float64(after[1].Resident) / (1 << 20)
	return one, nil
}

// mostGarbage is how much memory the load may take, in bytes, before garbage is collected meanwhile.
const mostGarbage = 2 << 30

// withoutCollecting has no garbage collected until the end, if there is not too much: that of the load would delay what is measured.
func withoutCollecting() (end func()) {
	runtime.GC()
	percent, limit := debug.SetGCPercent(-1), debug.SetMemoryLimit(mostGarbage)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// reviews are questions about tokens.
func (r *reviewer) reviews(tokens []string) ([]question, error) {
	return questions(tokens, func(token string) (question, error) {
		return newQuestion(http.MethodPost, r.address(), "/apis/authentication.k8s.io/v1/tokenreviews",
			`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"`+token+`"}}`, hpack.HeaderField{Name: "content-type", Value: "application/json"})
	})
}

// logins ask for something as the tokens' owners. Who has a token that is not believed is answered 401. Without a token it is a stranger.
func (r *reviewer) logins(tokens []string) ([]question, error) {
	return questions(tokens, func(token string) (question, error) {
		var headers []hpack.HeaderField
		if token != "" {
			headers = append(headers, hpack.HeaderField{Name: "authorization", Value: "Bearer " + token})
		}
		return newQuestion(http.MethodGet, r.address(), "/version", "", headers...)
	})
}

func questions(tokens []string, one func(string) (question, error)) ([]question, error) {
	all := make([]question, len(tokens))
	for n, token := range tokens {
		var err error
		if all[n], err = one(token); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (r *reviewer) address() string { return strings.TrimPrefix(r.plane.Server(), "https://") }

// authenticated sees that a token was believed.
func authenticated(status string, body []byte) error {
	if err := succeeded(status, body); err != nil || bytes.Contains(body, []byte(`"authenticated":true`)) {
		return err
	}
	var answer authenticationv1.TokenReview
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("reading the review of a token: %w", err)
	}
	return fmt.Errorf("reviewed as %q", answer.Status.Error)
}

func succeeded(status string, _ []byte) error {
	if !strings.HasPrefix(status, "2") {
		return fmt.Errorf("the API server answers %s", status)
	}
	return nil
}

// costs are those of the authenticator and of the API server.
func (r *reviewer) costs() (c [2]plane.Usage, err error) {
	for i, process := range []*plane.Process{r.authenticator, r.plane.APIServer} {
		if c[i], err = process.Usage(); err != nil {
			return c, err
		}
	}
	return c, nil
}

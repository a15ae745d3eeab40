// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"

	"muster.dev/muster/test/plane"
)

// How tokens come to the API server: as what somebody asks about, or as whoever asks for something.
const (
	asReview = "TokenReviews"
	asLogin  = "logins (GET /version)"
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
	r, err := newReviewer(p, process)
	if err != nil {
		return err
	}
	size := int(b.options.rate * b.options.steady.Seconds())
	tokens, err := newTokens(ctx, 2*size+warmReviews, someKeys)
	if err != nil {
		return err
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	if first, err := r.run(ctx, asReview, tokens[:warmReviews], b.options.rate); err != nil || first.Refused == warmReviews {
		return errors.Join(errors.New("the first reviews"), err)
	}
	same := make([]string, size)
	for i := range same {
		same[i] = tokens[i%someKeys]
	}
	for _, load := range []struct {
		as, name string
		tokens   []string
	}{
		// The API server remembers a token itself, for 10 s at least, so only new ones reach the authenticator each time.
		{asLogin, "each token new", tokens[warmReviews : warmReviews+size]},
		{asLogin, "64 tokens again and again", same},
		{asReview, "each token new", tokens[warmReviews+size:]},
		{asReview, "64 tokens again and again", same},
	} {
		one, err := r.run(ctx, load.as, load.tokens, b.options.rate)
		if err != nil {
			return fmt.Errorf("%s: %w", load.name, err)
		}
		one.Part, one.System, one.Round = partReview, s.name, round
		one.Load = fmt.Sprintf("%s at %g/s, %s", load.as, b.options.rate, load.name)
		b.report.add(one)
		fmt.Fprintf(os.Stderr, "round %d, %s, %s: p50 %.2f ms, p99 %.2f ms, authenticator %.0f µs, API server %.0f µs, load %.0f µs\n",
			round+1, s.name, one.Load, one.P50, one.P99, one.CPU, one.APIServerCPU, one.LoadCPU)
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
	plane         *plane.Plane
	admin, nobody *http.Client // with a client certificate, and without
	authenticator *plane.Process
}

func newReviewer(p *plane.Plane, authenticator *plane.Process) (*reviewer, error) {
	config, err := p.RESTConfig("load", "system:masters")
	if err != nil {
		return nil, err
	}
	admin, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	nobody, err := rest.HTTPClientFor(p.Anonymous())
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &reviewer{plane: p, admin: admin, nobody: nobody, authenticator: authenticator}, nil
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

// run has all tokens looked at, so many a second, however long each takes.
func (r *reviewer) run(ctx context.Context, as string, tokens []string, rate float64) (result, error) {
	one := r.login
	if as == asReview {
		one = r.review
	}
	defer withoutCollecting()()
	before, err := r.costs()
	if err != nil {
		return result{}, err
	}
	load := usage().cpu
	took, lag := make([]float64, len(tokens)), make([]float64, len(tokens))
	var group sync.WaitGroup
	var once sync.Once
	var failed error
	var count atomic.Int64
	begin := time.Now()
	for i, token := range tokens {
		due := begin.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		time.Sleep(time.Until(due))
		if ctx.Err() != nil {
			break
		}
		group.Go(func() {
			started := time.Now()
			if err := one(ctx, token); err != nil {
				count.Add(1)
				once.Do(func() { failed = err })
			}
			took[i], lag[i] = milliseconds(time.Since(started)), milliseconds(started.Sub(due))
		})
	}
	group.Wait()
	seconds := time.Since(begin).Seconds()
	load = usage().cpu - load
	after, err := r.costs()
	if err := errors.Join(ctx.Err(), err); err != nil {
		return result{}, err
	}
	if failed != nil {
		fmt.Fprintf(os.Stderr, "%d of %d good tokens were refused: %v\n", count.Load(), len(tokens), failed)
	}
	slices.Sort(took)
	slices.Sort(lag)
	n := float64(len(tokens))
	return result{
		Rate: n / seconds, Refused: float64(count.Load()), P50: percentile(took, 50), P99: percentile(took, 99), Max: took[len(took)-1], Lag: percentile(lag, 99),
		CPU:          float64((after[0].CPU - before[0].CPU).Microseconds()) / n,
		APIServerCPU: float64((after[1].CPU - before[1].CPU).Microseconds()) / n,
		LoadCPU:      float64(load.Microseconds()) / n,
		Peak:         float64(after[0].Peak) / (1 << 20),
	}, nil
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

// review asks about one token.
func (r *reviewer) review(ctx context.Context, token string) error {
	body := `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"` + token + `"}}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.plane.Server()+"/apis/authentication.k8s.io/v1/tokenreviews", strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	raw, err := do(r.admin, request)
	if err != nil || bytes.Contains(raw, []byte(`"authenticated":true`)) {
		return err
	}
	var answer authenticationv1.TokenReview
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("reading the review of a token: %w", err)
	}
	return fmt.Errorf("reviewed as %q", answer.Status.Error)
}

// login asks for something as the token's owner. Who has a token that is not believed is answered 401.
func (r *reviewer) login(ctx context.Context, token string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.plane.Server()+"/version", http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	_, err = do(r.nobody, request)
	return err
}

// maxAnswer is far more than an answer has.
const maxAnswer = 1 << 20

func do(client *http.Client, request *http.Request) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("asking the API server: %w", err)
	}
	if response.StatusCode >= 300 {
		return nil, fmt.Errorf("the API server answers %s", response.Status)
	}
	return raw, nil
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

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"
)

const (
	fetchTimeout = 10 * time.Second
	fetchLimit   = 1 << 20 // bytes of an answer's body
)

// workload looks at the cluster from where it runs.
type workload struct {
	hostname string
	environ  func() []string
	lookup   func(ctx context.Context, name string) ([]string, error)
	client   *http.Client
}

func newClient() *http.Client {
	return &http.Client{
		Timeout: fetchTimeout,
		// A connection of its own for each fetch: a kept one would hide what a Service does to the next.
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
	}
}

// handler serves every command over HTTP. A command that fails is answered with the reason and with 502, because the
// failure is behind this server, or with 400 if the request is wrong.
func (w workload) handler() http.Handler {
	answer := func(do func(out io.Writer, r *http.Request) error) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			var out bytes.Buffer // so that a failure half way can still change the status
			if err := do(&out, r); err != nil {
				http.Error(rw, err.Error(), statusOf(err))
				return
			}
			rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
			rw.Header().Set("X-Content-Type-Options", "nosniff") // a fetched page is shown, not run
			_, _ = out.WriteTo(rw)                               // a client that went away is no concern of ours
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", answer(func(out io.Writer, _ *http.Request) error {
		_, err := fmt.Fprintln(out, w.hostname)
		return err
	}))
	mux.Handle("GET /env", answer(func(out io.Writer, _ *http.Request) error { return w.env(out) }))
	mux.Handle("GET /resolve", answer(func(out io.Writer, r *http.Request) error {
		return w.resolve(r.Context(), out, r.URL.Query().Get("name"))
	}))
	mux.Handle("GET /fetch", answer(func(out io.Writer, r *http.Request) error {
		return w.fetch(r.Context(), out, r.URL.Query().Get("url"))
	}))
	return mux
}

// errRequest means that what was asked for cannot be asked for.
var errRequest = errors.New("bad request")

func statusOf(err error) int {
	if errors.Is(err, errRequest) {
		return http.StatusBadRequest
	}
	return http.StatusBadGateway
}

func (w workload) env(out io.Writer) error {
	for _, variable := range slices.Sorted(slices.Values(w.environ())) {
		if _, err := fmt.Fprintln(out, variable); err != nil {
			return err
		}
	}
	return nil
}

func (w workload) resolve(ctx context.Context, out io.Writer, name string) error {
	if name == "" {
		return fmt.Errorf("%w: no name to resolve", errRequest)
	}
	addresses, err := w.lookup(ctx, name)
	if err != nil {
		return fmt.Errorf("resolving %q: %w", name, err)
	}
	slices.Sort(addresses)
	for _, address := range slices.Compact(addresses) {
		if _, err := fmt.Fprintln(out, address); err != nil {
			return err
		}
	}
	return nil
}

func (w workload) fetch(ctx context.Context, out io.Writer, target string) error {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: %q is no http or https URL", errRequest, target)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil) //nolint:gosec // fetching what it is told to is its purpose
	if err != nil {
		return fmt.Errorf("%w: %q: %w", errRequest, target, err)
	}
	response, err := w.client.Do(request) //nolint:gosec // as above
	if err != nil {
		return fmt.Errorf("fetching: %w", err) // names the URL itself
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, fetchLimit+1))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", target, err)
	}
	if len(body) > fetchLimit {
		return fmt.Errorf("reading the answer of %s: more than %d bytes", target, fetchLimit)
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("fetching %s: the answer is %s", target, response.Status)
	}
	_, err = out.Write(body)
	return err
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/aws-iam-authenticator/pkg/token"

	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/iam/ststoken"
)

// place is where the other processes are.
type place struct{ dir, sts, null string }

func (p place) ca() string { return filepath.Join(p.dir, stsAuthority) }

func (p place) socket() string { return filepath.Join(p.dir, keysSocket) }

// check decides about one token. It is nil if the token is good.
type check func(ctx context.Context, token string) error

// system is something that verifies tokens.
type system struct {
	name, what string
	// start makes it ready, in a process of its own.
	start func(context.Context, place) (check, error)
	// keys is of how many access keys tokens are, and tokens how many there are before the first comes again.
	keys, tokens int
	// known has every token verified once before it is measured.
	known bool
	// refuses are the kinds of bad tokens that it is measured with, beside those that are good.
	refuses []string
	// server tells that it is measured through the API server, too.
	server bool
}

const (
	someKeys = 64
	// someTokens are enough for whoever remembers none.
	someTokens = 4096
	// manyTokens are more than anybody remembers, so that each is unknown when it comes again.
	manyTokens = 32768
)

func systems() []system {
	whole := func(verifier func(context.Context, place) (*parts, error)) func(context.Context, place) (check, error) {
		return func(ctx context.Context, p place) (check, error) {
			made, err := verifier(ctx, p)
			if err != nil {
				return nil, err
			}
			return made.decide, nil
		}
	}
	verify := func(verifier func(context.Context, place) (*parts, error)) func(context.Context, place) (check, error) {
		return func(ctx context.Context, p place) (check, error) {
			made, err := verifier(ctx, p)
			if err != nil {
				return nil, err
			}
			return made.verify, nil
		}
	}
	all := []string{badForm, badSignature, badKey}
	return []system{
		{name: "shipped", what: "aws-iam-authenticator as shipped, asking STS", start: upstream(0), keys: someKeys, tokens: someTokens, refuses: all, server: true},
		{name: "pool", what: "the same, keeping 256 idle connections", start: upstream(256), keys: someKeys, tokens: someTokens, refuses: all, server: true},
		{name: "offline", what: "the same, without any network", start: upstreamOffline, keys: someKeys, tokens: someTokens},
		{name: "remote", what: "muster's verifier, asking STS", start: verify(remoteParts), keys: someKeys, tokens: someTokens},
		{name: "remote-whole", what: "muster's whole decision, asking STS", start: whole(remoteParts), keys: someKeys, tokens: manyTokens, refuses: all, server: true},
		{name: "own", what: "muster's verifier, asking the account", start: verify(ownParts), keys: someKeys, tokens: someTokens},
		{name: "own-whole", what: "muster's whole decision, asking the account", start: whole(ownParts), keys: someKeys, tokens: manyTokens, refuses: all, server: true},
		{name: "warm", what: "muster's whole decision, token seen before", start: whole(ownParts), keys: someKeys, tokens: someTokens, known: true},
	}
}

func systemOf(name string) (system, bool) {
	for _, s := range systems() {
		if s.name == name {
			return s, true
		}
	}
	return system{}, false
}

func systemNames() (names []string) {
	for _, s := range systems() {
		names = append(names, s.name)
	}
	return names
}

// upstream is aws-iam-authenticator's own verifier. It takes no client and uses http.DefaultTransport, so there the way
// to STS is turned here: what it checks of the host stays as it is.
func upstream(idle int) func(context.Context, place) (check, error) {
	return func(_ context.Context, p place) (check, error) {
		if err := turnDefaultTransport(p.sts, p.ca(), idle); err != nil {
			return nil, err
		}
		return upstreamCheck(), nil
	}
}

func upstreamCheck() check {
	verifier := token.NewVerifier(cluster, "aws", region)
	return func(_ context.Context, raw string) error {
		_, err := verifier.Verify(raw)
		return err
	}
}

// turnDefaultTransport has everything go to the fake STS. idle is how many idle connections are kept, Go's default if 0.
func turnDefaultTransport(address, ca string, idle int) error {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return errors.New("http.DefaultTransport is not Go's")
	}
	roots, err := authorities(ca)
	if err != nil {
		return err
	}
	config := transport.TLSClientConfig.Clone()
	if config == nil {
		config = newTLSConfig()
	}
	config.RootCAs = roots
	transport.TLSClientConfig = config
	transport.Proxy = nil
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	if idle > 0 {
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = idle, idle
	}
	return nil
}

// upstreamOffline has answers without STS: what is left is its own work.
func upstreamOffline(context.Context, place) (check, error) {
	http.DefaultTransport = stub{}
	return upstreamCheck(), nil
}

type stub struct{}

// RoundTrip answers as the fake STS does.
func (stub) RoundTrip(r *http.Request) (*http.Response, error) {
	w := &recorded{header: http.Header{}, status: http.StatusOK}
	answerSTS(w, r)
	return &http.Response{StatusCode: w.status, Header: w.header, Body: io.NopCloser(strings.NewReader(w.body.String())), Request: r}, nil
}

type recorded struct {
	header http.Header
	status int
	body   strings.Builder
}

func (r *recorded) Header() http.Header               { return r.header }
func (r *recorded) WriteHeader(status int)            { r.status = status }
func (r *recorded) Write(p []byte) (int, error)       { return r.body.Write(p) }
func (r *recorded) WriteString(s string) (int, error) { return r.body.WriteString(s) }

// verify does what aws-iam-authenticator's verifier does: read the token, find out who made it.
func (p *parts) verify(ctx context.Context, raw string) error {
	t, err := ststoken.Parse(raw, cluster, p.hosts, p.now())
	if err != nil {
		return err
	}
	if _, err = p.verifier.Verify(ctx, t); err == nil {
		p.verifier.Admit(t.Signed.AccessKeyID) // as the whole does with who is let in
	}
	return err
}

// decide does what is done for a TokenReview, mapping included.
func (p *parts) decide(ctx context.Context, raw string) error {
	d := p.whole.Authenticate(ctx, raw)
	if d.Result != authenticator.Success {
		return fmt.Errorf("%s: %s: %s", d.Result, d.Rule, d.Saw)
	}
	return nil
}

// quietly is a logger of what is wrong only.
func quietly() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

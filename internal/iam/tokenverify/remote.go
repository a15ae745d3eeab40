// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"time"

	"muster.dev/muster/internal/iam/ststoken"
)

// RemoteConfig says how STS is asked.
type RemoteConfig struct {
	ClusterID string
	// Endpoints are where to send what is meant for a host, such as the address of a private endpoint: a URL by the
	// host of tokens. The Host header stays the token's, since it is signed; TLS is checked against the URL's host.
	Endpoints map[string]string
	RootCAs   *x509.CertPool // the system's if nil
	Proxy     *url.URL       // no proxy if nil, whatever the environment says
	Timeout   time.Duration  // of a question with everything in it; 10 s if 0
	// Connections are kept per host, and there are no more at once; 64 if 0.
	Connections int
	HTTP2       bool
	Gate        GateConfig
	// Observe is told of each answer, or of there being none, if not nil.
	Observe func(Observation)
	Logger  *slog.Logger
	Now     func() time.Time // time.Now if nil
	// Jitter makes the pause before the second try out of the longest one; a random part of it if nil.
	Jitter func(time.Duration) time.Duration
}

// Observation is one answer of STS.
type Observation struct {
	Region string // of the host
	Status int    // 0 if there was no answer
	Code   string // of the error, if STS said one
	Known  bool   // the region answered before, so it exists
}

// Remote asks STS.
type Remote struct {
	config    RemoteConfig
	way       way
	endpoints map[string]*url.URL
	gate      *Gate
	breakers  *breakers
}

var _ Verifier = (*Remote)(nil)

// NewRemote checks the configuration. Nothing is asked yet.
func NewRemote(c RemoteConfig) (*Remote, error) {
	if c.ClusterID == "" || c.Logger == nil {
		return nil, errors.New("asking STS takes the cluster's id and a logger")
	}
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Connections <= 0 {
		c.Connections = 64
	}
	if c.Gate.Known <= 0 && c.Gate.Unknown <= 0 {
		c.Gate.Unknown = max(1, c.Connections/4)
		c.Gate.Known = max(1, c.Connections-c.Gate.Unknown)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Jitter == nil {
		c.Jitter = rand.N[time.Duration] // it only spreads load
	}
	r := &Remote{config: c, endpoints: map[string]*url.URL{}, gate: NewGate(c.Gate), breakers: newBreakers()}
	for host, endpoint := range c.Endpoints {
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("the endpoint %q of %s is not a URL such as https://sts.example:8443", endpoint, host)
		}
		r.endpoints[host] = u
		r.breakers.exists(host, &breaker{}) // the operator says so
	}
	r.way = newWay(c)
	return r, nil
}

// Close ends connections that nobody uses.
func (r *Remote) Close() { r.way.close() }

// retryPause is the longest pause before the second try.
const retryPause = 200 * time.Millisecond

// Verify replays the token's request.
func (r *Remote) Verify(ctx context.Context, t ststoken.Token) (Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	id, asked, err := r.once(ctx, t)
	// An unknown caller is left to try again: places would be held for regions that do not exist.
	if asked && err != nil && again(err) && r.gate.Admitted(t.Signed.AccessKeyID) && r.pause(ctx) {
		id, _, err = r.once(ctx, t)
	}
	if grace := r.config.Now().Add(outage); err == nil && grace.Before(id.OutageUntil) {
		id.OutageUntil = grace
	}
	return id, err
}

// outage is how long after an answer it is used on while STS does not answer any more.
const outage = 5 * time.Minute

// Admit implements [Verifier].
func (r *Remote) Admit(accessKeyID string) { r.gate.Admit(accessKeyID) }

// Admitted implements [Verifier].
func (r *Remote) Admitted(accessKeyID string) bool { return r.gate.Admitted(accessKeyID) }

// once waits for a turn and asks.
func (r *Remote) once(ctx context.Context, t ststoken.Token) (id Identity, asked bool, err error) {
	host, answered := r.breakers.of(t.Host)
	if err := host.open(r.config.Now()); err != nil { // before it waits for a turn
		return Identity{}, false, &Unavailable{Asked: t.Host, Err: err}
	}
	leave, err := r.gate.Enter(ctx, t.Signed.AccessKeyID, answered)
	switch {
	case errors.Is(err, ErrThrottled):
		return Identity{}, false, err
	case err != nil:
		return Identity{}, false, &Unavailable{Asked: t.Host, Err: err}
	}
	defer leave()
	id, err = r.ask(ctx, host, t)
	if _, silent := errors.AsType[*Unavailable](err); !silent && !answered {
		r.breakers.exists(t.Host, host)
	}
	return id, true, err
}

// again reports whether a second try may help.
func again(err error) bool {
	if errors.Is(err, ErrThrottled) {
		return true
	}
	no, ok := errors.AsType[*Unavailable](err)
	return ok && !errors.Is(no.Err, errNotSTS)
}

// pause waits a little, and reports whether there is time for another try.
func (r *Remote) pause(ctx context.Context) bool {
	timer := time.NewTimer(r.config.Jitter(retryPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// ask sends the request once.
func (r *Remote) ask(ctx context.Context, host *breaker, t ststoken.Token) (Identity, error) {
	began := r.config.Now()
	if err := host.begin(began); err != nil {
		return Identity{}, &Unavailable{Asked: t.Host, Err: err}
	}
	id, err := r.try(ctx, t)
	failed, unavailable := errors.AsType[*Unavailable](err)
	switch {
	case unavailable && errors.Is(ctx.Err(), context.Canceled): // it may have answered
		host.abandoned(began)
	case unavailable:
		host.end(began, r.config.Now(), failed.Err)
	default:
		host.end(began, r.config.Now(), nil)
	}
	return id, err
}

// try sends what was signed and nothing else, to the host that it was signed for.
func (r *Remote) try(ctx context.Context, t ststoken.Token) (Identity, error) {
	to := r.endpoints[t.Host]
	if to == nil {
		to = &url.URL{Scheme: t.Scheme, Host: t.Host}
	}
	response, err := r.way.ask(ctx, to, t.Host, t.Query)
	if err != nil && response.status == 0 {
		r.observe(Observation{Region: t.Region})
		return Identity{}, &Unavailable{Asked: t.Host, Err: err}
	}
	var a answer
	if err == nil {
		a, err = readAnswer(response)
	}
	r.observe(Observation{Region: t.Region, Status: response.status, Code: a.Code, Known: a.Code != "" || a.ARN != ""})
	if err != nil {
		return Identity{}, &Unavailable{Asked: t.Host, Err: err}
	}
	return a.identity(t)
}

func (r *Remote) observe(o Observation) {
	if r.config.Observe != nil {
		r.config.Observe(o)
	}
}

// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"muster.dev/muster/internal/certificates/token"
)

// Config says what is known of a cluster: an address and a token, or a file.
type Config struct {
	// Endpoint is HOST:PORT or a https URL of an API server.
	Endpoint string
	Token    token.Token
	// CACertHashes pin the authority, as Pin writes it. Any of them is enough.
	CACertHashes []string
	// UnsafeSkipCAVerification believes the authority that a cluster shows which knows the token. Anybody else who
	// knows it can pass for that cluster.
	UnsafeSkipCAVerification bool
	// File is a kubeconfig, a path or a https URL, instead of the above. Hashes are checked, too, if there are any.
	File string
	// Timeout is how long to wait for a server that does not answer; 5 min if 0, as kubeadm does.
	Timeout time.Duration
	// Settle is how long a server may take to show cluster-info, and to sign it for a token that was just made; 10 s if 0.
	Settle time.Duration
	// Progress hears of waits, and of oddities. It may be nil.
	Progress func(string)
	// SystemRoots vouch for https URLs, and for servers of files without an authority; the system's roots if nil.
	SystemRoots *x509.CertPool
	// Proxy says by which proxy to go; http.ProxyFromEnvironment if nil.
	Proxy func(*http.Request) (*url.URL, error)
	Now   func() time.Time // time.Now if nil
}

// Result is what is believed.
type Result struct {
	// Endpoint is the URL of the API server, as the cluster or the file says it.
	Endpoint string
	// CA is PEM: the pinned authorities, if there are pins.
	CA []byte
	// How it is known, in words for people.
	How string
	// Skew is how far this machine's clock is ahead of the server's, to the second.
	Skew time.Duration
}

const (
	defaultTimeout = 5 * time.Minute
	defaultSettle  = 10 * time.Second
	// resign is how long the signatures may be those of a cluster-info that was just replaced.
	resign = 2 * time.Second

	firstWait, longestWait = 200 * time.Millisecond, 2 * time.Second
)

// discoverer is one Discover.
type discoverer struct {
	Config
	endpoint string
	pins     []string
	said     string // to Progress, last
}

// Discover finds the cluster, or returns an *Error that has the check that failed, the evidence and the fix.
func Discover(ctx context.Context, c Config) (Result, error) {
	d := &discoverer{Config: c}
	if err := d.complete(); err != nil {
		return Result{}, err
	}
	once := d.byToken
	if d.File != "" {
		file, err := d.readFile(ctx)
		if err != nil {
			return Result{}, err
		}
		once = func(ctx context.Context) (Result, error) { return d.byFile(ctx, file) }
	}
	return d.untilSettled(ctx, once)
}

// Check refuses what can be seen to be wrong before anything is asked, as Discover does.
func (c Config) Check() error { return (&discoverer{Config: c}).complete() }

func (d *discoverer) complete() error {
	if d.Timeout <= 0 {
		d.Timeout = defaultTimeout
	}
	if d.Settle <= 0 {
		d.Settle = defaultSettle
	}
	if d.Progress == nil {
		d.Progress = func(string) {}
	}
	if d.Proxy == nil {
		d.Proxy = http.ProxyFromEnvironment
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	var err error
	if d.pins, err = checkPins(d.CACertHashes); err != nil {
		return err
	}
	if d.File != "" {
		if d.Endpoint != "" {
			return refuse(BadConfig, "an address and a discovery file are given, and either says where the cluster is: leave one out")
		}
		return nil
	}
	if d.endpoint, err = parseEndpoint(d.Endpoint); err != nil {
		return err
	}
	switch {
	case d.Token.IsZero():
		return refuse(BadConfig, "there is no token to know the cluster by: give one that `muster token create` printed, or a discovery file")
	case len(d.pins) == 0 && !d.UnsafeSkipCAVerification:
		return refuse(NoPin, "a token alone does not tell the cluster from somebody else who knows the token: give the hash of its authority (--ca-cert-hash sha256:…, as `muster token create --print-join-command` prints it), or accept the risk with --discovery-token-unsafe-skip-ca-verification")
	}
	return nil
}

// untilSettled tries until it works, until what goes wrong has had the time it may need to come right, or until the
// timeout.
func (d *discoverer) untilSettled(parent context.Context, once func(context.Context) (Result, error)) (Result, error) {
	ctx, cancel := context.WithTimeout(parent, d.Timeout)
	defer cancel()
	var wrong Reason // the reason that tries fail for, since a moment: after another reason a server may take its time again
	var since time.Time
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		result, err := once(ctx)
		if err == nil {
			return result, nil
		}
		if parent.Err() != nil {
			return Result{}, fmt.Errorf("discovering the cluster was interrupted: %w", context.Cause(parent))
		}
		var e *Error
		if !errors.As(err, &e) {
			return Result{}, err
		}
		if e.Reason != wrong {
			wrong, since = e.Reason, time.Now()
		}
		if time.Since(since) >= d.patience(e.Reason) {
			return Result{}, err
		}
		d.say("waiting: " + e.Message)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			if parent.Err() != nil {
				return Result{}, fmt.Errorf("discovering the cluster was interrupted: %w", context.Cause(parent))
			}
			return Result{}, &Error{Reason: e.Reason, Message: fmt.Sprintf("gave up after %s: %s", d.Timeout, e.Message), Err: e}
		}
	}
}

// patience is how long something may go wrong.
func (d *discoverer) patience(r Reason) time.Duration {
	switch r {
	case Unreachable:
		return d.Timeout
	case Refused, NoSignature: // a server that starts refuses what it will allow; the signer comes after the token
		return d.Settle
	case BadSignature, Changed: // cluster-info was replaced a moment ago
		return min(resign, d.Settle)
	default:
		return 0
	}
}

func (d *discoverer) say(what string) {
	if what != d.said {
		d.said = what
		d.Progress(what)
	}
}

// byToken goes all the way once.
func (d *discoverer) byToken(ctx context.Context) (Result, error) {
	first, err := d.fetch(ctx, d.endpoint, nil, nil)
	if err != nil {
		return Result{}, err
	}
	if err := checkSignature(first.data, d.Token); err != nil {
		return Result{}, err
	}
	cluster, err := ReadClusterInfo(first.data[kubeconfigKey])
	if err != nil {
		return Result{}, refuse(Malformed, fmt.Sprintf("cluster-info of %s is signed with the token and yet not usable: %v; who runs the cluster must correct the ConfigMap kube-public/cluster-info", d.endpoint, err))
	}
	trusted, how := cluster.Authorities, "its authority was not checked"
	if len(d.pins) > 0 {
		if trusted, err = pinned(cluster.Authorities, d.pins); err != nil {
			return Result{}, err
		}
		how = "its authority is the pinned one, " + Pin(trusted[0])
		cluster.CA = encode(trusted) // nothing vouches for others that cluster-info names
	}
	second, err := d.fetch(ctx, d.endpoint, trusted, &knowledge{all: cluster.Authorities, ahead: first.ahead})
	if err != nil {
		return Result{}, err
	}
	if !bytes.Equal([]byte(first.data[kubeconfigKey]), []byte(second.data[kubeconfigKey])) {
		return Result{}, refuse(Changed, fmt.Sprintf("%s showed another cluster-info to somebody who could not verify it: somebody on the way changes answers; find out who before joining", d.endpoint))
	}
	endpoint, err := parseEndpoint(cluster.Server)
	if err != nil {
		return Result{}, err
	}
	if endpoint != d.endpoint {
		d.say(fmt.Sprintf("the cluster says that its address is %s; that is the one used from here on", endpoint))
	}
	d.mention(second.ahead)
	return Result{
		Endpoint: endpoint, CA: cluster.CA, Skew: second.ahead.Round(time.Second),
		How: fmt.Sprintf("%s knows the token %s, and %s", strings.TrimPrefix(d.endpoint, "https://"), d.Token.ID, how),
	}, nil
}

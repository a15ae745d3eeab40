// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	attemptTime = 15 * time.Second
	dialTime    = 5 * time.Second
	// muchSkew is what is mentioned. Kubernetes' signers leave 5 minutes for clocks that are behind.
	muchSkew = time.Minute
)

// fetched is what a server showed.
type fetched struct {
	data  map[string]string
	ahead time.Duration // this machine's clock of the server's, 0 if it does not tell
}

// knowledge is what is known already when a server is to be verified, for messages alone.
type knowledge struct {
	all   []*x509.Certificate // authorities that the cluster names
	ahead time.Duration
}

// roots makes a pool.
func roots(authorities []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, authority := range authorities {
		pool.AddCert(authority)
	}
	return pool
}

// fetch asks a server for cluster-info as nobody, once. Without trusted authorities anybody may answer.
func (d *discoverer) fetch(ctx context.Context, endpoint string, trusted []*x509.Certificate, k *knowledge) (fetched, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12, Time: d.Now}
	if trusted == nil {
		settings.InsecureSkipVerify = true // for the one answer that two proofs must hold of
	} else {
		settings.RootCAs = roots(trusted)
	}
	return d.fetchBy(ctx, endpoint, settings, k)
}

func (d *discoverer) fetchBy(ctx context.Context, endpoint string, settings *tls.Config, k *knowledge) (fetched, error) {
	began := d.Now()
	host := endpoint + d.via(ctx, endpoint)
	status, header, body, err := d.get(ctx, endpoint+clusterInfoPath, settings, maxAnswer)
	if err != nil {
		return fetched{}, d.explain(host, err, k)
	}
	f := fetched{ahead: ahead(header.Get("Date"), began, d.Now())}
	switch {
	case status >= 300 && status < 400:
		return f, refuse(Refused, fmt.Sprintf("%s answers with a redirect (%d), which is not followed: an API server makes none; name the API server itself", host, status))
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return f, refuse(Refused, fmt.Sprintf("%s does not show cluster-info to somebody unknown (%d): it is not set up for discovery by token; use a discovery file (--discovery-file), or allow system:anonymous to get the ConfigMap kube-public/cluster-info", host, status))
	case status == http.StatusNotFound:
		return f, refuse(Refused, fmt.Sprintf("%s has no ConfigMap kube-public/cluster-info (404): it is no API server, or not set up for discovery by token; use a discovery file (--discovery-file)", host))
	case status == http.StatusTooManyRequests || status >= 500:
		return f, refuse(Unreachable, fmt.Sprintf("%s answers that it cannot serve now (%d); see how the API server is", host, status))
	case status != http.StatusOK:
		return f, refuse(Refused, fmt.Sprintf("%s answers %d, which no API server answers; check the address", host, status))
	}
	if f.data, err = clusterInfo(body); err != nil {
		return f, refuse(Malformed, fmt.Sprintf("what %s shows is not cluster-info: %v; check that it is the address of an API server", host, err))
	}
	return f, nil
}

// via tells of a proxy on the way, which often is what answered.
func (d *discoverer) via(ctx context.Context, address string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return ""
	}
	proxy, err := d.Proxy(request)
	if err != nil || proxy == nil {
		return ""
	}
	return fmt.Sprintf(" (by the proxy %s of this machine's environment; NO_PROXY takes an address out)", proxy.Redacted())
}

var errTooLarge = errors.New("the answer is too large")

// get makes one request without following anything.
func (d *discoverer) get(ctx context.Context, address string, settings *tls.Config, limit int64) (int, http.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	transport := &http.Transport{
		Proxy:                  d.Proxy,
		DialContext:            (&net.Dialer{Timeout: dialTime}).DialContext,
		TLSClientConfig:        settings,
		TLSHandshakeTimeout:    dialTime,
		ResponseHeaderTimeout:  attemptTime,
		MaxResponseHeaderBytes: 64 << 10,
		DisableKeepAlives:      true,
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "muster-discovery")
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was read, or is not wanted
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = errTooLarge
	}
	return response.StatusCode, response.Header, body, err
}

// ahead is how far this machine's clock is ahead of a server that wrote the date between two moments of it.
func ahead(date string, before, after time.Time) time.Duration {
	at, err := http.ParseTime(date)
	if err != nil {
		return 0
	}
	// The header tells whole seconds, cut off.
	return before.Add(after.Sub(before) / 2).Sub(at.Add(time.Second / 2))
}

// mention says it of a clock that is far off though nothing failed.
func (d *discoverer) mention(ahead time.Duration) {
	if ahead.Abs() > muchSkew {
		d.say(fmt.Sprintf("this machine's clock is %s the server's: set it, or certificates will seem not valid yet, or expired", skew(ahead)))
	}
}

func skew(ahead time.Duration) string {
	if ahead < 0 {
		return (-ahead).Round(time.Second).String() + " behind"
	}
	return ahead.Round(time.Second).String() + " ahead of"
}

// explain says what went wrong on the way to a server, and whether it may come right by itself.
func (d *discoverer) explain(endpoint string, err error, k *knowledge) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err // without the address, which is told already
	}
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, errTooLarge):
		return refuse(Malformed, fmt.Sprintf("%s answers with more than %d MiB, which no API server does; check the address", endpoint, maxAnswer>>20))
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return refuse(BadEndpoint, fmt.Sprintf("%s does not speak TLS: it is not the https port of an API server; check the address", endpoint))
	case errors.As(err, &verification):
		return d.unverified(endpoint, verification, k)
	}
	return &Error{Reason: Unreachable, Message: fmt.Sprintf("%s does not answer (%v); check the address, that the API server runs, and that no firewall is on the way", endpoint, err), Err: err}
}

// unverified says why a server is not believed to be that of the cluster.
func (d *discoverer) unverified(endpoint string, err *tls.CertificateVerificationError, k *knowledge) error {
	if k == nil {
		k = &knowledge{}
	}
	var leaf *x509.Certificate
	if len(err.UnverifiedCertificates) > 0 {
		leaf = err.UnverifiedCertificates[0]
	}
	var invalid x509.CertificateInvalidError
	var hostname x509.HostnameError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && k.ahead.Abs() > muchSkew:
		return refuse(ClockSkew, fmt.Sprintf("the certificate of %s, or of its authority, is valid from %s to %s, and here it is %s: this machine's clock is %s the server's; set it and try again",
			endpoint, stamp(invalid.Cert.NotBefore), stamp(invalid.Cert.NotAfter), stamp(d.Now()), skew(k.ahead)))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return refuse(WrongServer, fmt.Sprintf("the certificate of %s, or of its authority, is valid from %s to %s, and here it is %s, as it is there: who runs the cluster must renew it",
			endpoint, stamp(invalid.Cert.NotBefore), stamp(invalid.Cert.NotAfter), stamp(d.Now())))
	case errors.As(err, &hostname):
		return refuse(WrongServer, fmt.Sprintf("the certificate of %s is not for that address (%v): use an address that the API server's certificate has, or have this one added to it", endpoint, hostname))
	case errors.As(err, &unknown) && leaf != nil && signedByAny(leaf, k.all):
		return refuse(WrongServer, fmt.Sprintf("the certificate of %s was signed by %q, which the cluster names and no hash pins: its authority may be being replaced; ask who runs the cluster for the hashes, all of them", endpoint, leaf.Issuer))
	case errors.As(err, &unknown) && leaf != nil:
		return refuse(WrongServer, fmt.Sprintf("the certificate of %s was signed by %q, which is not the cluster's authority: somebody else answers at that address; check it", endpoint, leaf.Issuer))
	}
	return &Error{Reason: WrongServer, Message: fmt.Sprintf("the certificate of %s does not hold: %v", endpoint, err.Err), Err: err}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// signedByAny reports whether any of the authorities signed the certificate.
func signedByAny(leaf *x509.Certificate, authorities []*x509.Certificate) bool {
	for _, authority := range authorities {
		if leaf.CheckSignatureFrom(authority) == nil {
			return true
		}
	}
	return false
}

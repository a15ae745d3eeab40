// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// usualProbe is the pause between two probes of a server, and probeTimeout how long one may take.
	usualProbe   = time.Second
	probeTimeout = 2 * time.Second
	// probePause is between two probes of which the later one has a reason.
	probePause = 100 * time.Millisecond
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 64 << 10
)

// keepProbing probes all servers until the context ends, each one by itself: a server that does not answer delays no
// other one's probe.
func (f *Front) keepProbing(ctx context.Context) {
	defer f.asker.close()
	var probing sync.WaitGroup
	defer probing.Wait()
	for {
		for _, address := range f.pool.toProbe() {
			probing.Go(func() {
				reason := ""
				if err := f.probe(ctx, address); err != nil {
					reason = err.Error()
				}
				if f.pool.probed(address, reason, time.Now()) && ctx.Err() == nil {
					f.tellServer(address, reason)
				}
			})
		}
		next := time.After(f.probeEvery)
		pause(ctx, probePause)
		if !f.pool.hasReady() && ctx.Err() == nil {
			continue // connections wait
		}
		select {
		case <-ctx.Done():
			return
		case <-f.look:
		case <-next:
		}
	}
}

// lookNow has servers probed now: others are there, or one ended a connection, as it does when its process ends.
func (f *Front) lookNow() {
	select {
	case f.look <- struct{}{}:
	default:
	}
}

// tellServer says in the log that a server is ready, or why it is not.
func (f *Front) tellServer(address netip.AddrPort, reason string) {
	f.config.Log.Info("server of the plane", "address", address.String(), "ready", reason == "", "reason", reason)
}

// probe asks a server whether it is ready. A server that ends says that it is not, over a connection that it has already,
// before it accepts no others.
func (f *Front) probe(ctx context.Context, address netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, f.asker.timeout)
	defer cancel()
	transport, err := f.asker.transport()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address.String()+"/readyz", nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "muster-plane-front")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // so that the connection is kept
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /readyz is answered with %s", response.Status)
	}
	return nil
}

// asker has the connections by which servers are asked, as long as the authority is the same.
type asker struct {
	authority string        // path
	timeout   time.Duration // probeTimeout; tests have less patience
	log       *slog.Logger
	unread    rate.Sometimes // the log says it seldom

	mu   sync.Mutex
	raw  []byte
	kept *http.Transport
}

// transport is that of the authority as the file has it now. While the file cannot be used it is the one from before.
func (a *asker) transport() (*http.Transport, error) {
	raw, err := os.ReadFile(a.authority)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil && a.kept != nil && bytes.Equal(raw, a.raw) {
		return a.kept, nil
	}
	authorities := x509.NewCertPool()
	if err == nil && !authorities.AppendCertsFromPEM(raw) {
		err = fmt.Errorf("%s has no certificate", a.authority)
	}
	if err != nil {
		err = fmt.Errorf("reading the authority of the servers: %w", err)
		if a.kept == nil {
			return nil, err
		}
		a.unread.Do(func() { a.log.Warn("the authority of the servers stays", "error", err) })
		return a.kept, nil
	}
	a.close()
	// A transport makes a connection to its end, also when nothing waits for it any more.
	a.raw, a.kept = raw, &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
		DialContext: (&net.Dialer{Timeout: a.timeout, KeepAlive: -1}).DialContext, TLSHandshakeTimeout: a.timeout,
	}
	return a.kept, nil
}

// close is called with the mutex held, or when nothing asks any more.
func (a *asker) close() {
	if a.kept != nil {
		a.kept.CloseIdleConnections()
	}
}

// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"
)

const (
	// probeEvery is the pause between two probes of a server, and probeTimeout how long one may take.
	probeEvery   = time.Second
	probeTimeout = 2 * time.Second
)

// keepProbing probes all servers until the context ends.
func (f *Front) keepProbing(ctx context.Context) {
	for {
		var probing sync.WaitGroup
		for _, m := range f.pool.snapshot() {
			probing.Go(func() {
				reason := ""
				if err := f.probe(ctx, m.Address); err != nil {
					reason = err.Error()
				}
				if ctx.Err() == nil && f.pool.probed(m.Address, reason) {
					f.config.Log.Info("server of the plane", "address", m.Address.String(), "ready", reason == "", "reason", reason)
				}
			})
		}
		probing.Wait()
		select {
		case <-ctx.Done():
			return
		case <-f.look: // other servers are there
		case <-time.After(probeEvery):
		}
	}
}

// probe asks a server whether it is ready, over a connection of its own: one that is kept would go on to be answered by
// a server that accepts no connections any more.
func (f *Front) probe(ctx context.Context, address netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	raw, err := os.ReadFile(f.config.Authority)
	if err != nil {
		return fmt.Errorf("reading the authority of the servers: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(raw) {
		return fmt.Errorf("%s has no certificate", f.config.Authority)
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address.String()+"/readyz", nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "muster-plane-front")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /readyz is answered with %s", response.Status)
	}
	return nil
}

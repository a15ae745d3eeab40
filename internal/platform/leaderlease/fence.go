// SPDX-License-Identifier: Apache-2.0

package leaderlease

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
)

// Fence returns a configuration of clients that write nothing once the tenure has run out; they read on. The client of
// the lease itself must not be one of them.
func (t *Tenure) Fence(config *rest.Config) *rest.Config {
	fenced := rest.CopyConfig(config)
	fenced.Wrap(func(next http.RoundTripper) http.RoundTripper { return fence{next, t} })
	return fenced
}

type fence struct {
	next   http.RoundTripper
	tenure *Tenure
}

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if err := f.tenure.Check(); err != nil {
			if r.Body != nil {
				_ = r.Body.Close() // as http.RoundTripper must; nothing was read
			}
			return nil, fmt.Errorf("%s %s was not sent: %w", r.Method, r.URL.Path, err)
		}
	}
	return f.next.RoundTrip(r)
}

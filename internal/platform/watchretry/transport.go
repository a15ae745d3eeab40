// SPDX-License-Identifier: Apache-2.0

package watchretry

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

// Wrap keeps clients of a configuration from pausing inside a list or watch that New or NewInformer retry.
//
// An API server that has just been started answers 503 with "Retry-After: 5" to whatever asks for a custom resource
// before all of its paths are there (k8s.io/apiserver, pkg/util/notfoundhandler), and then, while it reads the objects
// of a kind, 429 with "Retry-After: 1" or more (pkg/storage/cacher). client-go obeys without a word: the request takes
// six seconds, although the server is ready after a fraction of one. Other requests of the clients are left as they
// are, and so is the 429 by which a server that has too much to do asks for time, which is plain text
// (pkg/server/filters, tooManyRequests).
func Wrap(config *rest.Config) {
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return &transport{inner} })
}

// retriedHere marks the contexts of requests that this package retries.
type retriedHere struct{}

func marked(ctx context.Context) context.Context { return context.WithValue(ctx, retriedHere{}, true) }

type transport struct{ inner http.RoundTripper }

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.inner.RoundTrip(request)
	if err == nil && request.Context().Value(retriedHere{}) != nil && starts(response) {
		response.Header.Del("Retry-After")
	}
	return response, err
}

// starts reports whether a server may answer so because it was just started.
func starts(response *http.Response) bool {
	if response.StatusCode == http.StatusTooManyRequests {
		return !strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain")
	}
	return response.StatusCode >= http.StatusInternalServerError
}

// WrappedRoundTripper lets client-go find the transport that holds the connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.inner }

// SPDX-License-Identifier: Apache-2.0

package explainapi

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"muster.dev/muster/internal/plane/component"
)

// The headers in which an API server says for whom it asks: those of its flags requestheader-*, and the one that
// upstream has for ids (k8s.io/client-go/transport, SetAuthProxyHeaders).
const (
	headerUser  = "X-Remote-User"
	headerUID   = "X-Remote-Uid"
	headerGroup = "X-Remote-Group"
	headerExtra = "X-Remote-Extra-"
)

// The groups of everybody who is authenticated, and of nobody known.
const (
	authenticated   = "system:authenticated"
	unauthenticated = "system:unauthenticated"
)

// caller is the user for whom the API server asks.
type caller struct {
	user, uid string
	groups    []string
	extra     map[string]authorizationv1.ExtraValue
}

// errNotProxy refuses whoever is not the cluster's API server.
var errNotProxy = errors.New("only the API server of the cluster may ask, by the certificate of its aggregation layer")

// callerOf returns the user for whom the API server asks. The TLS connection has verified a certificate of the authority
// of proxies, and the name in it has to be the API server's.
func callerOf(r *http.Request) (caller, error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || r.TLS.PeerCertificates[0].Subject.CommonName != component.UserFrontProxy {
		return caller{}, errNotProxy
	}
	names := r.Header.Values(headerUser)
	if len(names) != 1 || names[0] == "" {
		return caller{}, errors.New("the request does not name its user in " + headerUser)
	}
	c := caller{user: names[0], uid: r.Header.Get(headerUID), groups: slices.Clone(r.Header.Values(headerGroup))}
	for header, values := range r.Header {
		if len(header) <= len(headerExtra) || !strings.EqualFold(header[:len(headerExtra)], headerExtra) {
			continue
		}
		key := strings.ToLower(header[len(headerExtra):])
		if plain, err := url.PathUnescape(key); err == nil {
			key = plain
		}
		if c.extra == nil {
			c.extra = map[string]authorizationv1.ExtraValue{}
		}
		c.extra[key] = append(c.extra[key], values...)
	}
	// As every server of upstream's adds it to who is authenticated by these headers: the API server's own programs name
	// no group.
	if !slices.Contains(c.groups, authenticated) && !slices.Contains(c.groups, unauthenticated) {
		c.groups = append(c.groups, authenticated)
	}
	return c, nil
}

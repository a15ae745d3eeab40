// SPDX-License-Identifier: Apache-2.0

package httpserve

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestOnly(t *testing.T) {
	state := func(s pkix.Name, verified bool) *tls.ConnectionState {
		c := &x509.Certificate{Subject: s}
		state := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}}
		if verified {
			state.VerifiedChains = [][]*x509.Certificate{{c}}
		}
		return state
	}
	answered := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for name, tc := range map[string]struct {
		only string
		tls  *tls.ConnectionState
		want int
	}{
		"the client":                    {"a", state(pkix.Name{CommonName: "a"}, true), http.StatusNoContent},
		"another":                       {"a", state(pkix.Name{CommonName: "b"}, true), http.StatusForbidden},
		"another spelling":              {"a", state(pkix.Name{CommonName: "A"}, true), http.StatusForbidden},
		"in an organization":            {"a", state(pkix.Name{CommonName: "a", Organization: []string{"b"}}, true), http.StatusForbidden},
		"without a name":                {"", state(pkix.Name{}, true), http.StatusForbidden},
		"by a certificate of nobody's":  {"a", state(pkix.Name{CommonName: "a"}, false), http.StatusForbidden},
		"without a certificate, by TLS": {"a", &tls.ConnectionState{}, http.StatusForbidden},
		"without TLS":                   {"a", nil, http.StatusForbidden},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.TLS = tc.tls
		w := httptest.NewRecorder()
		if Only(tc.only, answered).ServeHTTP(w, r); w.Code != tc.want {
			t.Errorf("%s: %d; want %d", name, w.Code, tc.want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

var published = Documents{Discovery: []byte(`{"issuer":"x"}`), Keys: []byte(`{"keys":[]}`)}

func one(id string) (Documents, bool) {
	if id == someID {
		return published, true
	}
	return Documents{}, false
}

// ask sends a request whose path is exactly as written.
func ask(method, path string) *httptest.ResponseRecorder {
	r := &http.Request{Method: method, URL: &url.URL{}, Header: http.Header{}}
	if parsed, err := url.ParseRequestURI(path); err == nil {
		r.URL = parsed
	} else {
		r.URL.Path = path
	}
	w := httptest.NewRecorder()
	Handler(one).ServeHTTP(w, r)
	return w
}

func TestHandler(t *testing.T) {
	for path, want := range map[string][2]string{
		"/id/" + someID + "/.well-known/openid-configuration": {"application/json", `{"issuer":"x"}`},
		"/id/" + someID + "/keys":                             {"application/jwk-set+json", `{"keys":[]}`},
		"/id/" + someID + "/keys?fresh=1":                     {"application/jwk-set+json", `{"keys":[]}`},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			w := ask(method, path)
			h := w.Header()
			if w.Code != http.StatusOK || h.Get("Content-Type") != want[0] || w.Body.String() != want[1] ||
				h.Get("Cache-Control") != "public, max-age=3600" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s %s: %d %v %s", method, path, w.Code, h, w.Body)
			}
		}
	}
}

func TestHandlerRefuses(t *testing.T) {
	other := strings.Repeat("F", 32)
	for _, path := range []string{
		"/", "", "/id", "/id/", "/id/" + someID, "/id/" + someID + "/", "/id/" + someID + "/keys/", "/id/" + someID + "/.well-known",
		"/id/" + someID + "/.well-known/", "/id/" + someID + "/.well-known/openid-configuration/", "/id/" + someID + "//keys", "//id/" + someID + "/keys",
		"/x/id/" + someID + "/keys", "/id/" + someID + "/../" + someID + "/keys", "/id/./" + someID + "/keys", "/id/" + strings.ToLower(someID) + "/keys",
		"/id/" + someID + "0/keys", "/id/" + someID[1:] + "/keys", "/ID/" + someID + "/keys", "/id/" + someID + "/Keys", "/id/" + someID + "/keys%20",
		"/id/" + someID + "%2Fkeys", "/%69d/" + someID + "/keys", "/id/%30" + someID[1:] + "/keys", "/id/" + someID + "/keys;x", "/id/" + someID + "keys",
		"/id/" + other + "/keys", "/id/" + other + "/.well-known/openid-configuration", "/keys", "/openid/v1/jwks", "/.well-known/openid-configuration", "/metrics", "*",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			w := ask(method, path)
			if h := w.Header(); w.Code != http.StatusNotFound || w.Body.String() != "{\"message\":\"not found\"}\n" || h.Get("Content-Type") != "application/json" ||
				h.Get("Cache-Control") != "no-store" || h.Get("Location") != "" {
				t.Errorf("%s %s: %d %v %s", method, path, w.Code, h, w.Body)
			}
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace, "PROPFIND", "get", ""} {
		w := ask(method, "/id/"+someID+"/keys")
		if h := w.Header(); w.Code != http.StatusMethodNotAllowed || h.Get("Allow") != "GET, HEAD" || h.Get("Content-Type") != "application/json" || strings.Contains(w.Body.String(), "keys\"") {
			t.Errorf("%q: %d %v %s", method, w.Code, h, w.Body)
		}
	}
}

// Whatever the path, an answer with a document is for the one way to write it.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"/id/" + someID + "/keys", "/id/" + someID + "/.well-known/openid-configuration", "/id/" + someID + "%2Fkeys", "/id/../id/" + someID + "/keys", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		w := ask(http.MethodGet, path)
		bare, _, _ := strings.Cut(path, "?")
		right := bare == "/id/"+someID+"/keys" || bare == "/id/"+someID+"/.well-known/openid-configuration"
		if (w.Code == http.StatusOK) != right || w.Code != http.StatusOK && w.Code != http.StatusNotFound {
			t.Errorf("%q: %d %s", path, w.Code, w.Body)
		}
	})
}

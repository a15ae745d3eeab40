// SPDX-License-Identifier: Apache-2.0

package readcache

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestWhatARequestWrites(t *testing.T) {
	t.Parallel()
	w := NewWrites("example.com")
	for request, want := range map[string]string{
		"POST /apis/example.com/v1/things":                                "things ",
		"PUT /apis/example.com/v1/things/a":                               "things a",
		"PATCH /apis/example.com/v1/namespaces/x/things/a/status":         "things x/a",
		"DELETE /apis/example.com/v1/namespaces/x/things/a":               "things x/a deleted",
		"DELETE /apis/example.com/v1/namespaces/x/things":                 "things  deleted",
		"POST /prefix/apis/example.com/v1/namespaces/x/things":            "things ",
		"PATCH /apis/example.com/v1/things/a?fieldManager=me&force=false": "things a",
		"PATCH /apis/example.com/v1/things/a?dryRun=All":                  "",
		"GET /apis/example.com/v1/things/a":                               "",
		"POST /apis/example.org/v1/things":                                "",
		"POST /api/v1/namespaces/x/secrets":                               "",
		"POST /apis/example.com/v1":                                       "",
	} {
		method, path, _ := strings.Cut(request, " ")
		parsed, err := url.Parse("https://127.0.0.1" + path)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if target, ok := w.targetOf(&http.Request{Method: method, URL: parsed}); ok {
			got = target.resource + " " + target.key()
			if target.deletes {
				got += " deleted"
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", request, got, want)
		}
	}
}

func FuzzTargetOf(f *testing.F) {
	for _, path := range []string{"/apis/example.com/v1/namespaces/x/things/a/status", "/apis/example.com//", "/apis/example.com/v1/namespaces", "/apis/example.com/v1/namespaces/x"} {
		f.Add(path)
	}
	w := NewWrites("example.com")
	f.Fuzz(func(t *testing.T, path string) {
		target, ok := w.targetOf(&http.Request{Method: http.MethodPut, URL: &url.URL{Path: path}})
		if ok && !strings.Contains(path, target.resource) {
			t.Errorf("%q writes %+v", path, target)
		}
	})
}

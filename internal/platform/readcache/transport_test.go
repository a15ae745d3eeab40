// SPDX-License-Identifier: Apache-2.0

package readcache

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/tools/cache"
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

// answer is a transport that answers with an object, and a body that tells whether it was read.
type answer struct {
	io.Reader
	read bool
}

func (a *answer) Read(into []byte) (int, error) {
	a.read = true
	return a.Reader.Read(into)
}

func (a *answer) Close() error { return nil }

func (a *answer) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: a}, nil
}

// The answer to a write of a kind that nobody follows is left to the client to read.
func TestAnswersOfKindsThatAreNotFollowed(t *testing.T) {
	t.Parallel()
	w := NewWrites("example.com")
	w.follow("things", cache.NewStore(cache.MetaNamespaceKeyFunc))
	for resource, want := range map[string]bool{"things": true, "others": false} {
		a := &answer{Reader: strings.NewReader(`{"kind": "Thing", "metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}}`)}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://127.0.0.1/apis/example.com/v1/"+resource+"/a/status", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&transport{a, w}).RoundTrip(request)
		if err != nil || a.read != want {
			t.Errorf("%s: read %t: %v; want %t", resource, a.read, err, want)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if waits := w.kinds["things"].waiting["a"]; len(waits) != 1 || waits[0].uid != "u" {
		t.Errorf("a followed write is remembered as %+v", waits)
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

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// upstream is a server whose answers a fetch may meet.
func upstream(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "fine") })
	mux.HandleFunc("/missing", http.NotFound)
	mux.HandleFunc("/full", func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, fetchLimit)) })
	mux.HandleFunc("/big", func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, fetchLimit+1)) })
	mux.HandleFunc("/moved", func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/ok", http.StatusFound) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func newWorkload() workload {
	return workload{
		hostname: "pod-1",
		environ:  func() []string { return []string{"B=2", "A=1"} },
		lookup: func(_ context.Context, name string) ([]string, error) {
			if name != "web.default.svc" {
				return nil, errors.New("no such host")
			}
			return []string{"10.100.0.9", "10.100.0.1", "10.100.0.9"}, nil
		},
		client: newClient(),
	}
}

func TestHandler(t *testing.T) {
	base := upstream(t)
	fetch := func(target string) string { return "/fetch?url=" + url.QueryEscape(target) }
	handler := newWorkload().handler()
	for name, tc := range map[string]struct {
		method, path string
		status       int
		body         string // exact when the status is 200, else a part
	}{
		"name":               {path: "/", status: 200, body: "pod-1\n"},
		"environment sorted": {path: "/env", status: 200, body: "A=1\nB=2\n"},
		"resolve":            {path: "/resolve?name=web.default.svc", status: 200, body: "10.100.0.1\n10.100.0.9\n"},
		"resolve unknown":    {path: "/resolve?name=nowhere", status: 502, body: `resolving "nowhere": no such host`},
		"resolve nothing":    {path: "/resolve", status: 400, body: "no name"},
		"fetch":              {path: fetch(base + "/ok"), status: 200, body: "fine"},
		"fetch redirected":   {path: fetch(base + "/moved"), status: 200, body: "fine"},
		"fetch at the limit": {path: fetch(base + "/full"), status: 200, body: strings.Repeat("\x00", fetchLimit)},
		"fetch over it":      {path: fetch(base + "/big"), status: 502, body: "more than 1048576 bytes"},
		"fetch missing":      {path: fetch(base + "/missing"), status: 502, body: "404 Not Found"},
		"fetch a file":       {path: fetch("file:///etc/passwd"), status: 400, body: "is no http or https URL"},
		"fetch no host":      {path: fetch("http://"), status: 400, body: "is no http or https URL"},
		"fetch nothing":      {path: "/fetch", status: 400, body: "is no http or https URL"},
		"fetch nobody":       {path: fetch("http://127.0.0.1:1/"), status: 502, body: "connection refused"},
		"unknown path":       {path: "/other", status: 404, body: "not found"},
		"only GET":           {method: http.MethodPost, path: "/env", status: 405, body: "Method Not Allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			method := tc.method
			if method == "" {
				method = http.MethodGet
			}
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), method, tc.path, nil))
			got := recorder.Body.String()
			if recorder.Code != tc.status {
				t.Errorf("status %d, want %d; body %.200q", recorder.Code, tc.status, got)
			}
			if tc.status == 200 && got != tc.body || !strings.Contains(got, tc.body) {
				t.Errorf("body %.200q, want %.200q", got, tc.body)
			}
		})
	}
}

func TestRun(t *testing.T) {
	t.Setenv("WORKLOAD_TEST", "here")
	base := upstream(t)
	for name, tc := range map[string]struct {
		args  string
		out   string // a part
		usage bool
		err   string // a part
	}{
		"nothing":            {usage: true},
		"unknown":            {args: "dance", usage: true},
		"env":                {args: "env", out: "WORKLOAD_TEST=here\n"},
		"env with argument":  {args: "env x", usage: true},
		"resolve":            {args: "resolve 127.0.0.1", out: "127.0.0.1\n"},
		"resolve nothing":    {args: "resolve", usage: true},
		"fetch":              {args: "fetch " + base + "/ok", out: "fine"},
		"fetch missing":      {args: "fetch " + base + "/missing", err: "404 Not Found"},
		"fetch two":          {args: "fetch a b", usage: true},
		"serve with a word":  {args: "serve x", usage: true},
		"serve on no port":   {args: "serve -listen 127.0.0.1:70000", err: "serving HTTP on 127.0.0.1:70000"},
		"serve unknown flag": {args: "serve -loud", usage: true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), strings.Fields(tc.args), &out)
			if errors.Is(err, errUsage) != tc.usage {
				t.Fatalf("usage error: %v, want %t", err, tc.usage)
			}
			if !tc.usage && (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			if !strings.Contains(out.String(), tc.out) {
				t.Errorf("printed %q, want %q", out.String(), tc.out)
			}
		})
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, []string{"serve", "-listen", "127.0.0.1:0"}, &bytes.Buffer{}) }()
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("serve ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("serve still runs a minute after its context was done")
	}
}

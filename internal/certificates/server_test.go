// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestListenOnLoopbackOnly(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:0": "", "[::ffff:127.0.0.1]:0": "",
		"0.0.0.0:0": "loopback", "[::]:0": "loopback", "192.0.2.1:80": "loopback",
		":0": "not an IP", "localhost:0": "not an IP", "127.0.0.1": "not an IP", "127.0.0.1:99999": "not an IP",
	} {
		l, err := Listen(t.Context(), address)
		if l != nil {
			_ = l.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestServe(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "muster_test_total"}))
	var ready atomic.Bool
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, l, registry, func() error {
			if !ready.Load() {
				return errors.New("machines have not been read yet")
			}
			return nil
		})
	}()
	get := func(path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	for _, tc := range []struct {
		path string
		code int
		text string
	}{
		{"/healthz", 200, "ok"}, {"/readyz", 503, "machines have not been read yet"}, {"/metrics", 200, "muster_test_total 0"}, {"/", 404, ""},
	} {
		if code, text := get(tc.path); code != tc.code || !strings.Contains(text, tc.text) {
			t.Errorf("%s: %d %s", tc.path, code, text)
		}
	}
	ready.Store(true)
	if code, _ := get("/readyz"); code != 200 {
		t.Errorf("ready: %d", code)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2/hpack"
)

// Every fifth is refused.
func TestALoadAsksEachQuestionOnce(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer of "+string(body) {
			t.Errorf("asked %q as %q: %v", body, r.Header.Get("Authorization"), err)
		}
		n := asked.Add(1)
		if n%5 == 0 {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = w.Write(bytes.Repeat(body, 1000))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	address := server.Listener.Addr().String()
	l, err := newLoad(t.Context(), address, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}) //nolint:forcetypeassert // it is
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	all, err := questions(strings.Split(strings.Repeat("a,b,c,d,", 124)+"e", ","), func(token string) (question, error) {
		return newQuestion(http.MethodPost, address, "/", token, hpack.HeaderField{Name: "authorization", Value: "Bearer of " + token})
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.run(t.Context(), all, func(status string, body []byte) error {
		if len(body) != 1000 || strings.Trim(string(body), string(body[:1])) != "" {
			t.Errorf("the answer is %.20q", body)
		}
		if status == "403" {
			return errors.New("refused")
		}
		return succeeded(status, body)
	}, 5000)
	if err != nil || asked.Load() != int64(len(all)) || r.Refused != float64(len(all)/5) {
		t.Errorf("of %d questions %d were asked and %.0f refused: %v", len(all), asked.Load(), r.Refused, err)
	}
	if r.P50 <= 0 || r.P99 < r.P50 || r.Max < r.P99 || r.Rate <= 0 {
		t.Errorf("it took %+v", r)
	}
}

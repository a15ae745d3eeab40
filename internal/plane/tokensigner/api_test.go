// SPDX-License-Identifier: Apache-2.0

package tokensigner

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/tokenkeys"
)

// TestOrdersAreLogged says that a key was published for the one order of three that publishes a key: not for the same
// order again, and not for an order that another one overtook.
func TestOrdersAreLogged(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	ring, err := tokenkeys.New(now.Add(-time.Hour), tokenkeys.ES256, rand.Reader)
	if err == nil {
		err = tokenkeys.Write(filepath.Join(dir, "keys.json"), ring)
	}
	if err != nil {
		t.Fatal(err)
	}
	keys, err := tokenkeys.Open(dir, now)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	handler := api{keys: keys, now: func() time.Time { return now }, log: slog.New(slog.NewTextHandler(&log, nil))}.handler()
	order := `{"after":"` + ring.Last().ID + `","notice":"1h"}`
	for _, tc := range []struct {
		name, order string
		logs        int // in all
	}{
		{"a stale order", `{"after":"a","notice":"1h"}`, 0},
		{"an order", order, 1},
		{"the same order again", order, 1},
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, tokenkeys.PathRotate, strings.NewReader(tc.order))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		if got := strings.Count(log.String(), "published another key"); recorder.Code != http.StatusOK || got != tc.logs {
			t.Errorf("%s: %d, %d lines; want %d:\n%s", tc.name, recorder.Code, got, tc.logs, log.String())
		}
	}
}

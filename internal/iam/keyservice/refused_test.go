// SPDX-License-Identifier: Apache-2.0

package keyservice

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/caller"
)

func TestRefusedOverTheSocket(t *testing.T) {
	b := &backend{}
	s, _ := serverOf(t, b, time.Second)
	socket, _ := onSocket(t, s.Handler().ServeHTTP) // the client is the authenticator of demo
	c := clientOf(t, socket, nil)
	err := c.Refused(t.Context(), Refused{AccessKeyID: "ASIA1", SessionToken: "token", Rule: "host", Saw: "a\x1b[2Jb\n" + strings.Repeat("é", 1000), Fix: "f\xff"})
	if err != nil {
		t.Fatal(err)
	}
	got := b.refused[0]
	if b.by[0] != "demo" {
		t.Errorf("it is told of cluster %q", b.by[0])
	}
	if got.AccessKeyID != "ASIA1" || got.SessionToken != "token" || got.Rule != "host" || !strings.HasPrefix(got.Saw, "a [2Jb é") || !strings.HasSuffix(got.Saw, "é...") || len(got.Saw) > maxReason+3 {
		t.Errorf("got %s, saw %q, fix %q", got, got.Saw, got.Fix)
	}
}

// A client that may ask for the credentials of instances need not be able to say that a token was refused.
func TestRefusedIsNotForTheMetadataService(t *testing.T) {
	s, err := NewServer(ServerConfig{Backend: &backend{}, Credential: Credential(authorityOf(t).Account(t)), Clusters: isDemo, Credentials: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	by(caller.Metadata(), s.Handler()).ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, PathRefused, strings.NewReader(`{}`)))
	if recorder.Code != http.StatusNotFound {
		t.Errorf("it answers %d", recorder.Code)
	}
}

// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// Events that the node could not write are written when it can: it slept, its certificate expired, it joined again.
func TestWatchTellsTheClusterLater(t *testing.T) {
	w := newWatched(t)
	w.certificate("client", -time.Minute)
	w.certificate("server", 20*time.Hour)
	w.token("abcdef.0123456789abcdef")
	forgotten := 0
	w.Forget = func(context.Context) { forgotten++ }
	w.look(t.Context())
	if len(w.posted) > 0 {
		t.Errorf("it was told with an expired certificate: %+v", w.posted)
	}
	w.certificate("client", 20*time.Hour)
	w.unposted = errors.New("the API server is down")
	w.look(t.Context())
	w.look(t.Context())
	if n := strings.Count(w.log.String(), "cannot be told"); n != 1 {
		t.Errorf("that it cannot be told stands %d times in the log: %s", n, w.log)
	}
	w.unposted = nil
	for range 3 {
		w.look(t.Context())
	}
	var reasons []string
	for _, e := range w.posted {
		reasons = append(reasons, e.Reason)
	}
	if want := []string{"Expired", "Rejoined"}; !slices.Equal(reasons, want) || forgotten != 1 {
		t.Errorf("the cluster was told %q, not %q; the token was forgotten %d times", reasons, want, forgotten)
	}
}

func TestEventsAreOfTheNodeAndBounded(t *testing.T) {
	got := event{Reason: reasonOf("Certificate-client"), Text: sentence(Notice{Text: strings.Repeat("ü", 2000), Fix: "x"}), Warning: true, At: time.Now()}.object("a")
	if got.Reason != "CertificateClient" || len(got.Message) > 1024 || got.Type != "Warning" || got.InvolvedObject.Kind != "Node" || got.InvolvedObject.UID != "a" || got.Namespace != "default" {
		t.Errorf("%+v", got)
	}
	q := eventQueue{log: slog.New(slog.DiscardHandler)}
	for i := range 2 * maxEvents {
		q.add(event{Text: fmt.Sprint(i)})
	}
	if len(q.waiting) != maxEvents || q.waiting[0].Text != fmt.Sprint(maxEvents) {
		t.Errorf("%d wait, the first is %s", len(q.waiting), q.waiting[0].Text)
	}
}

// The real way: as the node, to the API server that its kubeconfig names.
func TestEventsArePostedAsTheNode(t *testing.T) {
	var got []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		got = append(got, fmt.Sprintf("%s %s by %d certificates", in.Method, in.URL.Path, len(in.TLS.PeerCertificates)))
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(http.StatusCreated)
		fmt.Fprint(out, `{"apiVersion":"v1","kind":"Event"}`)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	w := newWatched(t)
	w.certificate("client", 20*time.Hour)
	put(t, w.Authorities, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	put(t, w.Kubeconfig, kubeconfigFor(server.URL, w.Authorities, "none"))
	if err := w.postEvents(t.Context(), []event{{Reason: "Address", Text: "x", At: time.Now()}}); err != nil || !slices.Equal(got, []string{"POST /api/v1/namespaces/default/events by 1 certificates"}) {
		t.Errorf("asked %q, %v", got, err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package podwebhook

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/keyservice/keyservicetest"
	"muster.dev/muster/internal/iam/podwebhookconfig"
	"muster.dev/muster/internal/platform/httpserve"
	"muster.dev/muster/internal/platform/mutualclient"
)

const list = `{"identities":[{"namespace":"a","serviceAccount":"associated"}]}`

// told is a webhook that a writer tells, with a file of its own.
func told(t *testing.T, file string) world {
	t.Helper()
	return begin(t, func(c *podwebhookconfig.Configuration) {
		c.ContainerCredentials.File, c.ContainerCredentials.Writer = file, "muster:account"
	}, serviceAccount("associated", role))
}

// TestTheWriterTells has a webhook be told, restarted while the writer is away, and told of nobody.
func TestTheWriterTells(t *testing.T) {
	file := filepath.Join(t.TempDir(), "associations.json")
	w := told(t, file)
	w.associations.look()
	if err := w.associations.ready(); !errors.Is(err, errUntold) {
		t.Errorf("before it was told of anything it is ready: %v", err)
	}
	if err := w.associations.take([]byte(list)); err != nil {
		t.Fatal(err)
	}
	if got := w.asks(t, "associated"); !strings.Contains(got, "FULL_URI") || w.associations.ready() != nil {
		t.Errorf("after it was told: %s, %v", got, w.associations.ready())
	}
	again := told(t, file)
	again.associations.look()
	if got := again.asks(t, "associated"); !strings.Contains(got, "FULL_URI") || again.associations.ready() != nil {
		t.Errorf("after a restart: %s, %v", got, again.associations.ready())
	}
	if err := again.associations.take([]byte(`{"identities":[]}`)); err != nil {
		t.Fatal(err)
	}
	if got := again.asks(t, "associated"); !strings.Contains(got, "AWS_ROLE_ARN") || again.associations.ready() != nil {
		t.Errorf("without associations: %s, %v", got, again.associations.ready())
	}
}

// TestAFileThatIsNotWhole has a webhook begin with one: it believes nothing of it, and waits to be told.
func TestAFileThatIsNotWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "associations.json")
	w := told(t, file)
	if err := w.associations.take([]byte(list)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"half": whole[:len(whole)/2], "empty": nil, "another name": bytes.Replace(whole, []byte("associated"), []byte("everybody1"), 1),
	} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		w.associations.look() // the list of before holds
		if got := w.asks(t, "associated"); !strings.Contains(got, "FULL_URI") {
			t.Errorf("%s: %s", name, got)
		}
		again := told(t, file)
		again.associations.look()
		if !errors.Is(again.associations.ready(), errUntold) || again.associations.has("a", "associated") || again.associations.has("a", "everybody1") {
			t.Errorf("%s: after a restart: %v", name, again.associations.ready())
		}
		if err := again.associations.take([]byte(list)); err != nil || again.associations.ready() != nil {
			t.Errorf("%s: told again: %v", name, err)
		}
	}
	// The file of an operator, and that of the release before, has no digest.
	if err := os.WriteFile(file, []byte(list+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := told(t, file)
	if before.associations.look(); before.associations.ready() != nil || !before.associations.has("a", "associated") {
		t.Errorf("the file of before: %v", before.associations.ready())
	}
}

// TestOnlyTheWriterTells asks by TLS.
func TestOnlyTheWriterTells(t *testing.T) {
	file := filepath.Join(t.TempDir(), "associations.json")
	w := told(t, file)
	authority := keyservicetest.New(t)
	named := func(name string) keyservicetest.Credential {
		return authority.Issue(t, func(c *x509.Certificate) {
			c.Subject = pkix.Name{CommonName: name}
			c.IPAddresses, c.ExtKeyUsage = []net.IP{net.IPv4(127, 0, 0, 1)}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		})
	}
	own := named("pod-identity-webhook")
	server, ca := own.File, own.CA
	c := Config{Logger: slog.New(slog.DiscardHandler), File: podwebhookconfig.Configuration{
		Server:               podwebhookconfig.Server{BindAddress: freeAddress(t), Certificate: server, Key: server, ClientCA: ca, Health: "127.0.0.1:0"},
		ContainerCredentials: podwebhookconfig.ContainerCredentials{File: file, Writer: "muster:account"},
	}}
	ports := httpserve.Set{Logger: c.Logger, Grace: grace}
	if _, err := serve(t.Context(), &ports, c, w.mutator, w.associations.ready); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ports.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	send := func(client, method, kind, body string) int {
		t.Helper()
		h := mutualclient.New(ca, named(client).File, "pod-identity-webhook", time.Minute)
		defer h.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), method, "https://"+c.File.Server.BindAddress+podwebhookconfig.AssociationsPath, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", kind)
		response, err := h.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	const kind, writer = "application/json", "muster:account"
	for name, tc := range map[string]struct {
		client, method, kind, body string
		want                       int
	}{
		"the API server":   {"pod-identity-webhook-client", http.MethodPut, kind, list, http.StatusForbidden},
		"another method":   {writer, http.MethodPost, kind, list, http.StatusMethodNotAllowed},
		"another type":     {writer, http.MethodPut, "text/plain", list, http.StatusUnsupportedMediaType},
		"half a list":      {writer, http.MethodPut, kind, list[:20], http.StatusBadRequest},
		"no list":          {writer, http.MethodPut, kind, `{}`, http.StatusBadRequest},
		"more than a list": {writer, http.MethodPut, kind, `{"identities":[],"more":1}`, http.StatusBadRequest},
		"a digest":         {writer, http.MethodPut, kind, `{"identities":[],"sha256":"0"}`, http.StatusBadRequest},
		"nobody's name":    {writer, http.MethodPut, kind, `{"identities":[{"namespace":"a","serviceAccount":""}]}`, http.StatusBadRequest},
		"a long list":      {writer, http.MethodPut, kind, list + strings.Repeat(" ", maxFile/2), http.StatusBadRequest},
	} {
		if got := send(tc.client, tc.method, tc.kind, tc.body); got != tc.want || !errors.Is(w.associations.ready(), errUntold) {
			t.Errorf("%s: %d, %v; want %d", name, got, w.associations.ready(), tc.want)
		}
	}
	if got := send(writer, http.MethodPut, kind, list); got != http.StatusNoContent || w.associations.ready() != nil {
		t.Errorf("the writer: %d, %v", got, w.associations.ready())
	}
	// A list that cannot be kept does not hold.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Dir(file)); err != nil {
		t.Fatal(err)
	}
	if got := send(writer, http.MethodPut, kind, `{"identities":[]}`); got != http.StatusInternalServerError || !w.associations.has("a", "associated") {
		t.Errorf("without a place for the file: %d", got)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

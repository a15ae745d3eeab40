// SPDX-License-Identifier: Apache-2.0

package tokensigner

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotator"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/plane/signerclient"
	"muster.dev/muster/internal/plane/tokenkeys"
	"muster.dev/muster/internal/platform/mutualclient"
	"muster.dev/muster/internal/platform/statedir"
)

// newCluster has certificates, and a port that nothing listens on.
func newCluster(t *testing.T, dir string) component.Config {
	t.Helper()
	c := component.Config{Dir: statedir.Cluster(dir), Places: portplan.Ports{}.Places(), Network: clusternetworktest.Network()}
	c.Cluster.Spec.Network.ServiceCIDR = "10.100.0.0/16"
	if err := os.MkdirAll(c.Dir.PKI(), 0o700); err != nil {
		t.Fatal(err)
	}
	credentials, err := component.Credentials(c)
	if err == nil {
		_, err = rotator.NewKeys(authority.NewStore(c.Dir.PKI())).Ensure(credentials, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.Places.TokenSigner = component.At(l.Addr().(*net.TCPAddr).AddrPort())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return c
}

// known asks the signer as the account does, until the test ends.
func (w *world) known() *signerclient.Known {
	w.t.Helper()
	k := signerclient.New(w.cluster, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); k.Run(ctx) }()
	w.t.Cleanup(func() { cancel(); <-ended })
	return k
}

// signing is the id of the key that signs, as the account knows it; empty before it does.
func signing(k *signerclient.Known) string {
	ring, err := k.Ring()
	if err != nil {
		return ""
	}
	return ring.Signer(time.Now()).ID
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(deadline) {
			t.Fatal("it does not come about that " + what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// TestTheAccountAsks has the account follow a rotation, and lose the signer, which comes back with the same keys.
func TestTheAccountAsks(t *testing.T) {
	w := newWorld(t)
	k := w.known()
	first := w.ring().Signer(time.Now()).ID
	eventually(t, "the account knows the key", func() bool { return signing(k) == first })
	ring, err := k.Rotate(t.Context(), 0)
	if err != nil || len(ring.Keys()) != 2 {
		t.Fatalf("%v, %v", ring, err)
	}
	second := ring.Last().ID
	eventually(t, "the new key signs", func() bool { return signing(k) == second })
	text, err := w.sign(claims(nil))
	if err != nil || w.verified(text) != nil {
		t.Fatalf("%v, %v", err, w.verified(text))
	}
	for _, key := range ring.Keys() {
		if key.Private != nil {
			t.Errorf("the account has the private part of %s", key.ID)
		}
	}

	// The account goes on with what it knows, also when it is started again.
	w.end()
	if got := signing(k); got != second {
		t.Errorf("while the signer is away, %s signs", got)
	}
	if got := signing(signerclient.New(w.cluster, w.config.Log)); got != second {
		t.Errorf("an account that was started again while the signer is away knows %q", got)
	}
	if _, err := k.Rotate(t.Context(), 0); err == nil {
		t.Error("nobody was told to rotate, and that was no error")
	}

	// The signer goes on with its keys while the account is away.
	w.start()
	again, err := w.sign(claims(nil))
	if err != nil || strings.Split(again, ".")[0] != strings.Split(text, ".")[0] {
		t.Errorf("it signs by another key after a restart: %v", err)
	}
	// Orders that are refused say why, and add nothing.
	if _, err := k.Rotate(t.Context(), -time.Second); err == nil || !strings.HasPrefix(err.Error(), "a key cannot be published -1s") {
		t.Errorf("before now: %v", err)
	}
	if under, err := k.Rotate(t.Context(), time.Hour); err != nil || len(under.Keys()) != 3 {
		t.Errorf("%v, %v", under, err)
	} else if again, err := k.Rotate(t.Context(), time.Minute); err != nil || len(again.Keys()) != 3 || again.Last().Signs != under.Last().Signs {
		t.Errorf("while it is under way: %v, %v", again, err)
	}
}

// TestANewCluster has the signer make its keys, and keep them.
func TestANewCluster(t *testing.T) {
	w := newWorld(t)
	w.end()
	if err := os.RemoveAll(w.cluster.Dir.TokenSigner()); err != nil {
		t.Fatal(err)
	}
	if err := tokenkeys.Begin(w.cluster); err != nil {
		t.Fatal(err)
	}
	w.start()
	text, err := w.sign(claims(nil))
	if err != nil || w.verified(text) != nil {
		t.Fatalf("%v, %v", err, w.verified(text))
	}
	made := w.ring().Last().ID
	w.end()
	w.start()
	if _, err := w.sign(claims(nil)); err != nil || w.ring().Last().ID != made {
		t.Errorf("keys were made anew: %v", err)
	}
}

// TestKeysOfBeforeAreForgotten has the account remove the file that it kept once the signer tells of the keys in it.
func TestKeysOfBeforeAreForgotten(t *testing.T) {
	w := newWorld(t)
	w.end()
	old := w.ring()
	if err := errors.Join(os.RemoveAll(w.config.Keys), os.MkdirAll(filepath.Dir(w.cluster.TokenKeysBefore()), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := tokenkeys.Write(w.cluster.TokenKeysBefore(), old); err != nil {
		t.Fatal(err)
	}
	convert, err := tokenkeys.Convert(w.cluster, time.Now())
	if err == nil {
		err = convert()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.start()
	k := w.known()
	if signing(k) != old.Signer(time.Now()).ID {
		t.Error("the account does not know the keys before the signer tells of them")
	}
	eventually(t, "the file is removed", func() bool {
		_, err := os.Stat(w.cluster.TokenKeysBefore())
		return os.IsNotExist(err)
	})
	text, err := w.sign(claims(nil))
	if err != nil || w.verified(text) != nil || w.ring().Last().ID != old.Last().ID {
		t.Errorf("%v, %v", err, w.verified(text))
	}
}

// TestOthersAreNotAnswered asks as the API server does, as nobody, and as somebody whom another authority vouches for.
func TestOthersAreNotAnswered(t *testing.T) {
	w := newWorld(t)
	if _, err := w.sign(claims(nil)); err != nil { // it serves
		t.Fatal(err)
	}
	ask := func(credential string) (int, error) {
		client := mutualclient.New(w.cluster.Authority(authority.Cluster), credential, component.ServerTokenSigner, 10*time.Second)
		defer client.CloseIdleConnections()
		response, err := client.Get(w.cluster.Places.TokenSigner.URL() + tokenkeys.PathKeys)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	if status, err := ask(w.cluster.Credential(component.CredentialPlane)); err != nil || status != http.StatusOK {
		t.Errorf("the account: %d, %v", status, err)
	}
	for _, name := range []string{"front-proxy-client", "pod-identity-webhook-client", "authenticator-client"} {
		if status, err := ask(w.cluster.Credential(name)); err != nil || status != http.StatusForbidden {
			t.Errorf("%s: %d, %v", name, status, err)
		}
	}
	for _, name := range []string{"service", "etcd-client"} {
		if status, err := ask(w.cluster.Credential(name)); err == nil {
			t.Errorf("%s, of another authority: %d", name, status)
		}
	}
	pool := x509.NewCertPool()
	raw, err := os.ReadFile(w.cluster.Authority(authority.Cluster))
	if err != nil || !pool.AppendCertsFromPEM(raw) {
		t.Fatal(err)
	}
	for name, config := range map[string]*tls.Config{
		"without a certificate": {RootCAs: pool},
		"by TLS 1.1":            {RootCAs: pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
	} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		if response, err := client.Get(w.cluster.Places.TokenSigner.URL() + tokenkeys.PathKeys); err == nil {
			_ = response.Body.Close()
			t.Errorf("%s: %s", name, response.Status)
		}
		client.CloseIdleConnections()
	}
}

// TestQuestionsThatAreRefused changes nothing.
func TestQuestionsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	if _, err := w.sign(claims(nil)); err != nil { // it serves
		t.Fatal(err)
	}
	client := mutualclient.New(w.cluster.Authority(authority.Cluster), w.cluster.Credential(component.CredentialPlane), component.ServerTokenSigner, 10*time.Second)
	defer client.CloseIdleConnections()
	const kind = "application/json"
	for name, tc := range map[string]struct {
		method, path, kind, body string
		want                     int
	}{
		"another path":   {http.MethodGet, "/v1/private", "", "", http.StatusNotFound},
		"another method": {http.MethodDelete, tokenkeys.PathKeys, "", "", http.StatusMethodNotAllowed},
		"no order":       {http.MethodPost, tokenkeys.PathRotate, kind, "", http.StatusBadRequest},
		"another type":   {http.MethodPost, tokenkeys.PathRotate, "text/plain", "{}", http.StatusUnsupportedMediaType},
		"more fields":    {http.MethodPost, tokenkeys.PathRotate, kind, `{"after":"a","notice":"1h","key":"mine"}`, http.StatusBadRequest},
		"a long order":   {http.MethodPost, tokenkeys.PathRotate, kind, `{"after":"` + strings.Repeat("a", tokenkeys.MaxOrder) + `"}`, http.StatusBadRequest},
		"another's":      {http.MethodPost, tokenkeys.PathRotate, kind, `{"after":"a","notice":"1h"}`, http.StatusOK}, // it adds nothing, and says what there is
	} {
		request, err := http.NewRequestWithContext(t.Context(), tc.method, w.cluster.Places.TokenSigner.URL()+tc.path, bytes.NewReader([]byte(tc.body)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", tc.kind)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(response.Body)
		if _ = response.Body.Close(); err != nil || response.StatusCode != tc.want || strings.Contains(string(raw), "PRIVATE") {
			t.Errorf("%s: %s, %s, %v", name, response.Status, raw, err)
		}
	}
	if got := w.ring().Keys(); len(got) != 1 {
		t.Errorf("there are %d keys", len(got))
	}
	if err := os.WriteFile(w.file(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(w.cluster.Places.TokenSigner.URL() + tokenkeys.PathKeys)
	if err != nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("of a damaged file: %v, %v", response, err)
	}
	_ = response.Body.Close()
}

// TestKeysThatAreNotNeededAreRemoved has the signer do so by itself.
func TestKeysThatAreNotNeededAreRemoved(t *testing.T) {
	w := newWorld(t)
	w.end()
	old := w.ring()
	next, err := old.Rotate(time.Now().Add(-time.Hour), 0, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	w.write(next)
	w.start()
	eventually(t, "the private part of the old key is gone", func() bool {
		return slices.IndexFunc(w.ring().Keys(), func(k tokenkeys.Key) bool { return k.Private != nil }) == 1
	})
}

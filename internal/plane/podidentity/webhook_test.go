// SPDX-License-Identifier: Apache-2.0

package podidentity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
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
	"muster.dev/muster/internal/platform/statedir"
)

// webhook answers as the pod identity webhook of a cluster does, and keeps what it was told.
type webhook struct {
	cluster component.Config
	status  int
	lists   []string
}

func newWebhook(t *testing.T) *webhook {
	t.Helper()
	w := &webhook{status: http.StatusNoContent, cluster: component.Config{Dir: statedir.Dir(t.TempDir()).Cluster("blue"), Places: portplan.Ports{}.Places(), Network: clusternetworktest.Network()}}
	c := &w.cluster
	c.Cluster.Spec.Network.ServiceCIDR = "10.100.0.0/16"
	credentials, err := component.Credentials(*c)
	if err == nil {
		err = os.MkdirAll(c.Dir.PKI(), 0o700)
	}
	if err == nil {
		_, err = rotator.NewKeys(authority.NewStore(c.Dir.PKI())).Ensure(credentials, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(c.Credential(component.PodWebhook), c.Credential(component.PodWebhook))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	raw, err := os.ReadFile(c.Authority(authority.FrontProxy))
	if err != nil || !pool.AppendCertsFromPEM(raw) {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPut || r.URL.Path != "/associations" || r.Header.Get("Content-Type") != "application/json" ||
			r.TLS.PeerCertificates[0].Subject.CommonName != component.UserAccount {
			t.Errorf("%s %s by %s: %v", r.Method, r.URL, r.TLS.PeerCertificates[0].Subject, err)
		}
		w.lists = append(w.lists, string(raw))
		answer.WriteHeader(w.status)
	}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	c.Places.PodWebhook = component.At(server.Listener.Addr().(*net.TCPAddr).AddrPort())
	return w
}

func TestTell(t *testing.T) {
	w := newWebhook(t)
	teller := NewWebhook(w.cluster)
	now := time.Now()
	one := []ServiceAccount{{Namespace: "a", Name: "b"}}
	const none, some = `{"identities":[]}`, `{"identities":[{"namespace":"a","serviceAccount":"b"}]}`
	tell := func(accounts []ServiceAccount, at time.Time, want ...string) {
		t.Helper()
		w.lists = nil
		if err := teller.Tell(t.Context(), accounts, at); err != nil || !slices.Equal(w.lists, want) {
			t.Errorf("it is told %q, %v; want %q", w.lists, err, want)
		}
	}
	tell(nil, now, none)
	tell(nil, now.Add(time.Second))
	tell(one, now.Add(2*time.Second), some)
	tell(one, now.Add(3*time.Second))
	// A webhook that has lost its list is told again, in a while.
	tell(one, now.Add(time.Minute), some)
	tell(one, now.Add(-time.Hour), some) // the clock was put back
	w.status = http.StatusForbidden
	if err := teller.Tell(t.Context(), nil, now); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a webhook that refuses: %v", err)
	}
	w.status = http.StatusNoContent
	tell(nil, now, none)
	w.cluster.Places.PodWebhook = component.At(netip.MustParseAddrPort("127.0.0.1:1"))
	if err := NewWebhook(w.cluster).Tell(t.Context(), nil, now); err == nil {
		t.Error("nobody was told, and that was no error")
	}
}

// handOver converts what there is to convert.
func handOver(c component.Config) error {
	convert, err := Convert(c)
	if err != nil || convert == nil {
		return err
	}
	return convert()
}

// TestAssociationsOfBefore has the list that the service wrote be the webhook's, until the webhook was told.
func TestAssociationsOfBefore(t *testing.T) {
	w := newWebhook(t)
	if err := handOver(w.cluster); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.cluster.PodAssociations()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a list in a new cluster: %v", err)
	}
	const before = `{"identities":[{"namespace":"a","serviceAccount":"b"}]}` + "\n"
	write := func(path, content string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(w.cluster.PodAssociationsBefore(), before)
	for range 2 {
		if err := handOver(w.cluster); err != nil {
			t.Fatal(err)
		}
		if raw, err := os.ReadFile(w.cluster.PodAssociations()); err != nil || string(raw) != before {
			t.Errorf("%s, %v", raw, err)
		}
	}
	// A list that the webhook has been told since is not taken back.
	write(w.cluster.PodAssociations(), "newer")
	if err := handOver(w.cluster); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(w.cluster.PodAssociations()); err != nil || string(raw) != "newer" {
		t.Errorf("%s, %v", raw, err)
	}
	if err := NewWebhook(w.cluster).Tell(t.Context(), nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.cluster.PodAssociationsBefore()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the service's file is there still: %v", err)
	}
}

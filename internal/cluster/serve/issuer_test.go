// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/cluster/account"
	"muster.dev/muster/internal/cluster/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/cluster/component"
	"muster.dev/muster/internal/cluster/issuer"
	"muster.dev/muster/internal/cluster/portplan"
	"muster.dev/muster/internal/platform/statedir"
)

func blue(dir statedir.Dir) statedir.Cluster { return dir.Cluster("blue") }

// withIssuers is a state directory after its first start.
func withIssuers(t *testing.T, host string) (statedir.Dir, issuer.Endpoint) {
	t.Helper()
	dir := newDir(t)
	if err := (Session{State: dir, IssuerHost: host}).makeIssuers(); err != nil {
		t.Fatal(err)
	}
	write(t, blue(dir).Record(), "kind: Cluster\n")
	at, err := issuer.ReadEndpoint(dir.Issuers())
	if err != nil {
		t.Fatal(err)
	}
	return dir, at
}

func TestIssuersAreAtTheAccountsAddress(t *testing.T) {
	dir, at := withIssuers(t, "")
	own, err := account.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	permitted := issuer.Permitted(own.Address, 443)
	if at.Name() != own.Address.String() || (at.Port == 443) != permitted || (at.Host == own.Address.String()) != permitted || at.Port != 443 && (at.Port < portplan.Min || at.Port >= portplan.Max) {
		t.Errorf("they are at %+v, the account at %s", at, own.Address)
	}
	private(t, dir.Issuers())
	if err := (Session{State: dir, IssuerHost: "oidc.example.com"}).makeIssuers(); err != nil {
		t.Error(err)
	}
	if again, err := issuer.ReadEndpoint(dir.Issuers()); err != nil || again != at {
		t.Errorf("changed to %+v, %v", again, err)
	}
	i, err := ensureIssuer(dir, blue(dir))
	if err != nil || i.URL != "https://"+at.Host+"/id/"+strings.TrimPrefix(i.URL, "https://"+at.Host+"/id/") || i.Keys != i.URL+"/keys" {
		t.Errorf("%+v, %v", i, err)
	}
	private(t, blue(dir).Issuer())
	if again, err := ensureIssuer(dir, blue(dir)); err != nil || again != i {
		t.Errorf("%+v, %v; want %+v", again, err, i)
	}
	if planned, err := planIssuer(blue(dir)); err != nil || planned.URL != i.URL || planned.Keys != i.Keys {
		t.Errorf("planned %+v, %v", planned, err)
	}
	write(t, dir.Cluster("green").Record(), "kind: Cluster\n")
	if second, err := ensureIssuer(dir, dir.Cluster("green")); err != nil || second.URL == i.URL || !strings.HasPrefix(second.URL, "https://"+at.Host+"/id/") {
		t.Errorf("another cluster's is %+v, %v", second, err)
	}
	other, _ := withIssuers(t, "")
	if second, err := ensureIssuer(other, blue(other)); err != nil || second.URL == i.URL {
		t.Errorf("another account's is %+v, %v", second, err)
	}
}

func TestIssuerHost(t *testing.T) {
	dir, at := withIssuers(t, "oidc.example.com:8443")
	if i, err := ensureIssuer(dir, blue(dir)); err != nil || !strings.HasPrefix(i.URL, "https://oidc.example.com:8443/id/") || at.Name() != "oidc.example.com" || at.Port == 8443 {
		t.Errorf("%+v, %v", i, err)
	}
	for host, want := range map[string]string{
		"":                           "",
		"oidc.example.com:8443":      "",
		"oidc.example.com":           "issuers of the account in " + string(dir) + " are at oidc.example.com:8443, not oidc.example.com, and stay there: leave out the host",
		"https://oidc.example.com/x": `issuer host "https://oidc.example.com/x" must be`,
	} {
		if err := (Session{State: dir, IssuerHost: host}).checkIssuerHost(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", host, err, want)
		}
	}
	if err := (Session{State: newDir(t), IssuerHost: "oidc.example.com"}).checkIssuerHost(); err != nil {
		t.Error("at the first start:", err)
	}
	for _, host := range []string{"sts.us-east-1.amazonaws.com", "000000000000.dkr.ecr.us-east-1.amazonaws.com"} {
		if err := (Session{State: newDir(t), IssuerHost: host}).checkIssuerHost(); err == nil || !strings.Contains(err.Error(), "is a name of the account's AWS APIs") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if err := os.Remove(dir.Issuers()); err != nil {
		t.Fatal(err)
	}
	if err := (Session{State: dir, IssuerHost: "oidc.example.com"}).checkIssuerHost(); err == nil {
		t.Error("where the record was lost any host will do")
	}
}

// A record that was lost is not made anew: tokens and trust policies name what was in it.
func TestLostIssuer(t *testing.T) {
	dir, _ := withIssuers(t, "")
	write(t, filepath.Join(blue(dir).Etcd(), "member", "x"), "")
	_, err := ensureIssuer(dir, blue(dir))
	says(t, err, blue(dir).Issuer()+" is missing, and the cluster is in use: restore the file from a backup")
	if err := os.Remove(dir.Issuers()); err != nil {
		t.Fatal(err)
	}
	_, err = ensureIssuer(dir, blue(dir))
	says(t, err, dir.Issuers()+" is missing, and the state directory is in use: restore the file from a backup")
	_ = (Session{State: dir}).makeIssuers()
	for _, path := range []string{blue(dir).Issuer(), dir.Issuers()} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was made: %v", path, err)
		}
	}
}

func TestPlanIssuer(t *testing.T) {
	dir := newDir(t)
	if i, err := planIssuer(blue(dir)); err != nil || i.URL != "https://ADDRESS/id/ID" || i.Keys != "https://ADDRESS/id/ID/keys" {
		t.Errorf("%+v, %v", i, err)
	}
	write(t, blue(dir).Issuer(), "{")
	_, err := planIssuer(blue(dir))
	says(t, err, "is damaged")
}

// hostIssuer has a cluster run as far as its issuer is concerned.
func hostIssuer(t *testing.T, s *Service, name, host, id string) component.Config {
	t.Helper()
	c := component.Config{Dir: s.cfg.State.Cluster(name), Issuer: component.Issuer{URL: "https://" + host + "/id/" + id}}
	h := s.host(t.Context(), c.Dir)
	c.Cluster.Name, c.State, c.Network, c.Cluster.Spec.Network.ServiceCIDR = name, s.cfg.State, clusternetworktest.Network(), "10.100.0.0/16"
	if err := h.ensureKeys(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := h.ensureTokenKeys(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	own, err := newIssuing(c)
	if err != nil || own.issuer.ID != id {
		t.Fatalf("%+v, %v", own, err)
	}
	h.mu.Lock()
	h.issuing, h.specs = own, c
	h.mu.Unlock()
	return c
}

// TestServeIssuer begins while another program has the port.
func TestServeIssuer(t *testing.T) {
	s := newService(t)
	taken, err := net.Listen("tcp", "127.93.14.201:0")
	if err != nil {
		t.Fatal(err)
	}
	port := taken.Addr().(*net.TCPAddr).Port
	host := net.JoinHostPort("127.93.14.201", strconv.Itoa(port))
	shared := component.Account{State: s.cfg.State, Issuers: component.Issuers{Address: netip.MustParseAddr("127.93.14.201"), Port: port, Host: "127.93.14.201"}}
	if err := s.ensureKeys(shared, time.Now()); err != nil {
		t.Fatal(err)
	}
	clusters := []component.Config{
		hostIssuer(t, s, "blue", host, "0123456789ABCDEF0123456789ABCDEF"), hostIssuer(t, s, "green", host, "FEDCBA9876543210FEDCBA9876543210"),
	}
	s.host(t.Context(), s.cfg.State.Cluster("starting")) // has no documents yet
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { s.serveIssuers(ctx, shared) })
	defer group.Wait()
	defer cancel()
	message := func() string { return s.Status(t.Context()).Message }
	eventually(t, "the status says what is wrong", func() bool {
		return strings.Contains(message(), host+" is in use by another program") && strings.Contains(message(), "stop that program")
	})
	s.say("more important")
	if message() != "more important" {
		t.Errorf("the status says %s", message())
	}
	s.say("")
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is over", func() bool { return message() == "" })

	pool := x509.NewCertPool()
	ca, err := os.ReadFile(shared.Authority(authority.Account))
	if err != nil || !pool.AppendCertsFromPEM(ca) {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	get := func(url string) (status int, fields map[string]any) {
		response, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		raw, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		return response.StatusCode, fields
	}
	published := map[string]bool{}
	for _, c := range clusters {
		status, found := get(c.Issuer.URL + "/.well-known/openid-configuration")
		if status != http.StatusOK || found["issuer"] != c.Issuer.URL || found["jwks_uri"] != c.Issuer.URL+"/keys" {
			t.Errorf("%d %v", status, found)
		}
		status, found = get(c.Issuer.URL + "/keys")
		keys, ok := found["keys"].([]any)
		if status != http.StatusOK || !ok || len(keys) != 1 {
			t.Fatalf("%d %v", status, found)
		}
		published[keys[0].(map[string]any)["kid"].(string)] = true
	}
	if len(published) != len(clusters) {
		t.Errorf("clusters share keys: %v", published)
	}
	if _, ok := s.issuerDocuments(""); ok {
		t.Error("a cluster that has no documents yet is found")
	}
	if status, found := get("https://" + host + "/id/" + strings.Repeat("F", 32) + "/keys"); status != http.StatusNotFound {
		t.Errorf("another cluster's: %d %v", status, found)
	}
}

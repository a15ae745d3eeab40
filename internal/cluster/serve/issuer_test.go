// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
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

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/certificates/authority"
	machines "muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/statedir"
)

func blue(dir statedir.Dir) statedir.Cluster { return dir.Cluster("blue") }

// withIssuers is a state directory after its first start.
func withIssuers(t *testing.T, host string) (statedir.Dir, issuer.Endpoint) {
	t.Helper()
	dir := newDir(t)
	if _, err := (Session{State: dir, IssuerHost: host, IssuerByAddress: host == ""}).makeIssuers(t.Context()); err != nil {
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
	if _, err := (Session{State: dir, IssuerHost: "oidc.example.com"}).makeIssuers(t.Context()); err != nil {
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

// Without a word the issuers have this host's own name, where that does and somebody may listen on the port of https.
func TestIssuersHaveTheHostsName(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.1.1")
	does := func(context.Context) (string, netip.Addr, error) { return "vm", loopback, nil }
	doesNot := func(context.Context) (string, netip.Addr, error) {
		return "", netip.Addr{}, errors.New("it leads elsewhere")
	}
	local := clusterconfig.Default(1, v1alpha1.ProviderLocal)
	for name, test := range map[string]struct {
		session Session
		named   bool
		unnamed string
	}{
		"it does":                    {Session{Wanted: local, thisHost: does}, true, ""},
		"it does not":                {Session{Wanted: local, thisHost: doesNot}, false, "it leads elsewhere"},
		"it does not, without pods":  {Session{Wanted: clusterconfig.Default(1, v1alpha1.ProviderSimulated), thisHost: doesNot}, false, ""},
		"the address is to be taken": {Session{Wanted: local, thisHost: does, IssuerByAddress: true}, false, ""},
	} {
		s := test.session
		s.State = newDir(t)
		unnamed, err := s.makeIssuers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		at, err := issuer.ReadEndpoint(s.State.Issuers())
		if err != nil {
			t.Fatal(err)
		}
		own, err := account.Read(s.State)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case !machines.Possible(): // pods there are none then
			test.named, test.unnamed = false, ""
		case at.Port != issuer.DefaultPort && !s.IssuerByAddress && s.wantsLocal():
			test.named, test.unnamed = false, "may not listen on port 443"
		}
		want := issuer.At(own.Address, at.Port)
		if test.named {
			want = issuer.Endpoint{Host: "vm", Port: 443, Loopback: loopback}
		}
		if at != want || (unnamed == nil) != (test.unnamed == "") || unnamed != nil && !strings.Contains(unnamed.Error(), test.unnamed) {
			t.Errorf("%s: %+v, %v; want %+v, %q", name, at, unnamed, want, test.unnamed)
		}
		if again, err := s.makeIssuers(t.Context()); again != nil || err != nil {
			t.Errorf("%s, once they are made: %v, %v", name, again, err)
		}
		byAddress := Session{State: s.State, IssuerByAddress: true}.checkIssuerHost()
		if (byAddress == nil) == test.named || test.named && !strings.Contains(byAddress.Error(), "are at vm, not at an address, and stay there") {
			t.Errorf("%s, asked for an address later: %v", name, byAddress)
		}
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
	_, _ = (Session{State: dir}).makeIssuers(t.Context())
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
	byName, err := net.Listen("tcp", net.JoinHostPort("127.93.14.204", strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	shared := component.Account{State: s.cfg.State, Issuers: component.Issuers{
		Address: netip.MustParseAddr("127.93.14.201"), Port: port, Host: "localhost", Loopback: netip.MustParseAddr("127.93.14.204"),
	}}
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
		return strings.Contains(message(), fmt.Sprintf("%s is in use by %s (process %d)", host, filepath.Base(os.Args[0]), os.Getpid())) && strings.Contains(message(), "stop that program")
	})
	s.say("more important")
	if message() != "more important" {
		t.Errorf("the status says %s", message())
	}
	if notes := s.Status(t.Context()).Notes; len(notes) == 0 || !strings.HasPrefix(notes[0], host+" is in use by ") {
		t.Errorf("it notes %q", notes)
	}
	s.say("")
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other address is left", func() bool { return strings.HasPrefix(message(), byName.Addr().String()+" is in use") })
	if err := byName.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is over", func() bool { return message() == "" && len(s.Status(t.Context()).Notes) == 0 })
	s.mu.Lock()
	if !strings.Contains(s.issuerNote, "localhost leads to [") {
		t.Errorf("of a name that leads elsewhere it notes %q", s.issuerNote)
	}
	s.mu.Unlock()

	pool := x509.NewCertPool()
	ca, err := os.ReadFile(shared.Authority(authority.Account))
	if err != nil || !pool.AppendCertsFromPEM(ca) {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	// Programs of the host find the name at the other address.
	for _, at := range []string{"127.93.14.201", "127.93.14.204"} {
		connection, err := tls.Dial("tcp", net.JoinHostPort(at, strconv.Itoa(port)), &tls.Config{RootCAs: pool, ServerName: "localhost"})
		if err != nil {
			t.Fatal(at, err)
		}
		_ = connection.Close()
	}
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

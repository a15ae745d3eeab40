// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
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
	"muster.dev/muster/internal/cluster/serviceaccounts"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/plane/signerclient"
	"muster.dev/muster/internal/plane/tokenkeys"
)

// hostIssuer has a cluster run as far as its issuer is concerned.
func hostIssuer(t *testing.T, s *Service, name, host, id string) component.Config {
	t.Helper()
	c := component.Config{Dir: s.cfg.State.Cluster(name), Places: portplan.Ports{}.Places(), Issuer: component.Issuer{URL: "https://" + host + "/id/" + id}}
	h := s.host(t.Context(), c.Dir)
	c.Cluster.Name, c.State, c.Network, c.Cluster.Spec.Network.ServiceCIDR = name, s.cfg.State, clusternetworktest.Network(), "10.100.0.0/16"
	if err := h.ensureKeys(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	ring, err := tokenkeys.New(time.Now(), tokenkeys.RS256, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := tokenkeys.WritePublic(c.Dir.TokenKeys(), ring); err != nil { // as its signer told
		t.Fatal(err)
	}
	signer := signerclient.New(c, h.log)
	own, err := tokenkeys.NewIssuing(c.Issuer.URL, signer.Ring)
	if err != nil || own.Issuer.ID != id {
		t.Fatalf("%+v, %v", own, err)
	}
	h.mu.Lock()
	h.specs, h.accounts = c, serviceaccounts.Cluster{Specs: c, Signer: signer, Issuing: own}
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
	shared := component.Account{State: s.cfg.State, Places: portplan.AccountPorts{}.Places(), Issuers: component.Issuers{
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
	if note := s.issuers.Note(component.Config{Account: shared}, true); !strings.Contains(note, "localhost leads to [") {
		t.Errorf("of a name that leads elsewhere it notes %q", note)
	}

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
	if _, ok := s.serviceAccounts().Documents(""); ok {
		t.Error("a cluster that has no documents yet is found")
	}
	if status, found := get("https://" + host + "/id/" + strings.Repeat("F", 32) + "/keys"); status != http.StatusNotFound {
		t.Errorf("another cluster's: %d %v", status, found)
	}
}

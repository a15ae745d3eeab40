// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// watched is a node whose watch is looked at.
type watched struct {
	*watcher
	t        *testing.T
	log      *bytes.Buffer
	restarts int
	posted   []event
	unposted error    // the error of writing events
	groups   []string // of the holder of the good token
}

// newWatched is a node that has joined, of an API server that takes one token and publishes nothing.
func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{t: t, log: &bytes.Buffer{}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		switch {
		case !strings.HasSuffix(in.URL.Path, "/selfsubjectreviews"):
			out.WriteHeader(http.StatusNotFound)
		case in.Header.Get("Authorization") != "Bearer abcdef.0123456789abcdef":
			out.WriteHeader(http.StatusUnauthorized)
		default:
			out.WriteHeader(http.StatusCreated)
			fmt.Fprintf(out, `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","status":{"userInfo":{"username":"system:bootstrap:abcdef","groups":[%s]}}}`, strings.Join(w.groups, ","))
		}
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.crt")
	put(t, ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	w.watcher = newWatcher(WatchConfig{
		CertDir: t.TempDir(), Kubeconfig: filepath.Join(dir, "kubeconfig"), Authorities: ca, BootstrapKubeconfig: filepath.Join(dir, "bootstrap"), Owned: true,
		Give:    "give it to this machine",
		Notices: filepath.Join(dir, "run", "notices.json"), Log: slog.New(slog.NewTextHandler(w.log, nil)),
		NodeIP:     func() netip.Addr { return netip.MustParseAddr("192.168.64.11") },
		Restart:    func(context.Context) error { w.restarts++; return nil },
		started:    func() (time.Time, bool) { return time.Now().Add(-time.Hour), true },
		interfaces: func() ([]net.Addr, error) { return addresses("127.0.0.1/8", "192.168.64.11/18"), nil },
		post: func(_ context.Context, events []event) error {
			if w.unposted == nil {
				w.posted = append(w.posted, events...)
			}
			return w.unposted
		},
	})
	put(t, w.Kubeconfig, kubeconfigFor(server.URL, ca, "none"))
	w.certificate("client", time.Hour)
	w.certificate("server", time.Hour)
	return w
}

func addresses(texts ...string) []net.Addr {
	var all []net.Addr
	for _, text := range texts {
		ip, network, err := net.ParseCIDR(text)
		if err != nil {
			continue
		}
		network.IP = ip
		all = append(all, network)
	}
	return all
}

func put(t *testing.T, path string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func kubeconfigFor(server, ca, token string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: %q, certificate-authority: %q}}
contexts:
- {name: x, context: {cluster: c, user: u}}
current-context: x
users:
- {name: u, user: {token: %q}}
`, server, ca, token)
}

// token gives the node a bootstrap token.
func (w *watched) token(token string) {
	w.t.Helper()
	raw, err := os.ReadFile(w.Kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	put(w.t, w.BootstrapKubeconfig, bytes.Replace(raw, []byte(`"none"`), []byte(token), 1))
}

// certificate gives the node a certificate that lives for so long from now on; it was made two hours ago.
func (w *watched) certificate(kind string, left time.Duration) {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "system:node:a", Organization: []string{"system:nodes"}},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(left), IPAddresses: []net.IP{net.IPv4(192, 168, 64, 11)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.CertDir, "kubelet-"+kind+"-2026-11-20-18-55-12.pem")
	put(w.t, path, append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})...))
	link := filepath.Join(w.CertDir, "kubelet-"+kind+"-current.pem")
	_ = os.Remove(link)
	if err := os.Symlink(path, link); err != nil {
		w.t.Fatal(err)
	}
}

// expect looks a few times and wants one notice of a code to have been said once, and to stand in the file.
func (w *watched) expect(code, text string) {
	w.t.Helper()
	w.log.Reset()
	for range 3 {
		w.look(w.t.Context())
	}
	if n := strings.Count(w.log.String(), "needs attention"); n != 1 || !strings.Contains(w.log.String(), "code="+code+" ") || !strings.Contains(w.log.String(), text) {
		w.t.Errorf("said %d times, and want %s %q once:\n%s", n, code, text, w.log)
	}
	open, err := ReadNotices(w.Notices)
	if err != nil || len(open) != 1 || open[0].Code != code || !strings.Contains(open[0].Text, text) || open[0].Since.IsZero() {
		w.t.Errorf("the notices are %v (%v)", open, err)
	}
}

// expectNothing looks, and wants nothing to be said or to be open.
func (w *watched) expectNothing() {
	w.t.Helper()
	w.look(w.t.Context())
	w.log.Reset()
	w.look(w.t.Context())
	if w.log.Len() > 0 || len(w.notices.open) > 0 {
		w.t.Errorf("said %s, and open are %v", w.log, w.notices.open)
	}
}

func TestWatchOfAHealthyNode(t *testing.T) {
	w := newWatched(t)
	w.certificate("client", 20*time.Hour)
	w.certificate("server", 20*time.Hour)
	w.expectNothing()
	if w.restarts != 0 {
		t.Errorf("the kubelet was restarted %d times", w.restarts)
	}
}

// A node whose certificate expired while it slept says once what to do; with a token that is good it joins again, once.
func TestWatchOfAnExpiredCertificate(t *testing.T) {
	w := newWatched(t)
	w.certificate("client", -time.Minute)
	w.expect("Expired", "there is no bootstrap token to join with again")
	if said := w.log.String(); !strings.Contains(said, "muster token create --node-name a --rejoin") || !strings.Contains(said, "give it to this machine") || strings.Contains(said, "csr approve") {
		t.Errorf("it does not say what to do: %s", w.log)
	}
	w.token("abcdef.expiredexpired00")
	w.expect("Expired", "the API server does not accept its token")
	if strings.Contains(w.log.String(), "expiredexpired00") || w.restarts != 0 {
		t.Errorf("%d restarts, and the log says %s", w.restarts, w.log)
	}
	w.Rejoin = func(context.Context) error { w.token("abcdef.0123456789abcdef"); return nil }
	w.expect("Expired", "so it asks for a certificate by it; there is a Node of that name")
	if w.restarts != 1 || !strings.Contains(w.log.String(), "muster csr approve") || !strings.Contains(w.log.String(), "--rejoin") {
		t.Errorf("the kubelet was restarted %d times for one token, and the log says %s", w.restarts, w.log)
	}
	w.certificate("client", 20*time.Hour)
	w.certificate("server", 20*time.Hour)
	w.expectNothing()
	if exists(w.BootstrapKubeconfig) {
		t.Error("the token is still there")
	}
	if raw, err := os.ReadFile(w.Notices); err != nil || string(raw) != "[]\n" {
		t.Errorf("the notices are %s (%v)", raw, err)
	}
	w.certificate("client", -time.Minute)
	w.Rejoin = func(context.Context) error { return errors.New("the metadata service is down") }
	w.expect("Expired", "the metadata service is down")
}

// A token that was made for this very node to join again needs nobody, and that is said. A token for another node is
// not enough.
func TestWatchOfANodeThatMayJoinAgain(t *testing.T) {
	for group, needs := range map[string]bool{"rejoin:a": false, "rejoin:b": true, "name:a": true} {
		w := newWatched(t)
		w.groups = []string{`"system:bootstrappers"`, `"system:bootstrappers:muster:` + group + `"`}
		w.certificate("client", -time.Minute)
		w.token("abcdef.0123456789abcdef")
		w.look(t.Context())
		if said := w.log.String(); strings.Contains(said, "muster csr approve") != needs || strings.Contains(said, "so it does") == needs || w.restarts != 1 {
			t.Errorf("%s: %d restarts, and the log says %s", group, w.restarts, said)
		}
	}
}

// A kubelet that asks by the token already is left alone: a certificate that was issued to the one before would be
// nobody's, and the token is good for one.
func TestWatchLeavesAKubeletAloneThatAsks(t *testing.T) {
	for name, test := range map[string]struct {
		ago      time.Duration
		runs     bool
		busy     bool
		restarts int
	}{
		"it runs for long":         {time.Hour, true, false, 1},
		"it does not run":          {0, false, false, 1},
		"it starts":                {5 * time.Second, true, false, 0},
		"it has just been started": {0, true, false, 0},
		"by muster join":           {time.Hour, true, true, 0},
	} {
		w := newWatched(t)
		w.started = func() (time.Time, bool) { return time.Now().Add(-test.ago), test.runs }
		w.Busy = func() bool { return test.busy }
		w.certificate("client", -time.Minute)
		w.token("abcdef.0123456789abcdef")
		w.look(t.Context())
		w.look(t.Context())
		if w.restarts != test.restarts {
			t.Errorf("%s: %d restarts", name, w.restarts)
		}
	}
}

// The token goes when the node has a certificate, whatever was known of it: the watch may have been ended meanwhile,
// and another program may have had the kubelet use it. A token that the node's operator has put there stays.
func TestWatchRemovesTheToken(t *testing.T) {
	w := newWatched(t)
	forgotten := 0
	w.Forget = func(context.Context) { forgotten++ }
	w.token("abcdef.0123456789abcdef")
	w.certificate("client", -time.Minute)
	w.look(t.Context())
	if !exists(w.BootstrapKubeconfig) || forgotten > 0 {
		t.Error("the token is gone before it has served")
	}
	w.certificate("client", 20*time.Hour)
	w.watcher = newWatcher(w.WatchConfig)
	w.look(t.Context())
	w.look(t.Context())
	if exists(w.BootstrapKubeconfig) || forgotten != 1 {
		t.Errorf("a watch that was started since leaves the token, or forgets it %d times", forgotten)
	}
	w.Owned = false
	w.token("abcdef.0123456789abcdef")
	w.look(t.Context())
	if !exists(w.BootstrapKubeconfig) {
		t.Error("somebody else's is removed")
	}
}

// A node that joined by its machine's role has no client certificate to miss, and tells the cluster of all else.
func TestWatchOfANodeThatJoinedByRole(t *testing.T) {
	w := newWatched(t)
	put(t, w.Kubeconfig, []byte("apiVersion: v1\nkind: Config\nusers: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: none, interactiveMode: Never}}}]\n"))
	w.certificate("client", -time.Minute)
	w.looks = 1 // the authorities to trust are another matter
	w.look(t.Context())
	if len(w.posted) != 0 || w.restarts != 0 {
		t.Errorf("all is well, and it tells %+v, restarts %d", w.posted, w.restarts)
	}
	w.certificate("server", time.Minute)
	w.look(t.Context())
	if len(w.posted) != 1 || w.posted[0].Reason != "CertificateServer" {
		t.Errorf("the cluster was told %+v", w.posted)
	}
	w.certificate("server", -time.Minute) // it slept: as its role it comes in as before, and asks for another by itself
	w.look(t.Context())
	if _, told := w.notices.open["Expired"]; told || w.restarts != 0 {
		t.Errorf("open are %+v, restarts %d", w.notices.open, w.restarts)
	}
}

func TestWatchOfACertificateThatIsOverdue(t *testing.T) {
	w := newWatched(t)
	w.certificate("client", time.Minute)
	w.certificate("server", 20*time.Hour)
	w.expect("Certificate-client", "the kubelet should have replaced it by")
	w.certificate("client", 20*time.Hour)
	w.expectNothing()
}

// A rotation of the kubelet's own that was killed half way is completed, and the kubelet starts anew.
func TestWatchOfAnInterruptedRotation(t *testing.T) {
	w := newWatched(t)
	w.certificate("client", 20*time.Hour)
	w.certificate("server", 20*time.Hour)
	link := filepath.Join(w.CertDir, "kubelet-client-current.pem")
	if err := os.Rename(link, strings.Replace(link, "current", "updated", 1)); err != nil {
		t.Fatal(err)
	}
	w.look(t.Context())
	if !exists(link) || w.restarts != 1 {
		t.Errorf("the link is there: %v; %d restarts", exists(link), w.restarts)
	}
	w.expectNothing()
}

// A cluster whose authority is another than the node knows is not believed, and that is said.
func TestWatchOfAnAPIServerThatCannotBeVerified(t *testing.T) {
	w := newWatched(t)
	w.certificate("client", 20*time.Hour)
	w.certificate("server", 20*time.Hour)
	raw, err := os.ReadFile(filepath.Join(w.CertDir, "kubelet-client-current.pem"))
	if err != nil {
		t.Fatal(err)
	}
	certificate, _, _ := bytes.Cut(raw, []byte("-----BEGIN EC"))
	put(t, w.Authorities, certificate)
	w.expect("Authorities", "cannot be verified with the authorities that the node has")
}

// A node that has not joined is nothing to this watch.
func TestWatchOfANodeThatHasNotJoined(t *testing.T) {
	w := newWatched(t)
	w.CertDir = t.TempDir()
	w.expectNothing()
}

func TestWatchEndsWithItsContext(t *testing.T) {
	w := newWatched(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	Watch(ctx, w.WatchConfig)
}

func TestAnswerRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "restart-kubelet")
	ctx, cancel := context.WithCancel(t.Context())
	done, asked := make(chan struct{}), make(chan struct{}, 8)
	go func() {
		defer close(done)
		answerRestarts(ctx, path, slog.New(slog.DiscardHandler), func() { asked <- struct{}{} })
	}()
	put(t, path, nil)
	<-asked
	if !poll(t.Context(), time.Millisecond, func() bool { return !exists(path) }) {
		t.Error("the request is still there")
	}
	cancel()
	<-done
	put(t, path, nil)
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || rootsOwn(info) {
		t.Errorf("a request that anybody can write is taken (%v)", err)
	}
}

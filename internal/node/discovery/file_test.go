// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"crypto/x509"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/node/discovery"
)

// file is a discovery file with a user whose credentials nobody may touch.
func file(server, authority string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: other\n  cluster: {server: 'https://other.example'}\n- name: blue\n  cluster: {server: '" + server + "'" + authority +
		"}\ncontexts:\n- name: c\n  context: {cluster: blue, user: u}\nusers:\n- name: u\n  user:\n    tokenFile: /nonexistent\n    exec: {apiVersion: client.authentication.k8s.io/v1, command: /nonexistent, interactiveMode: Never}\n"
}

func data(a authority) string {
	return ", certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte(a.pem()))
}

func save(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "discovery.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestByFile(t *testing.T) {
	ca := newAuthority(t, "blue")
	for name, answers := range map[string]answer{
		"cluster-info that differs":  {kubeconfig: kubeconfig("https://api.blue.example:6443", newAuthority(t, "new"))},
		"no cluster-info":            {status: 404},
		"cluster-info of nobody":     {status: 403},
		"cluster-info that is trash": {kubeconfig: "trash"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, ca)
			f.will(answers)
			var said []string
			r, err := discovery.Discover(t.Context(), discovery.Config{File: save(t, file(f.URL, data(ca))), Timeout: time.Second, Progress: func(s string) { said = append(said, s) }})
			if err != nil || r.Endpoint != f.URL || string(r.CA) != ca.pem() || !strings.Contains(r.How, "discovery.yaml names it") {
				t.Fatalf("got %+v, %v", r, err)
			}
			if len(said) != 1 || !strings.Contains(said[0], "credentials are not used") {
				t.Errorf("said %q", said)
			}
			if f.headers[0].Get("Authorization") != "" {
				t.Error("it showed credentials")
			}
		})
	}
}

func TestByFileWithAFileBesideIt(t *testing.T) {
	ca := newAuthority(t, "blue")
	f := newFake(t, ca)
	name := save(t, file(f.URL, ", certificate-authority: ca.crt"))
	c := discovery.Config{File: name, Timeout: time.Second, CACertHashes: []string{discovery.Pin(ca.cert)}, Settle: time.Nanosecond}
	_, err := discovery.Discover(t.Context(), c)
	refused(t, err, discovery.BadFile, "its certificate-authority", "no such file")
	if err := os.WriteFile(filepath.Join(filepath.Dir(name), "ca.crt"), []byte(ca.pem()), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := discovery.Discover(t.Context(), c)
	if err != nil || string(r.CA) != ca.pem() || !strings.Contains(r.How, "the pinned one, "+discovery.Pin(ca.cert)) {
		t.Errorf("got %+v, %v", r, err)
	}
	c.CACertHashes = []string{discovery.Pin(newAuthority(t, "other").cert)}
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.WrongCA)
}

// A file without an authority: the system's vouch for the server, whose cluster-info tells the cluster's.
func TestByFileWithoutAnAuthority(t *testing.T) {
	public, ca := newAuthority(t, "public"), newAuthority(t, "blue")
	f := newFake(t, public)
	f.will(answer{kubeconfig: kubeconfig(f.URL, ca)})
	pool := x509.NewCertPool()
	pool.AddCert(public.cert)
	c := discovery.Config{File: save(t, file(f.URL, "")), Timeout: 10 * time.Second, Settle: time.Nanosecond, SystemRoots: pool}
	r, err := discovery.Discover(t.Context(), c)
	if err != nil || string(r.CA) != ca.pem() || !strings.HasSuffix(r.How, "the system's authorities vouch for its server") {
		t.Errorf("got %+v, %v", r, err)
	}
	c.CACertHashes = []string{discovery.Pin(public.cert)}
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.WrongCA)
	c.CACertHashes = nil
	f.will(answer{kubeconfig: "trash"})
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.Malformed, "put certificate-authority-data into the file")
	f.will(answer{status: 403})
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.Refused)
	c.SystemRoots = nil
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.WrongServer, `signed by "CN=public"`)
}

// An attacker who can change the file, or pass for its server, can put another authority beside the cluster's. The hash
// is of one: only that one is believed.
func TestByFileOnlyThePinnedAuthorityIsBelieved(t *testing.T) {
	public, ca, intruder := newAuthority(t, "public"), newAuthority(t, "blue"), newAuthority(t, "intruder")
	both := base64.StdEncoding.EncodeToString([]byte(intruder.pem() + ca.pem()))
	for name, answers := range map[string]answer{
		"cluster-info":    {kubeconfig: kubeconfig("https://api.blue.example:6443", ca)},
		"no cluster-info": {status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, ca)
			f.will(answers)
			name := save(t, file(f.URL, ", certificate-authority-data: "+both))
			r, err := discovery.Discover(t.Context(), discovery.Config{File: name, Timeout: time.Second, CACertHashes: []string{discovery.Pin(ca.cert)}})
			if err != nil || string(r.CA) != ca.pem() {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
	t.Run("a file without an authority", func(t *testing.T) {
		f := newFake(t, public)
		f.will(answer{kubeconfig: kubeconfig(f.URL, intruder, ca)})
		pool := x509.NewCertPool()
		pool.AddCert(public.cert)
		r, err := discovery.Discover(t.Context(), discovery.Config{
			File: save(t, file(f.URL, "")), Timeout: time.Second, SystemRoots: pool, CACertHashes: []string{discovery.Pin(ca.cert)},
		})
		if err != nil || string(r.CA) != ca.pem() {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

func TestFilesThatAreRefused(t *testing.T) {
	ca := newAuthority(t, "blue")
	for name, tc := range map[string]struct {
		text string
		says string
	}{
		"nothing":          {"", "not one YAML document"},
		"too large":        {"#" + strings.Repeat("a", 1<<20), "more than"},
		"a plain list":     {"- a\n", "cannot be read"},
		"no context":       {strings.Replace(file("https://a:1", data(ca)), "current-context: c\n", "", 1), "2 clusters"},
		"http":             {file("http://a:1", data(ca)), "not https"},
		"no server":        {file("", data(ca)), "HOST:PORT"},
		"trusting anybody": {file("https://a:1", ", insecure-skip-tls-verify: true"), "insecure-skip-tls-verify"},
		"no certificate":   {file("https://a:1", ", certificate-authority-data: QQ=="), "no authority in PEM"},
		"an unknown field": {file("https://a:1", data(ca)+", x: y"), "x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := discovery.Discover(t.Context(), discovery.Config{File: save(t, tc.text), Timeout: time.Second})
			refused(t, err, discovery.BadFile, tc.says)
		})
	}
	_, err := discovery.Discover(t.Context(), discovery.Config{File: filepath.Join(t.TempDir(), "none")})
	refused(t, err, discovery.BadFile, "no such file")
	_, err = discovery.Discover(t.Context(), discovery.Config{File: "http://u:" + half + "@a/x?key=" + half})
	refused(t, err, discovery.BadFile, "neither a path nor a https URL", "http://u:xxxxx@a/x?…")
	c := discovery.Config{File: save(t, file("https://127.0.0.1:1", data(ca))), Timeout: 100 * time.Millisecond}
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.Unreachable, "gave up after 100ms")
}

func TestByURL(t *testing.T) {
	public, ca := newAuthority(t, "public"), newAuthority(t, "blue")
	f := newFake(t, ca)
	pool := x509.NewCertPool()
	pool.AddCert(public.cert)
	text, status := "", http.StatusOK
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "https://elsewhere.example/")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}))
	site.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	site.StartTLS()
	defer site.Close()
	site.TLS.Certificates[0] = public.server(t)
	c := discovery.Config{File: site.URL + "/d?key=" + half, Timeout: 300 * time.Millisecond, Settle: time.Nanosecond, SystemRoots: pool}

	text = file(f.URL, data(ca))
	r, err := discovery.Discover(t.Context(), c)
	if err != nil || r.Endpoint != f.URL || string(r.CA) != ca.pem() || strings.Contains(r.How, half) {
		t.Fatalf("got %+v, %v", r, err)
	}
	text = file(f.URL, ", certificate-authority: /etc/ssl/certs/ca-certificates.crt")
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.BadFile, "comes from another machine")
	text = strings.Repeat("#", 1<<20)
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.BadFile, "more than 512 KiB")
	text, status = "", http.StatusFound
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.BadFile, "(302)", "not followed")
	status = http.StatusServiceUnavailable
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.Unreachable, "gave up after 300ms", "(503)")
	c.SystemRoots = x509.NewCertPool()
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.BadFile, "do not vouch")
	c.File = "https://127.0.0.1:1/x"
	_, err = discovery.Discover(t.Context(), c)
	refused(t, err, discovery.Unreachable, "connection refused")
}

// FuzzReadClusterInfo holds that whatever a cluster says, what is believed of it is an https address and certificates.
func FuzzReadClusterInfo(f *testing.F) {
	f.Add("apiVersion: v1\nkind: Config\nclusters:\n- name: ''\n  cluster: {certificate-authority-data: QQ==, server: 'https://a:1'}\n")
	f.Add("apiVersion: v1\nclusters: null\nkind: Config\nusers: null\n---\n")
	f.Add("a: &a [*a]\n")
	f.Add("{\"apiVersion\":\"v1\",\"kind\":\"Config\",\"clusters\":[{\"cluster\":{\"server\":\"https://[::1]:6443\"}}]}")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := discovery.ReadClusterInfo(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("an error of several lines: %q", err)
			}
			return
		}
		if !strings.HasPrefix(c.Server, "https://") || len(c.Authorities) == 0 {
			t.Errorf("believed %+v", c)
		}
		if pins, err := discovery.Pins(c.CA); err != nil || len(pins) == 0 {
			t.Errorf("pins %v, %v", pins, err)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/bundle"
)

// apiServer publishes authorities, and shows a certificate of one.
type apiServer struct {
	*httptest.Server
	published []byte
	code      int
	anonymous bool // takes every token for nobody's
}

func newAPIServer(t *testing.T, signer *authority) *apiServer {
	t.Helper()
	s := &apiServer{code: http.StatusOK}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(in.URL.Path, "/selfsubjectreviews") {
			if in.Header.Get("Authorization") != "Bearer abcdef.0123456789abcdef" {
				out.WriteHeader(http.StatusUnauthorized)
				return
			}
			user := "system:bootstrap:abcdef"
			if s.anonymous {
				user = "system:anonymous"
			}
			out.WriteHeader(http.StatusCreated)
			fmt.Fprintf(out, `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","status":{"userInfo":{"username":%q,"groups":["one","two"]}}}`, user)
			return
		}
		if in.URL.Path != clusterInfo || in.Header.Get("Authorization") != "" || len(in.TLS.PeerCertificates) > 0 {
			t.Errorf("asked %s with a credential, or for something else", in.URL.Path)
		}
		out.WriteHeader(s.code)
		_ = json.NewEncoder(out).Encode(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-info"}, Data: map[string]string{"kubeconfig": fmt.Sprintf(
			"apiVersion: v1\nkind: Config\nclusters:\n- name: \"\"\n  cluster: {server: %q, certificate-authority-data: %s}\n", s.URL, base64.StdEncoding.EncodeToString(s.published))}})
	}))
	pair := signer.pair(Serving, func(c *x509.Certificate) {
		c.Subject, c.DNSNames, c.IPAddresses = pkix.Name{CommonName: "kube-apiserver"}, nil, []net.IP{net.IPv4(127, 0, 0, 1)}
	})
	certificate, err := tls.X509KeyPair(pair, pair)
	if err != nil {
		t.Fatal(err)
	}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// signedBy is the certificate of an authority that another signed.
func signedBy(t *testing.T, a, by *authority) *x509.Certificate {
	t.Helper()
	template := *a.certificate
	template.SerialNumber = big.NewInt(4711)
	der, err := x509.CreateCertificate(rand.Reader, &template, by.certificate, a.certificate.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRefreshAuthorities(t *testing.T) {
	t.Parallel()
	first, second, stranger := newAuthority(t, "first"), newAuthority(t, "second"), newAuthority(t, "stranger")
	alone := second.certificate // signed by itself
	second.certificate = signedBy(t, second, first)
	leaf, err := Parse(first.pair(Client, nil))
	if err != nil {
		t.Fatal(err)
	}
	both := bundle.PEM(first.certificate, second.certificate)
	many := make([]*x509.Certificate, 0, maxAuthorities+1)
	for n := range maxAuthorities {
		many = append(many, newAuthority(t, fmt.Sprint("of many ", n)).certificate)
	}
	for name, test := range map[string]struct {
		serves             *authority
		present, published []byte
		code               int
		want               string // error
		changed            bool
	}{
		"nothing new":                          {first, bundle.PEM(first.certificate), bundle.PEM(first.certificate), 200, "", false},
		"in another order":                     {first, append(bundle.PEM(second.certificate), bundle.PEM(first.certificate)...), both, 200, "", false},
		"another is appended":                  {first, bundle.PEM(first.certificate), both, 200, "", true},
		"the old one is withdrawn":             {second, both, bundle.PEM(second.certificate), 200, "", true},
		"withdrawn while it still signs":       {first, both, bundle.PEM(second.certificate), 200, "they do not verify the API server itself", false},
		"replaced without an overlap":          {second, bundle.PEM(first.certificate), bundle.PEM(second.certificate), 200, "cannot be verified with the authorities that the node has", false},
		"by a stranger's server":               {stranger, bundle.PEM(first.certificate), bundle.PEM(stranger.certificate), 200, "cannot be verified with", false},
		"a stranger's without the signer":      {first, bundle.PEM(first.certificate), bundle.PEM(stranger.certificate), 200, "they do not verify the API server itself", false},
		"a stranger's beside the signer":       {first, bundle.PEM(first.certificate), bundle.PEM(first.certificate, stranger.certificate), 200, "nobody vouches for CN=stranger", false},
		"itself beside its cross-certificate":  {first, bundle.PEM(first.certificate), bundle.PEM(alone, first.certificate, second.certificate), 200, "", true},
		"itself without its cross-certificate": {first, bundle.PEM(first.certificate), bundle.PEM(first.certificate, alone), 200, "nobody vouches for CN=second", false},
		"the same, renewed":                    {first, bundle.PEM(first.certificate), bundle.PEM(signedBy(t, first, first)), 200, "", true},
		"nothing":                              {first, bundle.PEM(first.certificate), nil, 200, "has no certificate in PEM", false},
		"no authority":                         {first, bundle.PEM(first.certificate), append(bundle.PEM(first.certificate), bundle.PEM(leaf.Leaf())...), 200, "is not a certificate authority", false},
		"far too many":                         {first, bundle.PEM(first.certificate), bundle.PEM(append(many, first.certificate)...), 200, "more than 16", false},
		"not for us":                           {first, bundle.PEM(first.certificate), both, 403, "", false},
		"not there":                            {first, bundle.PEM(first.certificate), both, 404, "", false},
		"an answer that is none":               {first, bundle.PEM(first.certificate), both, 500, "500", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newAPIServer(t, test.serves)
			s.published, s.code = test.published, test.code
			file, kubeconfig := nodeFiles(t, s.URL, test.present)
			changed, err := RefreshAuthorities(t.Context(), kubeconfig, file, time.Now())
			if changed != test.changed || test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, %v; want %v, %q", changed, err, test.changed, test.want)
			}
			want := test.present
			if test.changed {
				want = test.published
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
				t.Errorf("the file holds (%v)\n%s", err, got)
			}
		})
	}
	t.Run("no answer", func(t *testing.T) {
		t.Parallel()
		s := newAPIServer(t, first)
		file, kubeconfig := nodeFiles(t, s.URL, both)
		s.Close()
		if _, err := RefreshAuthorities(t.Context(), kubeconfig, file, time.Now()); !errors.Is(err, ErrUnreachable) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("another file", func(t *testing.T) {
		t.Parallel()
		s := newAPIServer(t, first)
		s.published = both
		_, kubeconfig := nodeFiles(t, s.URL, bundle.PEM(first.certificate))
		other := filepath.Join(t.TempDir(), "ca.crt")
		if changed, err := RefreshAuthorities(t.Context(), kubeconfig, other, time.Now()); changed || err != nil {
			t.Errorf("a file that the kubeconfig does not name: %v, %v", changed, err)
		}
	})
}

// nodeFiles are a node's file of authorities, and a kubeconfig that names it.
func nodeFiles(t *testing.T, server string, authorities []byte) (file, kubeconfig string) {
	t.Helper()
	dir := t.TempDir()
	file, kubeconfig = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "kubeconfig")
	write(t, file, authorities, 0o644)
	write(t, kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: %q, certificate-authority: %q}}
contexts:
- {name: x, context: {cluster: c, user: u}}
current-context: x
users:
- {name: u, user: {token: abcdef.0123456789abcdef}}
`, server, file), 0o600)
	return file, kubeconfig
}

// The environment of a process that asks the API server behind a proxy for its authorities: net/http reads the
// environment once.
const envBehindProxy = "NODECERTS_TEST_BEHIND_PROXY"

// Behind a proxy the node asks by it, as it joined.
func TestRefreshAuthoritiesByAProxy(t *testing.T) {
	if kubeconfig := os.Getenv(envBehindProxy); kubeconfig != "" {
		_, err := RefreshAuthorities(t.Context(), kubeconfig, filepath.Join(filepath.Dir(kubeconfig), "ca.crt"), time.Now())
		if !errors.Is(err, ErrUnreachable) {
			t.Error(err)
		}
		return
	}
	t.Parallel()
	asked := make(chan string, 1)
	proxy := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		asked <- in.Method + " " + in.Host
		out.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)
	_, kubeconfig := nodeFiles(t, "https://192.0.2.1:443", bundle.PEM(newAuthority(t, "ca").certificate))
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRefreshAuthoritiesByAProxy$")
	child.Env = append(os.Environ(), envBehindProxy+"="+kubeconfig, "HTTPS_PROXY="+proxy.URL, "NO_PROXY=", "no_proxy=")
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	select {
	case got := <-asked:
		if got != "CONNECT 192.0.2.1:443" {
			t.Errorf("the proxy was asked for %s", got)
		}
	default:
		t.Error("the proxy was not asked")
	}
}

func TestTryBootstrap(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	s := newAPIServer(t, ca)
	_, kubeconfig := nodeFiles(t, s.URL, bundle.PEM(ca.certificate))
	if groups, err := TryBootstrap(t.Context(), kubeconfig); err != nil || !slices.Equal(groups, []string{"one", "two"}) {
		t.Error(groups, err)
	}
	raw, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(t.TempDir(), "old")
	write(t, old, []byte(strings.Replace(string(raw), "0123456789abcdef", "expiredexpired00", 1)), 0o600)
	if _, err := TryBootstrap(t.Context(), old); !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "expiredexpired00") {
		t.Errorf("got %v", err)
	}
	s.anonymous = true
	if _, err := TryBootstrap(t.Context(), kubeconfig); !errors.Is(err, ErrRefused) {
		t.Errorf("taken for nobody: %v", err)
	}
}

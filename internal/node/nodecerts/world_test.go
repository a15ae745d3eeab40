// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"muster.dev/muster/internal/certificates/bundle"
)

const nodeName = "ip-192-168-64-11.ec2.internal"

// authority signs in tests, also in some that run beside one another.
type authority struct {
	t           testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	serial      atomic.Int64
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, certificate: certificate, key: key}
	a.serial.Store(template.SerialNumber.Int64())
	return a
}

// sign issues a certificate for a key; change may spoil it first.
func (a *authority) sign(kind Kind, request *x509.CertificateRequest, key any, change func(*x509.Certificate)) []byte {
	a.t.Helper()
	_, usage := kind.usage()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial.Add(1)), Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// pair is what a kubelet's file holds.
func (a *authority) pair(kind Kind, change func(*x509.Certificate)) []byte {
	a.t.Helper()
	r, err := newRequest(kind, node())
	if err != nil {
		a.t.Fatal(err)
	}
	chain, err := bundle.Parse(a.sign(kind, &r.template, r.key.Public(), change))
	if err != nil {
		a.t.Fatal(err)
	}
	raw, err := encode(chain, r.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return raw
}

func node() *corev1.Node {
	return &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: nodeName},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "192.168.64.11"}, {Type: corev1.NodeHostName, Address: nodeName},
		}},
	}
}

// world is a node's disk and the API server that it talks to.
type world struct {
	*authority
	dir, kubeconfig string
	server          *httptest.Server

	mu       sync.Mutex
	requests []*certificatesv1.CertificateSigningRequest
	// change spoils what is issued; verdict decides instead of issuing; user is the API server's name for callers.
	change    func(*x509.Certificate)
	key       any
	verdict   certificatesv1.RequestConditionType
	user      string
	published []*x509.Certificate
	bearer    string // the token that callers must show in place of a certificate
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{authority: newAuthority(t, "kubelet-1"), dir: t.TempDir(), user: "system:node:" + nodeName}
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	w.server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	w.server.StartTLS()
	t.Cleanup(w.server.Close)
	w.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	write(t, ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.server.Certificate().Raw}), 0o644)
	write(t, w.kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: %q, certificate-authority: %q}}
contexts:
- {name: x, context: {cluster: c, user: u}}
current-context: x
users:
- {name: u, user: {client-certificate: /does/not/exist, client-key: /does/not/exist}}
`, w.server.URL, ca), 0o600)
	for _, kind := range Kinds() {
		w.put(kind, w.pair(kind, nil))
	}
	return w
}

// put writes a pair as a kubelet did an hour ago.
func (w *world) put(kind Kind, raw []byte) string {
	w.t.Helper()
	path := filepath.Join(w.dir, kind.prefix()+"-"+time.Now().Add(-time.Hour).Format(stamp)+".pem")
	write(w.t, path, raw, 0o600)
	link := filepath.Join(w.dir, kind.link())
	_ = os.Remove(link)
	if err := os.Symlink(path, link); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func write(t testing.TB, path string, raw []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, raw, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

func (w *world) serve(out http.ResponseWriter, in *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	answer := func(code int, v any) {
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(code)
		_ = json.NewEncoder(out).Encode(v)
	}
	refuse := func(code int, reason metav1.StatusReason) {
		answer(code, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason})
	}
	if (len(in.TLS.PeerCertificates) == 0) != (w.bearer != "") || w.bearer != "" && in.Header.Get("Authorization") != "Bearer "+w.bearer {
		refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		return
	}
	switch name, one := strings.CutPrefix(in.URL.Path, requests+"/"); {
	case in.URL.Path == "/api/v1/nodes/"+nodeName:
		answer(http.StatusOK, node())
	case in.URL.Path == requests && in.Method == http.MethodPost:
		var csr certificatesv1.CertificateSigningRequest
		raw, err := io.ReadAll(in.Body)
		if err == nil {
			_, _, err = scheme.Codecs.UniversalDeserializer().Decode(raw, nil, &csr)
		}
		if err != nil {
			w.t.Error(err)
		}
		csr.TypeMeta = metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}
		csr.Name = fmt.Sprintf("%s%d", csr.GenerateName, len(w.requests))
		csr.UID, csr.CreationTimestamp = types.UID("uid-"+csr.Name), metav1.Now()
		w.requests = append(w.requests, &csr)
		answer(http.StatusCreated, &csr)
	case one:
		for _, csr := range w.requests {
			if csr.Name == name {
				w.decide(csr)
				answer(http.StatusOK, csr)
				return
			}
		}
		refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
	case strings.HasSuffix(in.URL.Path, "/selfsubjectreviews"):
		answer(http.StatusCreated, &authenticationv1.SelfSubjectReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: w.user}},
		})
	case strings.Contains(in.URL.Path, "/configmaps/") && w.published != nil:
		answer(http.StatusOK, bundle.ConfigMap("kube-system", bundle.Client, w.published...))
	case strings.Contains(in.URL.Path, "/configmaps/"):
		refuse(http.StatusForbidden, metav1.StatusReasonForbidden)
	default:
		w.t.Errorf("nobody answers %s %s", in.Method, in.URL.Path)
		refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

// decide issues what was asked for, or does what the test wants instead.
func (w *world) decide(csr *certificatesv1.CertificateSigningRequest) {
	if len(csr.Status.Conditions) > 0 {
		return
	}
	switch w.verdict {
	case "":
	case "pending":
		return
	default:
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: w.verdict, Status: corev1.ConditionTrue, Reason: "PolicyDenied", Message: "the names are another machine's"}}
		return
	}
	block, _ := pem.Decode(csr.Spec.Request)
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		w.t.Error(err)
		return
	}
	kind, key := Client, asked.PublicKey
	if csr.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		kind = Serving
	}
	if w.key != nil {
		key = w.key
	}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
	csr.Status.Certificate = w.sign(kind, asked, key, w.change)
}

// config rotates both.
func (w *world) config() RotateConfig {
	return RotateConfig{
		Dir: w.dir, Locks: w.dir + ".locks", Kubeconfig: w.kubeconfig, Kinds: Kinds(), Timeout: 30 * time.Second, Now: time.Now,
		Restart: func(context.Context) error { return nil }, Say: w.t.Logf,
	}
}

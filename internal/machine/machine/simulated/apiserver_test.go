// SPDX-License-Identifier: Apache-2.0

package simulated_test

import (
	"crypto"
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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

const token = "abcdef.0123456789abcdef"

// apiServer is as much of an API server as a node needs to join. It signs whatever it is asked to.
type apiServer struct {
	*httptest.Server
	t   *testing.T
	key crypto.Signer
	ca  *x509.Certificate
	// life of the certificates that it signs.
	life time.Duration

	mutex sync.Mutex
	podServer
	// busy answers that many requests with 429 first.
	busy     int
	requests map[string]*certificatesv1.CertificateSigningRequest
	nodes    map[string]*corev1.Node
	leases   map[string]*coordinationv1.Lease
	// signed counts certificates by signer.
	signed map[string]int
	// bootstrapped counts the requests made with the token.
	bootstrapped int
	// asked counts the requests of nodes, by their method and the kind of what they are about.
	asked map[string]int
}

func newAPIServer(t *testing.T, life time.Duration) *apiServer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	s := &apiServer{
		t: t, key: key, ca: ca, life: life, requests: map[string]*certificatesv1.CertificateSigningRequest{}, nodes: map[string]*corev1.Node{},
		leases: map[string]*coordinationv1.Lease{}, signed: map[string]int{}, asked: map[string]int{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"gitVersion":"v1.36.3"}`) })
	mux.HandleFunc("POST /apis/certificates.k8s.io/v1/certificatesigningrequests", s.createRequest)
	mux.HandleFunc("GET /apis/certificates.k8s.io/v1/certificatesigningrequests", s.watchRequest)
	mux.HandleFunc("POST /api/v1/nodes", s.createNode)
	mux.HandleFunc("GET /api/v1/nodes/{name}", s.getNode)
	mux.HandleFunc("PATCH /api/v1/nodes/{name}/status", s.patchStatus)
	mux.HandleFunc("GET /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}", s.getLease)
	mux.HandleFunc("POST /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", s.createLease)
	mux.HandleFunc("PUT /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}", s.putLease)
	s.servePods(mux)
	s.Server = httptest.NewUnstartedServer(s.authenticate(mux))
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	s.TLS = &tls.Config{ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// authenticate lets the token make client certificate requests, and certificates of nodes do everything.
func (s *apiServer) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mutex.Lock()
		busy := s.busy > 0
		if busy {
			s.busy--
		}
		s.mutex.Unlock()
		if busy {
			w.Header().Set("Retry-After", "0")
			s.fail(w, http.StatusTooManyRequests)
			return
		}
		switch {
		case readsPods(r):
		case len(r.TLS.PeerCertificates) > 0 && slices.Contains(r.TLS.PeerCertificates[0].Subject.Organization, "system:nodes"):
		case r.Header.Get("Authorization") == "Bearer "+token && strings.HasSuffix(r.URL.Path, "certificatesigningrequests"):
			if r.Method == http.MethodPost {
				s.mutex.Lock()
				s.bootstrapped++
				s.mutex.Unlock()
			}
		default:
			s.fail(w, http.StatusUnauthorized)
			return
		}
		s.mutex.Lock()
		s.asked[r.Method+" "+kindOf(r.URL.Path)]++
		s.mutex.Unlock()
		next.ServeHTTP(w, r)
	})
}

// kindOf is the kind of objects that a path is about, in the plural, with the subresource.
func kindOf(path string) string {
	for _, kind := range []string{"certificatesigningrequests", "leases", "nodes", "pods"} {
		if _, rest, ok := strings.Cut(path, "/"+kind); ok {
			if _, subresource, ok := strings.Cut(strings.TrimPrefix(rest, "/"), "/"); ok {
				return kind + "/" + subresource
			}
			return kind
		}
	}
	return path
}

func (s *apiServer) fail(w http.ResponseWriter, code int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code),
		Reason: map[int]metav1.StatusReason{
			http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusConflict: metav1.StatusReasonAlreadyExists,
		}[code],
	})
}

// read decodes a request's body, whatever it is encoded in.
func (s *apiServer) read(r *http.Request) runtime.Object {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("reading request: %v", err)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		s.t.Errorf("decoding request to %s: %v", r.URL, err)
	}
	return object
}

func (s *apiServer) answer(w http.ResponseWriter, object runtime.Object) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(object); err != nil {
		s.t.Errorf("answering: %v", err)
	}
}

func (s *apiServer) createRequest(w http.ResponseWriter, r *http.Request) {
	request, ok := s.read(r).(*certificatesv1.CertificateSigningRequest)
	if !ok {
		s.fail(w, http.StatusBadRequest)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	request.Name = fmt.Sprintf("csr-%d", len(s.requests))
	request.ResourceVersion = "1"
	request.TypeMeta = metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}
	s.requests[request.Name] = request
	s.answer(w, request)
}

// watchRequest answers a watch with the request, approved and issued.
func (s *apiServer) watchRequest(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	request, ok := s.requests[strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")]
	if !ok {
		s.fail(w, http.StatusNotFound)
		return
	}
	issued := request.DeepCopy()
	issued.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
	issued.Status.Certificate = s.sign(request)
	raw, err := json.Marshal(issued)
	if err != nil {
		s.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: "MODIFIED", Object: runtime.RawExtension{Raw: raw}})
}

func (s *apiServer) sign(request *certificatesv1.CertificateSigningRequest) []byte {
	block, _ := pem.Decode(request.Spec.Request)
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil {
		err = parsed.CheckSignature()
	}
	if err != nil {
		s.t.Errorf("certificate request: %v", err)
		return nil
	}
	s.signed[request.Spec.SignerName]++
	usage := x509.ExtKeyUsageClientAuth
	if request.Spec.SignerName == certificatesv1.KubeletServingSignerName {
		usage = x509.ExtKeyUsageServerAuth
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: parsed.Subject, DNSNames: parsed.DNSNames, IPAddresses: parsed.IPAddresses,
		NotBefore: time.Now().Add(-time.Second), NotAfter: time.Now().Add(s.life), ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}, s.ca, parsed.PublicKey, s.key)
	if err != nil {
		s.t.Errorf("signing: %v", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func (s *apiServer) createNode(w http.ResponseWriter, r *http.Request) {
	node, ok := s.read(r).(*corev1.Node)
	if !ok {
		s.fail(w, http.StatusBadRequest)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, ok := s.nodes[node.Name]; ok {
		s.fail(w, http.StatusConflict)
		return
	}
	node.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	node.UID = types.UID("uid-of-" + node.Name)
	node.Spec.PodCIDR = podRange(len(s.nodes))
	s.nodes[node.Name] = node
	s.answer(w, node)
}

func (s *apiServer) getNode(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	node, ok := s.nodes[r.PathValue("name")]
	if !ok {
		s.fail(w, http.StatusNotFound)
		return
	}
	s.answer(w, node)
}

func (s *apiServer) patchStatus(w http.ResponseWriter, r *http.Request) {
	var patch struct {
		Status corev1.NodeStatus `json:"status"`
	}
	if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
		s.t.Errorf("decoding patch: %v", err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	node, ok := s.nodes[r.PathValue("name")]
	if !ok {
		s.fail(w, http.StatusNotFound)
		return
	}
	node.Status = patch.Status
	s.answer(w, node)
}

func (s *apiServer) getLease(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	lease, ok := s.leases[r.PathValue("name")]
	if !ok {
		s.fail(w, http.StatusNotFound)
		return
	}
	s.answer(w, lease)
}

func (s *apiServer) createLease(w http.ResponseWriter, r *http.Request) {
	lease, ok := s.read(r).(*coordinationv1.Lease)
	if !ok {
		s.fail(w, http.StatusBadRequest)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, ok := s.leases[lease.Name]; ok {
		s.fail(w, http.StatusConflict)
		return
	}
	s.keepLease(w, lease)
}

func (s *apiServer) putLease(w http.ResponseWriter, r *http.Request) {
	lease, ok := s.read(r).(*coordinationv1.Lease)
	if !ok {
		s.fail(w, http.StatusBadRequest)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.keepLease(w, lease)
}

// keepLease stores a lease; the caller holds the mutex.
func (s *apiServer) keepLease(w http.ResponseWriter, lease *coordinationv1.Lease) {
	lease.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
	s.leases[lease.Name] = lease
	s.answer(w, lease)
}

// SPDX-License-Identifier: Apache-2.0

package explainapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotator"
	"muster.dev/muster/internal/explain/evidence"
	"muster.dev/muster/internal/explain/readaudit"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/plane/portplan"
	"muster.dev/muster/internal/platform/statedir"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const (
	refused = "ip-10-0-1-7.internal" // the node of the machine that is refused
	foreign = "ip-10-0-9-9.internal" // a node of the other cluster
	joined  = "rack-7"               // a host that joined
	request = "csr-8x2vq"
)

func since(ago time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-ago)) }

// world is an account with the clusters home, whose API is served, and away.
type world struct {
	t     *testing.T
	specs component.Config
	api   *Server
	base  string

	mutex   sync.Mutex
	asked   []authorizationv1.SubjectAccessReviewSpec
	status  authorizationv1.SubjectAccessReviewStatus
	err     error
	reads   []readaudit.Read
	unkept  error
	planes  Readers
	unmade  error
	madeFor int
}

func newCluster(name string) *v1alpha1.Cluster {
	return &v1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name, CreationTimestamp: since(2 * time.Hour)}, Spec: v1alpha1.ClusterSpec{Name: name},
		Status: v1alpha1.ClusterStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Healthy", LastTransitionTime: since(time.Hour)}}},
	}
}

func newMachine(cluster, name, node, message string) *v1alpha1.Machine {
	m := &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: since(time.Hour)},
		Spec:       v1alpha1.MachineSpec{ClusterName: cluster, NodeGroup: "default", Provider: v1alpha1.ProviderLocal, InstanceProfile: "p"},
		Status: v1alpha1.MachineStatus{
			Phase: v1alpha1.MachineJoining, NodeName: node,
			Join: []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(noon.Add(-time.Hour))}},
		},
	}
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionIdentity} {
		m.Status.Conditions = append(m.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: "Refused", Message: message, LastTransitionTime: since(time.Minute)})
	}
	return m
}

// newNode is a Node that is Ready.
func newNode(name string) *corev1.Node {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: since(time.Hour)}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: since(time.Hour)}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{ready}}}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme, err := planeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	const why = "the cluster does not let the machine in: refused by rule no-entry (M-IAM-01): arn:aws:iam::000000000000:role/r is in no access entry; password=only-in-a-log"
	denied := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: request, CreationTimestamp: since(time.Minute)},
		Spec:       certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeletServingSignerName, Username: "system:node:" + refused},
		Status: certificatesv1.CertificateSigningRequestStatus{Conditions: []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "MusterPolicy", Message: "rule san-address: 10.0.9.9 is no address of the machine", LastTransitionTime: since(time.Minute),
		}}},
	}
	w := &world{t: t, status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}
	w.planes = Readers{
		Management: fake.NewClientBuilder().WithScheme(scheme).WithObjects(newCluster("home"), newCluster("away"),
			newMachine("home", "i-0000000000000000a", refused, why), newMachine("home", "i-0000000000000000b", "", "it waits"),
			newMachine("away", "i-0000000000000000f", foreign, why)).Build(),
		Cluster: fake.NewClientBuilder().WithScheme(scheme).WithObjects(newNode(joined), denied).Build(),
	}
	w.specs = component.Config{Account: component.Account{VPC: true, State: statedir.Dir(t.TempDir())}, Dir: statedir.Cluster(t.TempDir()), Places: portplan.Ports{}.Places(), Network: clusternetworktest.Network()}
	w.specs.Cluster.Spec.Network.ServiceCIDR = "10.100.0.0/16"
	w.api = New(Config{
		Namespace: "home",
		Readers:   func() (Readers, error) { w.madeFor++; return w.planes, w.unmade },
		Review: func(_ context.Context, spec authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error) {
			w.mutex.Lock()
			defer w.mutex.Unlock()
			w.asked = append(w.asked, spec)
			return w.status, w.err
		},
		Logs:   func(now time.Time) evidence.Logs { return evidence.HostLogs{Dir: w.specs.State, Now: now} },
		Record: func(r readaudit.Read) error { w.reads = append(w.reads, r); return w.unkept },
		Now:    func() time.Time { return noon }, Log: slog.New(slog.DiscardHandler),
	})
	w.serve()
	return w
}

// serve makes the certificates of the cluster, and serves the API at a unix socket until the test ends.
func (w *world) serve() {
	w.t.Helper()
	if err := os.MkdirAll(w.specs.Dir.PKI(), 0o700); err != nil {
		w.t.Fatal(err)
	}
	credentials, err := component.Credentials(w.specs)
	if err == nil {
		_, err = rotator.NewKeys(authority.NewStore(w.specs.Dir.PKI())).Ensure(credentials, time.Now())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.base = filepath.Join(w.t.TempDir(), "s")
	listener, err := new(net.ListenConfig).Listen(w.t.Context(), "unix", w.base)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- w.api.Serve(ctx, listener, w.specs.Credential(component.CredentialAccountAPIs), w.specs.Authority(authority.FrontProxy))
	}()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
}

// ask asks by TLS, with the certificate of a name, "" for none.
func (w *world) ask(credential, method, path string, header http.Header) (int, string, error) {
	w.t.Helper()
	trusted, err := os.ReadFile(w.specs.Authority(authority.Cluster))
	if err != nil {
		w.t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: component.ServerAccountAPIs, MinVersion: tls.VersionTLS12}
	config.RootCAs.AppendCertsFromPEM(trusted)
	if credential != "" {
		pair, err := tls.LoadX509KeyPair(w.specs.Credential(credential), w.specs.Credential(credential))
		if err != nil {
			w.t.Fatal(err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	transport := &http.Transport{TLSClientConfig: config, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", w.base)
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(w.t.Context(), method, "https://"+component.ServerAccountAPIs+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header = header
	response, err := transport.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(raw), errors.Join(err, response.Body.Close())
}

// bob is how the API server says that bob asks.
func bob() http.Header {
	return http.Header{"X-Remote-User": {"bob"}, "X-Remote-Uid": {"u-1"}, "X-Remote-Group": {"ops", "people"}, "X-Remote-Extra-Example.com%2fteam": {"a", "b"}}
}

// get asks as the API server does, for bob.
func (w *world) get(path string, accept ...string) (int, string) {
	w.t.Helper()
	header := bob()
	header["Accept"] = accept
	code, body, err := w.ask("front-proxy-client", http.MethodGet, path, header)
	if err != nil {
		w.t.Fatal(err)
	}
	return code, body
}

// golden compares with a file, which -update rewrites.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs, got:\n%s", path, got)
	}
}

func has(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, one := range want {
		if !strings.Contains(text, one) {
			t.Errorf("%q is not in %s", one, text)
		}
	}
}

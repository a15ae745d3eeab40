// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/facts/factstest"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/signer/signertest"
)

const (
	ages     = time.Hour       // a backoff that no test waits for
	patience = 3 * time.Minute // that a test has with a busy computer
)

// world is a controller with everything around it faked.
type world struct {
	t        *testing.T
	client   *fake.Clientset
	store    *store
	facts    *factstest.Inventory
	nodes    *fakeNodes
	register *fakeRegister
	signer   *signertest.Fake
	ca       *x509.Certificate
	events   *events
	log      *lockedBuffer
	registry *prometheus.Registry
	config   Config
	probes   int
	*Controller
	stop func() // gently
	kill func() // as if the lease was lost
}

// newWorld makes one with machine 11 in it. Waits and retries take an hour unless change says otherwise, so what
// happens, happens because of an event.
func newWorld(t *testing.T, change func(*world)) *world {
	t.Helper()
	w := prepareWorld(t)
	if change != nil {
		change(w)
	}
	w.run()
	return w
}

func prepareWorld(t *testing.T) *world {
	t.Helper()
	ca, key := pkitest.Authority(t, "kubernetes", time.Now(), 10*365*24*time.Hour)
	client, store := newStore()
	w := &world{
		t: t, client: client, store: store, facts: &factstest.Inventory{}, nodes: &fakeNodes{}, register: newFakeRegister(),
		signer: signertest.New(ca, key), ca: ca, events: &events{}, log: &lockedBuffer{},
	}
	w.config = Config{
		Client: w.client, Inventory: inventory{w.facts}, Access: w.facts, Nodes: w.nodes, Register: w.register, Events: w.events,
		Signers: map[string]Issuance{
			pki.SignerKubeletClient:  {Profile: pki.ClientProfile(), Signer: w.signer, Key: "kubelets"},
			pki.SignerKubeletServing: {Profile: pki.ServingProfile(), Signer: w.signer, Key: "kubelets"},
		},
		Logger: slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Retry:  Backoff{ages, ages}, Wait: Backoff{ages, ages}, Recheck: 5 * time.Millisecond,
		Policy: policy.Policy{ReservedAddresses: []netip.Prefix{netip.MustParsePrefix("10.100.0.0/16")}},
	}
	w.machine(11)
	return w
}

// run starts a controller, anew if there was one: on the same API server and with the same facts.
func (w *world) run() {
	w.t.Helper()
	w.registry = prometheus.NewRegistry()
	w.config.Metrics = w.registry
	var err error
	if w.Controller, err = New(w.config); err != nil {
		w.t.Fatal(err)
	}
	w.facts.OnChange, w.nodes.onChange = w.Changed, w.Changed
	ctx, cancel := context.WithCancelCause(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	w.kill = sync.OnceFunc(func() { cancel(ErrLost); <-done })
	w.stop = sync.OnceFunc(func() { cancel(nil); <-done })
	w.t.Cleanup(w.stop)
	w.until("it is ready", func() bool { return w.Ready() == nil && w.leading.Load() })
}

func (w *world) issuance(signer string, change func(*Issuance)) {
	i := w.config.Signers[signer]
	change(&i)
	w.config.Signers[signer] = i
}

func nodeName(n int) string { return fmt.Sprintf("ip-192-168-64-%d.ec2.internal", n) }
func address(n int) string  { return fmt.Sprintf("192.168.64.%d", n) }
func machineID(n int) string {
	return fmt.Sprintf("i-%017x", n)
}

// machine puts machine n into the inventory.
func (w *world) machine(n int) {
	w.facts.Put(policy.Machine{ID: machineID(n), NodeName: nodeName(n), Addresses: []netip.Addr{netip.MustParseAddr(address(n))}})
}

func object(name, signer string, pem []byte, user string, groups ...string) *certificatesv1.CertificateSigningRequest {
	usage := certificatesv1.UsageClientAuth
	if signer == pki.SignerKubeletServing {
		usage = certificatesv1.UsageServerAuth
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signer, Request: pem, Username: user, Groups: groups,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}
}

// serving is the request of machine n for a serving certificate with these names.
func serving(t *testing.T, name string, n int, names ...string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	return object(name, pki.SignerKubeletServing, pkitest.Kubelet(t, nodeName(n), names...), "system:node:"+nodeName(n), "system:nodes")
}

// bootstrap is the first request of machine n.
func bootstrap(t *testing.T, name string, n int) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	return object(name, pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(n)),
		fmt.Sprintf("system:bootstrap:%06d", n), "system:bootstrappers", "system:bootstrappers:muster:"+machineID(n))
}

func (w *world) create(csrs ...*certificatesv1.CertificateSigningRequest) {
	w.t.Helper()
	for _, csr := range csrs {
		if _, err := w.client.CertificatesV1().CertificateSigningRequests().Create(w.t.Context(), csr, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) get(name string) *certificatesv1.CertificateSigningRequest {
	w.t.Helper()
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	csr, err := w.store.get(name)
	if err != nil {
		w.t.Fatal(err)
	}
	return csr.DeepCopy()
}

// state is the request's conditions, but for the one with the decision, and whether it has a certificate, in one
// string.
func (w *world) state(name string) string {
	w.t.Helper()
	csr := w.get(name)
	var parts []string
	for _, c := range csr.Status.Conditions {
		if c.Type != csrview.DecidedCondition {
			parts = append(parts, string(c.Type)+"/"+c.Reason)
		}
	}
	if len(csr.Status.Certificate) > 0 {
		parts = append(parts, "Issued")
	}
	return strings.Join(parts, " ")
}

const wasIssued = "Approved/AutoApproved Issued"

func (w *world) becomes(name, want string) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for w.state(name) != want {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s is %q, want %q\n%s", name, w.state(name), want, w.log)
		}
		pause()
	}
}

// stays checks that nothing more is done: all that is queued has been handled, and the state is still the same.
func (w *world) stays(name, want string) {
	w.t.Helper()
	w.probes++
	probe, n := fmt.Sprintf("probe-%d", w.probes), 200+w.probes
	w.machine(n)
	w.create(serving(w.t, probe, n, address(n)))
	w.becomes(probe, wasIssued)
	if err := w.client.CertificatesV1().CertificateSigningRequests().Delete(w.t.Context(), probe, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if got := w.state(name); got != want {
		w.t.Errorf("%s is %q, want %q\n%s", name, got, want, w.log)
	}
}

func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain until %s\n%s", what, w.log)
		}
		pause()
	}
}

// pause lets others run between two looks.
func pause() { <-time.After(2 * time.Millisecond) }

func (w *world) certificate(name string) *x509.Certificate {
	w.t.Helper()
	block, rest := pem.Decode(w.get(name).Status.Certificate)
	if block == nil || len(rest) > 0 {
		w.t.Fatal("not one PEM block")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := c.CheckSignatureFrom(w.ca); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// failOnce makes the next updates of a subresource fail, one with each error, before they reach the store.
func (w *world) fail(subresource string, errs ...error) {
	var mu sync.Mutex
	w.client.PrependReactor("update", "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if a.GetSubresource() != subresource || len(errs) == 0 {
			return false, nil, nil
		}
		err := errs[0]
		errs = errs[1:]
		return err != nil, nil, err
	})
}

func conflict() error {
	return apierrors.NewConflict(certificatesv1.Resource("certificatesigningrequests"), "x", nil)
}

// updates counts the updates of a subresource.
func (w *world) updates(subresource string) int {
	n := 0
	for _, a := range w.client.Actions() {
		if a.GetVerb() == "update" && a.GetSubresource() == subresource {
			n++
		}
	}
	return n
}

type events struct {
	mu     sync.Mutex
	list   []string
	nodes  []string // those about Nodes, apart
	latest map[string]map[string]string
}

func (e *events) AnnotatedEventf(o runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := strings.Join([]string{kind, reason, fmt.Sprintf(format, args...)}, " ")
	switch o := o.(type) {
	case *certificatesv1.CertificateSigningRequest:
		e.list = append(e.list, o.Name+" "+text)
		if e.latest == nil {
			e.latest = map[string]map[string]string{}
		}
		e.latest[o.Name] = annotations
	case *corev1.ObjectReference:
		e.nodes = append(e.nodes, fmt.Sprintf("%s %s uid=%s %s", o.Kind, o.Name, o.UID, text))
	}
}

func (e *events) aboutNodes() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.nodes)
}

// annotations of the latest Event about a request.
func (e *events) annotations(name string) map[string]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.latest[name]
}

func (e *events) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.list...)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func person(name string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: []string{"people"}}}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

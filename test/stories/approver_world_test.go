// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/test/plane"
)

const (
	signerClient  = certificatesv1.KubeAPIServerClientKubeletSignerName
	signerServing = certificatesv1.KubeletServingSignerName

	approverNamespace = "muster-system"
	approverName      = "muster-certificate-controller"
)

// approver is a plain upstream control plane into which the certificate controller was installed from deploy/manifests,
// as its administrator would. There are no machines and no kubelets: requests are made as kubelets make them.
type approver struct {
	t          *testing.T
	plane      *plane.Plane
	bin        string
	admin      string // kubeconfigs
	controller string
	policy     string                    // file, as installed but for what is elsewhere on this host
	tokens     *int                      // how many were made
	replicas   map[string]*plane.Process // that should run
}

// newApprover starts a control plane and installs what the profile says.
func newApprover(t *testing.T, profile string) *approver {
	t.Helper()
	a := &approver{t: t, bin: programs(t), tokens: new(int), replicas: map[string]*plane.Process{}}
	var err error
	if a.plane, err = plane.Start(t.Context(), plane.Config{Bin: a.bin}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			a.keepLogs()
		}
		if err := a.plane.Close(); err != nil {
			t.Error(err)
		}
	})
	if a.admin, err = a.plane.Kubeconfig("kubernetes-admin", "system:masters"); err != nil {
		t.Fatal(err)
	}
	a.mustKubectl("apply", "-f", filepath.Join("..", "..", "deploy", "manifests", profile+".yaml"))
	if a.controller, err = a.plane.ServiceAccountKubeconfig(t.Context(), approverNamespace, approverName); err != nil {
		t.Fatal(err)
	}
	installed, err := a.plane.Admin().CoreV1().ConfigMaps(approverNamespace).Get(t.Context(), approverName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.policy = a.writePolicy("policy.yaml", installed.Data["policy.yaml"])
	return a
}

// writePolicy adapts a policy to this host: the authority is elsewhere, and replicas share an address.
func (a *approver) writePolicy(name, text string) string {
	a.t.Helper()
	text = strings.NewReplacer(
		"/etc/kubernetes/pki/ca.crt", a.plane.CA(), "/etc/kubernetes/pki/ca.key", a.plane.CAKey(),
		"0.0.0.0:8081", "127.0.0.1:0", "0.0.0.0:9443", "127.0.0.1:0",
	).Replace(text)
	path := filepath.Join(a.plane.Dir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// run starts a replica of the controller as the service account.
func (a *approver) run(name, policy string) *plane.Process {
	a.t.Helper()
	p, err := a.plane.Run(name, filepath.Join(a.bin, "muster-certificate-controller"), "--kubeconfig="+a.controller, "--config="+policy)
	if err != nil {
		a.t.Fatal(err)
	}
	a.replicas[name] = p
	return p
}

// kill ends a replica in the hardest way.
func (a *approver) kill(p *plane.Process) {
	a.t.Helper()
	delete(a.replicas, p.Name)
	if err := p.Kill(); err != nil {
		a.t.Fatal(err)
	}
}

// upstream starts kube-controller-manager with some of its controllers.
func (a *approver) upstream(controllers string) {
	a.t.Helper()
	if _, err := a.plane.RunControllerManager("--controllers=" + controllers); err != nil {
		a.t.Fatal(err)
	}
}

func (a *approver) keepLogs() {
	target := filepath.Join("..", "..", ".build", "story-logs", strings.ReplaceAll(a.t.Name(), "/", "_"))
	_ = os.RemoveAll(target)
	if err := os.MkdirAll(target, 0o700); err != nil {
		return
	}
	paths, _ := filepath.Glob(filepath.Join(a.plane.Dir(), "*.log"))
	for _, path := range paths {
		if content, err := os.ReadFile(path); err == nil {
			_ = os.WriteFile(filepath.Join(target, filepath.Base(path)), content, 0o600)
		}
	}
	a.t.Logf("logs are kept in %s", target)
}

func (a *approver) kubectlAs(kubeconfig string, args ...string) (string, error) {
	out, err := a.plane.Command(a.t.Context(), kubeconfig, "kubectl", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func (a *approver) mustKubectl(args ...string) string {
	a.t.Helper()
	out, err := a.kubectlAs(a.admin, args...)
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}

// worker is machine n: its ID, its node's name and its address.
func worker(n int) (id, node, address string) {
	return fmt.Sprintf("m-%d", n), fmt.Sprintf("worker-%d.example", n), fmt.Sprintf("10.20.%d.%d", n/250, n%250+1)
}

// machines puts machines 1 to n into the inventory.
func (a *approver) machines(n int) {
	a.t.Helper()
	var list strings.Builder
	list.WriteString("machines:\n")
	for i := range n {
		id, node, address := worker(i + 1)
		fmt.Fprintf(&list, "- {id: %s, nodeName: %s, addresses: [%s]}\n", id, node, address)
	}
	maps := a.plane.Admin().CoreV1().ConfigMaps(approverNamespace)
	_, err := maps.Create(a.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "muster-machines"}, Data: map[string]string{"machines.yaml": list.String()},
	}, metav1.CreateOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *approver) client(config *rest.Config) *kubernetes.Clientset {
	a.t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		a.t.Fatal(err)
	}
	return client
}

// bootstrap is the client of a kubelet with a bootstrap token of its own that is good for machine n.
func (a *approver) bootstrap(n int) *kubernetes.Clientset {
	a.t.Helper()
	id, _, _ := worker(n)
	return a.bearer(token.Scope{Kind: token.ScopeMachine, Value: id})
}

// bearer is the client of whoever has a bootstrap token with this scope.
func (a *approver) bearer(scope token.Scope) *kubernetes.Clientset {
	a.t.Helper()
	group, err := scope.Group()
	if err != nil {
		a.t.Fatal(err)
	}
	*a.tokens++
	text, err := a.plane.Token(a.t.Context(), fmt.Sprintf("tok%03d", *a.tokens), plane.GroupKubeadmTokens+","+group)
	if err != nil {
		a.t.Fatal(err)
	}
	config := a.plane.Anonymous()
	config.BearerToken = text
	client := a.client(config)
	a.eventually("the token is known", func() error {
		_, err := client.CertificatesV1().CertificateSigningRequests().List(a.t.Context(), metav1.ListOptions{Limit: 1})
		return err
	})
	return client
}

// user is the client of somebody with a client certificate of the cluster's authority.
func (a *approver) user(name string, groups ...string) *kubernetes.Clientset {
	a.t.Helper()
	config, err := a.plane.RESTConfig(name, groups...)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.client(config)
}

// person is the client of somebody who may ask for certificates, and whom no inventory knows.
func (a *approver) person(name string) *kubernetes.Clientset {
	a.t.Helper()
	if err := a.plane.Bind(a.t.Context(), "may-ask:"+name, "system:node-bootstrapper", rbacv1.UserKind, name); err != nil {
		a.t.Fatal(err)
	}
	client := a.user(name)
	a.eventually(name+" may ask", func() error {
		_, err := client.CertificatesV1().CertificateSigningRequests().List(a.t.Context(), metav1.ListOptions{})
		return err
	})
	return client
}

// node is the client of machine n's kubelet once it has joined.
func (a *approver) node(n int) *kubernetes.Clientset {
	a.t.Helper()
	_, node, _ := worker(n)
	return a.user("system:node:"+node, plane.GroupNodes)
}

// request makes the object that a kubelet creates for one of the two kubelet signers.
func request(name, signer string, raw []byte) *certificatesv1.CertificateSigningRequest {
	usage := certificatesv1.UsageClientAuth
	if signer != signerClient {
		usage = certificatesv1.UsageServerAuth
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signer, Request: raw, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		},
	}
}

func (a *approver) create(as kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest) {
	a.t.Helper()
	if _, err := as.CertificatesV1().CertificateSigningRequests().Create(a.t.Context(), csr, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

func (a *approver) get(name string) *certificatesv1.CertificateSigningRequest {
	a.t.Helper()
	csr, err := a.plane.Admin().CertificatesV1().CertificateSigningRequests().Get(a.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	return csr
}

// eventually repeats a question until it is answered without an error.
func (a *approver) eventually(what string, ask func() error) time.Duration {
	a.t.Helper()
	started := time.Now()
	for {
		err := ask()
		if err == nil {
			return time.Since(started)
		}
		if time.Since(started) > patience {
			a.t.Fatalf("%s: not after %s: %v", what, patience, err)
		}
		for name, p := range a.replicas {
			select {
			case <-p.Ended():
				a.t.Fatalf("%s: %s has ended; it printed at last:\n%s", what, name, p.Tail())
			default:
			}
		}
		select {
		case <-a.t.Context().Done():
			a.t.Fatalf("%s: %v", what, context.Cause(a.t.Context()))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stateOf is what kubectl get csr shows, with the reasons: it knows nothing of the condition that holds the decision.
func stateOf(csr *certificatesv1.CertificateSigningRequest) string {
	state := []string{}
	for _, c := range csr.Status.Conditions {
		if c.Type != csrview.DecidedCondition {
			state = append(state, string(c.Type)+"/"+c.Reason)
		}
	}
	if len(csr.Status.Certificate) > 0 {
		state = append(state, "Issued")
	}
	return strings.Join(state, " ")
}

// becomes waits until a request is in a state.
func (a *approver) becomes(name, want string) time.Duration {
	a.t.Helper()
	return a.eventually(name+" becomes "+want, func() error {
		csr := a.get(name)
		if got := stateOf(csr); got != want {
			return fmt.Errorf("it is %q: %v; events: %v", got, csr.Status.Conditions, a.events(name))
		}
		return nil
	})
}

// The states of a request that went well, by who approved.
const (
	issuedByRules    = "Approved/AutoApproved Issued"
	issuedByPerson   = "Approved/KubectlApprove Issued"
	approvedByPolicy = "Approved/AutoApproved"
)

// events are what is said about a request where people look for it.
func (a *approver) events(name string) (said []string) {
	a.t.Helper()
	list, err := a.plane.Admin().CoreV1().Events("").List(a.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		a.t.Fatal(err)
	}
	for _, e := range list.Items {
		said = append(said, e.Type+" "+e.Reason+" "+e.Message)
	}
	return said
}

// told waits for an event about a request that begins so and holds that.
func (a *approver) told(name, begin, part string) {
	a.t.Helper()
	a.eventually("an event tells of "+name, func() error {
		said := a.events(name)
		if !slices.ContainsFunc(said, func(e string) bool { return strings.HasPrefix(e, begin) && strings.Contains(e, part) }) {
			return fmt.Errorf("no %q with %q among %q", begin, part, said)
		}
		return nil
	})
}

// certificate is what a request was issued with, and that it verifies for the given use.
func (a *approver) certificate(name string, usage x509.ExtKeyUsage) *x509.Certificate {
	a.t.Helper()
	block, rest := pem.Decode(a.get(name).Status.Certificate)
	if block == nil || len(rest) > 0 {
		a.t.Fatalf("%s holds no certificate", name)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		a.t.Fatal(err)
	}
	ca, err := os.ReadFile(a.plane.CA())
	if err != nil {
		a.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	if _, err := c.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		a.t.Errorf("%s: %v", name, err)
	}
	return c
}

// holder is the client of whoever has the certificate that a request was issued with, and its key.
func (a *approver) holder(name string, key *ecdsa.PrivateKey) *rest.Config {
	a.t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	config := a.plane.Anonymous()
	config.CertData = a.get(name).Status.Certificate
	config.KeyData = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	return config
}

// join is what a kubelet does on machine n: the first certificate by the token, then a serving certificate, then a
// renewal with a new key. The requests are called <prefix>-client, -serving and -renewal. It returns the client with
// the first certificate.
func (a *approver) join(n int, prefix string) *kubernetes.Clientset {
	a.t.Helper()
	_, node, address := worker(n)
	key := pkitest.Key(a.t)
	a.create(a.bootstrap(n), request(prefix+"-client", signerClient, pkitest.Encode(a.t, key, pkitest.Template(node))))
	a.becomes(prefix+"-client", issuedByRules)
	kubelet := a.client(a.holder(prefix+"-client", key))
	if list, err := kubelet.CertificatesV1().CertificateSigningRequests().List(a.t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) == 0 {
		a.t.Fatalf("the API server does not know the holder of %s: %v", prefix+"-client", errors.Join(err))
	}
	a.create(kubelet, request(prefix+"-serving", signerServing, pkitest.Kubelet(a.t, node, node, address)))
	a.becomes(prefix+"-serving", issuedByRules)
	a.create(kubelet, request(prefix+"-renewal", signerClient, pkitest.Kubelet(a.t, node)))
	a.becomes(prefix+"-renewal", issuedByRules)
	for _, kind := range []string{"client", "renewal"} {
		if c := a.certificate(prefix+"-"+kind, x509.ExtKeyUsageClientAuth); c.Subject.CommonName != "system:node:"+node {
			a.t.Errorf("%s is of %s", kind, c.Subject)
		}
	}
	serving := a.certificate(prefix+"-serving", x509.ExtKeyUsageServerAuth)
	if err := errors.Join(serving.VerifyHostname(node), serving.VerifyHostname(address)); err != nil {
		a.t.Error(err)
	}
	return kubelet
}

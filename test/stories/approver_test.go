// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/test/plane"
)

// Upstream's own approver and signer go on as they were, and serving certificates, which upstream approves for nobody,
// are approved by muster and signed by upstream.
//
//story:about certificates
func TestApproverBesideUpstreamSigner(t *testing.T) {
	t.Parallel()
	a := newApprover(t, "approve-only")
	a.machines(1)
	a.upstream("csrapproving,csrsigning,csrcleaner")
	a.run("muster", a.policy)
	a.join(1, "one")
	if life := lifetime(a.certificate("one-serving", x509.ExtKeyUsageServerAuth)); life != 8760*time.Hour {
		t.Errorf("upstream's certificate is good for %s", life)
	}
}

//story:about certificates
func TestSignerBesideUpstreamApprover(t *testing.T) {
	t.Parallel()
	a := newApprover(t, "approve-and-sign")
	a.machines(1)
	a.upstream("csrapproving")
	a.run("muster", a.writePolicy("sign-only.yaml", strings.Replace(a.read(a.policy), "mode: approve-and-sign", "mode: sign-only", 1)))
	id, node, address := worker(1)
	a.create(a.bootstrap(1), request("client", signerClient, pkitest.Kubelet(t, node)))
	a.becomes("client", issuedByRules)
	// Upstream's rule says that such a token may have any node's certificate. A request that it approved is still not
	// signed.
	_, other, _ := worker(2)
	a.create(a.bootstrap(1), request("wrong", signerClient, pkitest.Kubelet(t, other)))
	a.becomes("wrong", "Approved/AutoApproved Failed/SignerValidationFailure")
	if message := a.get("wrong").Status.Conditions[1].Message; !strings.Contains(message, "bootstrap-machine") || !strings.Contains(message, id) {
		t.Errorf("it says %q", message)
	}
	a.create(a.node(1), request("serving", signerServing, pkitest.Kubelet(t, node, node, address)))
	a.mustKubectl("certificate", "approve", "serving")
	a.becomes("serving", issuedByPerson)
	for _, name := range []string{"client", "serving"} {
		if life := lifetime(a.certificate(name, x509.ExtKeyUsageAny)); life != 168*time.Hour {
			t.Errorf("%s is good for %s, so upstream signed it", name, life)
		}
	}
}

//story:about certificates
func TestApproverAndSigner(t *testing.T) {
	t.Parallel()
	a := newApprover(t, "approve-and-sign")
	a.machines(2)
	a.upstream("*,-csrapproving,-csrsigning") // all others, in case one of them minds
	a.run("muster", a.policy)
	a.join(1, "one")
	a.join(2, "two")
	if life := lifetime(a.certificate("one-client", x509.ExtKeyUsageClientAuth)); life != 168*time.Hour {
		t.Errorf("a client certificate is good for %s", life)
	}
}

// The first week in a cluster: everything is decided and told, and nothing is changed.
//
//story:about certificates
func TestObserverChangesNothing(t *testing.T) {
	t.Parallel()
	a := newApprover(t, "observe")
	a.machines(2)
	_, node, address := worker(1)
	_, _, foreign := worker(2)
	_, unknown, _ := worker(3)
	a.create(a.bootstrap(1), request("good", signerClient, pkitest.Kubelet(t, node)))
	a.create(a.node(1), request("bad", signerServing, pkitest.Kubelet(t, node, foreign)))
	a.create(a.node(1), request("fine", signerServing, pkitest.Kubelet(t, node, address)))
	a.create(a.node(1), request("again", signerServing, pkitest.Kubelet(t, node, address))) // more than two, which others would prune
	a.create(a.bootstrap(3), request("early", signerClient, pkitest.Kubelet(t, unknown)))
	a.create(a.person("alice"), request("approved", signerClient, pkitest.Kubelet(t, node)))
	a.mustKubectl("certificate", "approve", "approved")
	before := a.versions()
	a.run("muster", a.policy)
	for name, verdict := range map[string]string{
		"good": "WouldApprove", "bad": "WouldDeny", "fine": "WouldApprove", "again": "WouldApprove", "early": "WouldWait", "approved": "WouldLeavePending",
	} {
		a.told(name, "", verdict)
	}
	a.told("bad", "Warning WouldDeny", "address-assigned")
	if after := a.versions(); !slices.Equal(before, after) {
		t.Errorf("what there is was\n%s\nand is\n%s", before, after)
	}
}

// versions are all requests and all that a controller might write elsewhere, Events but for.
func (a *approver) versions() (lines []string) {
	a.t.Helper()
	for _, kind := range []string{"csr", "configmaps", "nodes", "secrets", "serviceaccounts", "clusterroles"} {
		lines = append(lines, strings.Split(a.mustKubectl("get", kind, "-A", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`), "\n")...)
	}
	return lines
}

// Two replicas, and the one that leads dies between approving a request and signing it.
//
//story:about certificates platform/leaderlease
func TestReplicaFinishesWhatTheLeaderApproved(t *testing.T) {
	t.Parallel()
	a := newApprover(t, "approve-and-sign")
	a.machines(1)
	leader := a.run("replica-1", a.policy)
	a.eventually("the first replica leads", func() error { return a.printed(leader.Log, "this replica leads") })
	second := a.run("replica-2", a.policy)
	a.eventually("the second replica stands by", func() error { return a.printed(second.Log, "another replica leads") })

	roles := a.plane.Admin().RbacV1().ClusterRoles()
	whole, err := roles.Get(t.Context(), approverName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	less := whole.DeepCopy()
	less.Rules = slices.DeleteFunc(less.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Verbs, "sign") })
	if less, err = roles.Update(t.Context(), less, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.eventually("nobody may sign", func() error { return a.maySign(false) })
	_, node, _ := worker(1)
	a.create(a.bootstrap(1), request("orphan", signerClient, pkitest.Kubelet(t, node)))
	a.becomes("orphan", approvedByPolicy)
	a.kill(leader)
	whole.ResourceVersion = less.ResourceVersion
	if _, err := roles.Update(t.Context(), whole, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("the other replica issued it %s after the leader was killed", a.becomes("orphan", issuedByRules).Round(time.Millisecond))
	a.certificate("orphan", x509.ExtKeyUsageClientAuth)
	if err := a.printed(second.Log, "this replica leads"); err != nil {
		t.Error(err)
	}
}

// A policy that says nothing of replicas has them elect one. Who may not take part says what is missing in one line, is
// not ready and decides nothing, and needs nothing but the right to go on.
//
//story:about certificates platform/leaderlease
func TestApproverThatIsNotLetLead(t *testing.T) {
	t.Parallel()
	a := newApprover(t, "approve-only")
	a.machines(1)
	const block = "leaderElection:\n  enabled: true\n  name: muster-certificate-controller\n  namespace: muster-system\n"
	text := a.read(a.policy)
	if !strings.Contains(text, block) {
		t.Fatalf("no such block in\n%s", text)
	}
	const binding = approverName + "-leader"
	roles := a.plane.Admin().RbacV1().RoleBindings(approverNamespace)
	whole, err := roles.Get(t.Context(), binding, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.mustKubectl("-n", approverNamespace, "delete", "rolebinding", binding)
	p := a.run("muster", a.writePolicy("silent.yaml", strings.Replace(text, block, "", 1)))
	_, node, address := worker(1)
	a.create(a.node(1), request("serving", signerServing, pkitest.Kubelet(t, node, node, address)))
	a.eventually("it says why", func() error { return a.printed(p.Log, "this replica cannot lead") })
	<-time.After(10 * time.Second) // some more tries
	var told []string
	for line := range strings.Lines(a.read(p.Log)) {
		if strings.Contains(line, "lease") {
			told = append(told, line)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], "verb=get") || !strings.Contains(told[0], "is forbidden") || !strings.Contains(told[0], "get, create and update of leases") {
		t.Errorf("it says %q", told)
	}
	t.Logf("it says %s", strings.Join(told, ""))
	health := a.healthAddress(p)
	if code, text := a.ready(health); code != http.StatusServiceUnavailable || !strings.Contains(text, "refused") {
		t.Errorf("it is ready: %d %s", code, text)
	}
	if state := stateOf(a.get("serving")); state != "" {
		t.Errorf("it decided all the same: %s", state)
	}
	whole.ResourceVersion, whole.UID = "", ""
	if _, err := roles.Create(t.Context(), whole, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	a.becomes("serving", approvedByPolicy)
	if code, text := a.ready(health); code != http.StatusOK {
		t.Errorf("it is not ready: %d %s", code, text)
	}
}

// healthAddress is where a replica serves /readyz.
func (a *approver) healthAddress(p *plane.Process) string {
	a.t.Helper()
	found := regexp.MustCompile(`health_address=(\S+)`).FindStringSubmatch(a.read(p.Log))
	if len(found) == 0 {
		a.t.Fatal("it does not say where it tells its health")
	}
	return found[1]
}

// ready is what /readyz answers.
func (a *approver) ready(address string) (code int, text string) {
	a.t.Helper()
	code, text, err := a.askReady(address)
	if err != nil {
		a.t.Fatal(err)
	}
	return code, text
}

// askReady is for replicas that may end.
func (a *approver) askReady(address string) (code int, text string, err error) {
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	if err != nil {
		return 0, "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(raw), err
}

// maySign asks whether the service account may sign, and is content with one answer only.
func (a *approver) maySign(want bool) error {
	review, err := a.plane.Admin().AuthorizationV1().SubjectAccessReviews().Create(a.t.Context(), &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + approverNamespace + ":" + approverName,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "sign", Group: "certificates.k8s.io", Resource: "signers", Name: signerClient,
			},
		},
	}, metav1.CreateOptions{})
	if err == nil && review.Status.Allowed != want {
		err = fmt.Errorf("allowed: %v", review.Status.Allowed)
	}
	return err
}

//story:about certificates
func TestApproverWorksOffABacklog(t *testing.T) {
	t.Parallel()
	a := newApprover(t, "approve-and-sign")
	const backlog = 200
	a.machines(backlog + 1)
	first := a.run("before", a.policy)
	_, node, _ := worker(backlog + 1)
	a.create(a.bootstrap(backlog+1), request("before", signerClient, pkitest.Kubelet(t, node)))
	a.becomes("before", issuedByRules)
	a.kill(first)
	// It did not say that it goes. Nobody else would decide before its lease has ended.
	a.mustKubectl("-n", approverNamespace, "delete", "lease", approverName)
	fleet := a.bearer(token.Scope{Kind: token.ScopePattern, Value: "worker-*.example"})
	for n := range backlog {
		_, node, _ := worker(n + 1)
		a.create(fleet, request(fmt.Sprintf("backlog-%d", n+1), signerClient, pkitest.Kubelet(t, node)))
	}
	a.run("after", a.policy)
	took := a.eventually("all are issued", func() error {
		left := 0
		for _, csr := range a.list() {
			if len(csr.Status.Certificate) == 0 {
				left++
			}
		}
		if left > 0 {
			return fmt.Errorf("%d are left", left)
		}
		return nil
	})
	t.Logf("%d requests were issued %s after the start", backlog, took.Round(time.Millisecond))
	if n := len(a.list()); n != backlog+1 {
		t.Errorf("%d requests live, not %d", n, backlog+1)
	}
}

// A node that floods the controller with wrong requests delays nobody else.
//
//story:about certificates
func TestFloodDelaysNobodyElse(t *testing.T) {
	a := newApprover(t, "approve-and-sign")
	const flood, others = 500, 10
	a.machines(1 + others)
	a.run("muster", a.policy)
	a.join(1, "warm")
	_, node, _ := worker(1)
	_, _, foreign := worker(2)
	requests := make(chan *certificatesv1.CertificateSigningRequest, flood)
	for n := range flood {
		requests <- request(fmt.Sprintf("flood-%d", n), signerServing, pkitest.Kubelet(t, node, foreign))
	}
	close(requests)
	flooder := a.node(1)
	var quiet []kubernetes.Interface
	var wanted [][]byte
	for n := range others {
		_, node, address := worker(n + 2)
		quiet, wanted = append(quiet, a.node(n+2)), append(wanted, pkitest.Kubelet(t, node, address))
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for csr := range requests {
				_, err := flooder.CertificatesV1().CertificateSigningRequests().Create(t.Context(), csr, metav1.CreateOptions{})
				if err != nil && !apierrors.IsTooManyRequests(err) {
					t.Error(err)
				}
			}
		})
	}
	a.eventually("the flood rises", func() error {
		if len(requests) > flood*9/10 {
			return errors.New("not yet")
		}
		return nil
	})
	var waits []time.Duration
	for n := range others {
		name := fmt.Sprintf("quiet-%d", n)
		a.create(quiet[n], request(name, signerServing, wanted[n]))
		waits = append(waits, a.becomes(name, issuedByRules))
	}
	unmade := len(requests)
	group.Wait()
	slices.Sort(waits)
	t.Logf("others waited %v while %d of %d were still to come", waits, unmade, flood)
	if typical := waits[others/2]; typical > 500*time.Millisecond {
		t.Errorf("others waited for %s", typical)
	}
	a.eventually("the flood has run off", func() error {
		own := 0
		for _, csr := range a.list() {
			if csr.Spec.Username == "system:node:"+node && csr.Spec.SignerName == signerServing {
				own++
			}
		}
		if own > 2 {
			return fmt.Errorf("%d of its requests live", own)
		}
		return nil
	})
}

func (a *approver) list() []certificatesv1.CertificateSigningRequest {
	a.t.Helper()
	list, err := a.plane.Admin().CertificatesV1().CertificateSigningRequests().List(a.t.Context(), metav1.ListOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	return list.Items
}

func (a *approver) read(path string) string {
	a.t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(raw)
}

func (a *approver) printed(log, text string) error {
	if !strings.Contains(a.read(log), text) {
		return fmt.Errorf("%s does not say %q", log, text)
	}
	return nil
}

// lifetime is as asked for: certificates begin five minutes before they are made, and end as much earlier if they live
// long.
func lifetime(c *x509.Certificate) time.Duration { return c.NotAfter.Sub(c.NotBefore) }

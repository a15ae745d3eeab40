// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/platform/decision"
)

// A kubelet gives its first request a name and no other metadata, and of such an object the API server never notes who
// wrote what. The machine that the certificate went to has to be on record all the same, or whoever copied its key is
// the next machine of that name, too.
//
//story:about certificates
func TestFirstCertificateKeepsItsMachine(t *testing.T) {
	t.Parallel()
	a := newApprover(t, "approve-and-sign")
	a.alone()
	a.group(20)
	a.run("muster", a.policy)
	fleet := a.bearer(token.Scope{Kind: token.ScopeGroup, Value: "fleet"})
	t.Run("each is on record with its machine", func(t *testing.T) { a.in(t).firstCertificates(fleet, 20) })
	t.Run("nobody but who decides says which machine it is", func(t *testing.T) { a.in(t).forged(fleet) })
	t.Run("the key of a machine that was replaced is good for nothing", func(t *testing.T) { a.in(t).stolenFirst(fleet) })
}

// The controller is killed at any moment, and knows of each certificate that it issued where it went.
//
//story:about certificates
func TestKilledControllerKeepsMachines(t *testing.T) {
	t.Parallel()
	const kills, each = 12, 15
	a := newApprover(t, "approve-and-sign")
	a.alone()
	a.group(kills * each)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	fleet := a.bearer(token.Scope{Kind: token.ScopeGroup, Value: "fleet"})
	for k := range kills {
		p := a.run(fmt.Sprint("muster-", k), a.policy)
		a.first(fleet, k*each+1, pkitest.Key(t))
		a.becomes(firstName(k*each+1), issuedByRules) // it decides
		var group sync.WaitGroup
		for n := range each - 1 {
			group.Go(func() { a.first(fleet, k*each+n+2, pkitest.Key(t)) })
		}
		moment := time.Duration(chance.Int64N(int64(300 * time.Millisecond)))
		<-time.After(moment) // the moment is what is tried
		a.kill(p)
		group.Wait()
	}
	a.run("muster", a.policy)
	for n := range kills * each {
		a.becomes(firstName(n+1), issuedByRules)
	}
	a.onRecord(kills * each)
}

// A register that a version wrote which forgot machines is completed at the start. From then on a copied key is good
// for nothing when the machine is replaced. A request with the key of a machine that was replaced before waits.
//
//story:about certificates
func TestRegisterThatLostMachines(t *testing.T) {
	t.Parallel()
	const replaced, renewed = "replaced.example", "con.example"
	a := newApprover(t, "approve-and-sign")
	a.alone()
	a.group(1)
	before := a.run("before", a.policy)
	fleet := a.bearer(token.Scope{Kind: token.ScopeGroup, Value: "fleet"})
	list := func(con, other string) string {
		return fmt.Sprintf("- {id: c-%s, nodeName: %s, addresses: [10.9.0.%s], group: fleet}\n- {id: r-%s, nodeName: %s, addresses: [10.9.1.%s], group: fleet}\n", con, renewed, con, other, replaced, other)
	}
	a.inventory(41, list("3", "3"))
	joins := func(name, node string) kubernetes.Interface {
		key := pkitest.Key(t)
		a.create(fleet, request(name, signerClient, pkitest.Encode(t, key, pkitest.Template(node))))
		a.becomes(name, issuedByRules)
		return a.client(a.holder(name, key))
	}
	thief, earlier := joins("node-csr-con", renewed), joins("node-csr-replaced", replaced)
	a.inventory(42, list("3", "4"))
	<-time.After(1100 * time.Millisecond) // certificates tell their time in whole seconds
	joins("node-csr-replaced-new", replaced)
	a.eventually("they are on record", func() error { return a.machinesOnRecord("node-csr-replaced-new", "static|r-4") })
	a.kill(before)
	a.forgetMachines()
	a.run("after", a.policy)
	for name, machine := range map[string]string{"node-csr-con": "static|c-3", "node-csr-replaced-new": "static|r-4", "node-csr-replaced": ""} {
		a.eventually(name+" is complete", func() error { return a.machinesOnRecord(name, machine) })
	}
	a.create(earlier, request("stolen-earlier", signerServing, pkitest.Kubelet(t, replaced, replaced, "10.9.1.4")))
	a.told("stolen-earlier", "Normal CertificateWaiting", "by rule credential: ")
	a.inventory(43, list("4", "4"))
	a.steals(thief, "later", renewed, "10.9.0.4")
	if state := stateOf(a.get("stolen-earlier")); state != "" {
		t.Errorf("it is %s", state)
	}
}

// machinesOnRecord checks which machine the register has for a request.
func (a *approver) machinesOnRecord(name, machine string) error {
	all, err := issued.Load(a.t.Context(), a.plane.Admin(), approverNamespace)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(all, func(e issued.Entry) bool { return e.CSR == name })
	if n < 0 {
		return errors.New("it is on no record")
	}
	if all[n].Machine != machine {
		return fmt.Errorf("it is on record for machine %q, not %q", all[n].Machine, machine)
	}
	return nil
}

// forgetMachines takes the machines out of the register, and the requests that tell of them out of the cluster.
func (a *approver) forgetMachines() {
	a.t.Helper()
	maps := a.plane.Admin().CoreV1().ConfigMaps(approverNamespace)
	segments, err := maps.List(a.t.Context(), metav1.ListOptions{LabelSelector: "certificates.muster.dev/register=true"})
	if err != nil || len(segments.Items) == 0 {
		a.t.Fatalf("there are %d segments: %v", len(segments.Items), err)
	}
	machine := regexp.MustCompile(` machine=\S+( requester=system:bootstrap:)`)
	for _, cm := range segments.Items {
		cm.Data["certificates"] = machine.ReplaceAllString(cm.Data["certificates"], "$1")
		if _, err := maps.Update(a.t.Context(), &cm, metav1.UpdateOptions{}); err != nil {
			a.t.Fatal(err)
		}
	}
	a.mustKubectl("delete", "csr", "node-csr-con", "node-csr-replaced", "node-csr-replaced-new")
}

// alone lets the controller lead without an election: nobody waits for the lease of one that was killed.
func (a *approver) alone() {
	a.t.Helper()
	text := a.read(a.policy)
	without := strings.Replace(text, "leaderElection:\n  enabled: true\n", "leaderElection:\n  enabled: false\n", 1)
	if text == without {
		a.t.Fatalf("no election in\n%s", text)
	}
	a.policy = a.writePolicy("alone.yaml", without)
}

// group puts machines 1 to n of one group into the inventory.
func (a *approver) group(n int) {
	a.t.Helper()
	var list strings.Builder
	list.WriteString("machines:\n")
	for i := range n {
		id, node, address := worker(i + 1)
		fmt.Fprintf(&list, "- {id: %s, nodeName: %s, addresses: [%s], group: fleet}\n", id, node, address)
	}
	_, err := a.plane.Admin().CoreV1().ConfigMaps(approverNamespace).Create(a.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "muster-machines"}, Data: map[string]string{"machines.yaml": list.String()},
	}, metav1.CreateOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
}

func firstName(n int) string { return fmt.Sprintf("node-csr-%d", n) }

// first is the first request of machine n, as a kubelet makes it: with a name and no other metadata.
func (a *approver) first(as kubernetes.Interface, n int, key *ecdsa.PrivateKey) {
	_, node, _ := worker(n)
	csr := request(firstName(n), signerClient, pkitest.Encode(a.t, key, pkitest.Template(node)))
	if _, err := as.CertificatesV1().CertificateSigningRequests().Create(a.t.Context(), csr, metav1.CreateOptions{}); err != nil {
		a.t.Error(err)
	}
}

func (a *approver) firstCertificates(fleet kubernetes.Interface, n int) {
	for i := range n {
		a.first(fleet, i+1, pkitest.Key(a.t))
	}
	for i := range n {
		a.becomes(firstName(i+1), issuedByRules)
	}
	if noted := a.get(firstName(1)).ManagedFields; len(noted) > 0 {
		a.t.Errorf("the API server notes who wrote what of such a request: %v", noted)
	}
	a.onRecord(n)
	a.csr([]string{"State: Issued", "machine", "node worker-1.example is machine m-1 (static)", "access-review"}, "explain", firstName(1))
}

// onRecord checks that the first certificates of n machines are in the register, and with them their machines.
func (a *approver) onRecord(n int) {
	a.t.Helper()
	machines := map[string]string{}
	a.eventually("all are on record", func() error {
		all, err := issued.Load(a.t.Context(), a.plane.Admin(), approverNamespace)
		for _, e := range all {
			machines[e.CSR] = e.Machine
		}
		if err == nil && len(machines) < n {
			err = fmt.Errorf("%d of %d are", len(machines), n)
		}
		return err
	})
	wrong := 0
	for i := range n {
		if id, _, _ := worker(i + 1); machines[firstName(i+1)] != "static|"+id {
			wrong++
		}
	}
	if wrong > 0 {
		a.t.Errorf("%d of %d certificates are on record without their machine", wrong, n)
	}
}

// forged makes a request that says by itself what was decided about it, in all places where it could; and somebody who
// may write such requests, for signers of his own, writes it into one that was issued.
func (a *approver) forged(fleet kubernetes.Interface) {
	claim := csrview.Condition(decision.Decision{Verdict: decision.Approve}, "static|m-7", 100)
	_, node, _ := worker(6)
	csr := request("forged", signerClient, pkitest.Kubelet(a.t, node))
	csr.Annotations = map[string]string{csrview.Annotation: claim.Message, "certificates.muster.dev/machine": "static|m-7"}
	csr.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "muster", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "certificates.k8s.io/v1", Subresource: "approval", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:certificates.muster.dev/machine":{}}},"f:status":{"f:conditions":{}}}`),
	}}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{claim}
	a.create(fleet, csr)
	a.becomes("forged", issuedByRules)
	if _, machine, ok := csrview.Decided(a.get("forged")); !ok || machine != "static|m-6" {
		a.t.Errorf("it was decided about machine %q", machine)
	}
	all := a.plane.Admin().CertificatesV1().CertificateSigningRequests()
	if err := a.plane.Grant(a.t.Context(), "other-signer", rbacv1.UserKind, "other-signer", rbacv1.PolicyRule{
		Verbs: []string{"get", "update", "patch"}, APIGroups: []string{"certificates.k8s.io"},
		Resources: []string{"certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"},
	}, rbacv1.PolicyRule{
		Verbs: []string{"approve", "sign"}, APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, ResourceNames: []string{"example.com/own"},
	}); err != nil {
		a.t.Fatal(err)
	}
	other := a.user("other-signer").CertificatesV1().CertificateSigningRequests()
	a.eventually("he may write", func() error {
		_, err := other.Get(a.t.Context(), "forged", metav1.GetOptions{})
		return err
	})
	ways := map[string]func(*certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error){
		"status": func(o *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error) {
			return other.UpdateStatus(a.t.Context(), o, metav1.UpdateOptions{})
		},
		"approval": func(o *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error) {
			return other.UpdateApproval(a.t.Context(), o.Name, o, metav1.UpdateOptions{})
		},
	}
	for way, write := range ways {
		csr := a.get("forged")
		last := &csr.Status.Conditions[len(csr.Status.Conditions)-1]
		if last.Type != csrview.DecidedCondition {
			a.t.Fatalf("the conditions are %v", csr.Status.Conditions)
		}
		last.Message = claim.Message
		if _, err := write(csr); !apierrors.IsForbidden(err) {
			a.t.Errorf("who may neither approve nor sign for this signer writes its conditions by %s: %v", way, err)
		}
	}
	csr = a.get("forged")
	csr.Status.Conditions[len(csr.Status.Conditions)-1].Message = claim.Message
	if csr, err := all.Update(a.t.Context(), csr, metav1.UpdateOptions{}); err != nil {
		a.t.Error(err)
	} else if _, machine, _ := csrview.Decided(csr); machine != "static|m-6" {
		a.t.Errorf("by the request itself it became machine %q", machine)
	}
	a.eventually("it is on record", func() error {
		all, err := issued.Load(a.t.Context(), a.plane.Admin(), approverNamespace)
		if n := slices.IndexFunc(all, func(e issued.Entry) bool { return e.CSR == "forged" }); err == nil && n < 0 {
			err = errors.New("not yet")
		} else if n >= 0 && all[n].Machine != "static|m-6" {
			a.t.Errorf("on record for machine %q", all[n].Machine)
		}
		return err
	})
}

// stolenFirst gives the name of a node to another machine. Who holds the key of the old one gets no certificate for the
// address of the new one, neither before that has joined nor after it.
func (a *approver) stolenFirst(fleet kubernetes.Interface) {
	const node, old, fresh = "con.example", "{id: c-old, nodeName: con.example, addresses: [10.9.0.3], group: fleet}", "{id: c-new, nodeName: con.example, addresses: [10.9.0.4], group: fleet}"
	a.inventory(41, "- "+old+"\n")
	key := pkitest.Key(a.t)
	a.create(fleet, request("node-csr-con", signerClient, pkitest.Encode(a.t, key, pkitest.Template(node))))
	a.becomes("node-csr-con", issuedByRules)
	thief := a.client(a.holder("node-csr-con", key))
	a.inventory(42, "- "+fresh+"\n")
	a.steals(thief, "before", node, "10.9.0.4")
	a.create(fleet, request("node-csr-con-new", signerClient, pkitest.Kubelet(a.t, node)))
	a.becomes("node-csr-con-new", issuedByRules)
	a.steals(thief, "after", node, "10.9.0.4")
}

func (a *approver) steals(thief kubernetes.Interface, when, node, address string) {
	a.t.Helper()
	a.create(thief, request("stolen-serving-"+when, signerServing, pkitest.Kubelet(a.t, node, node, address)))
	a.create(thief, request("stolen-client-"+when, signerClient, pkitest.Kubelet(a.t, node)))
	for _, kind := range []string{"serving", "client"} {
		a.becomes("stolen-"+kind+"-"+when, "Denied/credential")
	}
}

// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/certificates/pki/pkitest"
)

// With upstream's approver a bootstrap token makes its holder any node there is, for as long as the token lives, and a
// kubelet's key that was copied renews for ever. Here neither is any good once the node has spoken for itself and the
// machine was replaced.
//
//story:about certificates
func TestTokenIsNoGoodForANodeThatExists(t *testing.T) {
	t.Parallel()
	a := newApprover(t, "approve-and-sign")
	a.machines(1)
	_, node, _ := worker(1)
	a.registerNode(node)
	a.run("muster", a.policy)
	token, key := a.bootstrap(1), pkitest.Key(t)
	a.create(token, request("stolen", signerClient, pkitest.Encode(t, key, pkitest.Template(node))))
	a.told("stolen", "Normal CertificateWaiting", "existing-node")
	if state := stateOf(a.get("stolen")); state != "" {
		t.Errorf("it is %s", state)
	}
	a.mustKubectl("delete", "node", node)
	if took := a.becomes("stolen", issuedByRules); took > 5*time.Second {
		t.Errorf("it took %s: nobody noticed that the Node is gone", took)
	}
	kubelet := a.client(a.holder("stolen", key))
	a.create(kubelet, request("renewal", signerClient, pkitest.Kubelet(t, node)))
	a.becomes("renewal", issuedByRules)
	t.Run("a token that brought a node in is spent, also when the Node is deleted", func(t *testing.T) { a.in(t).spentToken(token, node) })
	t.Run("people approve and deny by muster csr, and say why", func(t *testing.T) { a.in(t).verdictsByHand(token, node) })
	t.Run("a copied key is good while the machine lives, and for nothing when it was replaced", func(t *testing.T) { a.in(t).copiedKey(kubelet, node) })
}

func (a *approver) registerNode(name string) {
	a.t.Helper()
	if _, err := a.plane.Admin().CoreV1().Nodes().Create(a.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// csr is muster csr, typed by an administrator. All of these parts must be in what it prints.
func (a *approver) csr(parts []string, args ...string) {
	a.t.Helper()
	args = append(append([]string{"csr"}, args...), "--kubeconfig", a.admin)
	out, err := a.plane.Command(a.t.Context(), a.admin, "muster", args...).CombinedOutput()
	if err != nil {
		a.t.Fatalf("muster %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	// Columns are as wide as what is in them.
	words := strings.Join(strings.Fields(string(out)), " ")
	for _, part := range parts {
		if !strings.Contains(words, part) {
			a.t.Errorf("muster %s does not say %q:\n%s", strings.Join(args, " "), part, out)
		}
	}
}

func (a *approver) spentToken(token kubernetes.Interface, node string) {
	a.registerNode(node)
	a.mustKubectl("delete", "node", node)
	a.create(token, request("spent", signerClient, pkitest.Kubelet(a.t, node)))
	a.told("spent", "Normal CertificateWaiting", "bootstrap-spent")
	if state := stateOf(a.get("spent")); state != "" {
		a.t.Errorf("it is %s", state)
	}
	said := fmt.Sprintf("node %s joined by this token, has asked for itself since, and its certificate is still valid", node)
	a.csr([]string{"State: Pending", "bootstrap-spent", said, "make another token, or approve by hand"}, "explain", "spent")
	// Whoever takes a machine out and in again makes a token for that.
	a.create(a.bootstrap(1), request("in-again", signerClient, pkitest.Kubelet(a.t, node)))
	a.becomes("in-again", issuedByRules)
}

func (a *approver) verdictsByHand(token kubernetes.Interface, node string) {
	// Who is believed gets a certificate by that token, which is good again until the node has spoken for itself.
	for _, verdict := range []struct{ name, verb, state, becomes string }{
		{"doubted", "deny", "Denied", "Denied/DeniedByOperator"},
		{"believed", "approve", "Issued", "Approved/ApprovedByOperator Issued"},
	} {
		name := verdict.name
		a.create(token, request(name, signerClient, pkitest.Kubelet(a.t, node)))
		a.told(name, "Normal CertificateWaiting", "bootstrap-spent")
		a.csr([]string{name, "Pending Wait bootstrap-spent: "}, "list", "--pending")
		reason := "I saw it in rack 7, ticket " + name
		a.csr([]string{name}, verdict.verb, name, "--reason", reason)
		a.becomes(name, verdict.becomes)
		if said := a.get(name).Status.Conditions[0].Message; said != reason {
			a.t.Errorf("the condition says %q, not %q", said, reason)
		}
		a.csr([]string{"State: " + verdict.state}, "explain", name)
		a.csr([]string{name, verdict.state}, "list")
	}
	a.csr([]string{"State: Denied", "I saw it in rack 7, ticket doubted"}, "explain", "doubted")
	a.csr([]string{"I saw it in rack 7, ticket doubted"}, "list")
}

func (a *approver) copiedKey(thief kubernetes.Interface, node string) {
	// One machine with two holders: nobody can tell them apart.
	a.create(thief, request("copy", signerClient, pkitest.Kubelet(a.t, node)))
	a.becomes("copy", issuedByRules)

	id, _, address := worker(1)
	const successor = "m-1b"
	a.inventory(2, fmt.Sprintf("- {id: %s, nodeName: %s, addresses: [%s]}\n", successor, node, address))
	for name, signer := range map[string]string{"copy-client": signerClient, "copy-serving": signerServing} {
		names := []string{node, address}
		if signer == signerClient {
			names = nil
		}
		a.create(thief, request(name, signer, pkitest.Kubelet(a.t, node, names...)))
		a.becomes(name, "Denied/credential")
		said := fmt.Sprintf("the certificate that asks was issued to machine %s, and node %s is machine %s by now", id, node, successor)
		a.told(name, "Warning CertificateDenied", said)
		a.csr([]string{"State: Denied", "credential", said, "let it join again, or approve by hand"}, "explain", name)
	}
	a.inventory(3, "")
	a.create(thief, request("copy-of-nobody", signerClient, pkitest.Kubelet(a.t, node)))
	a.told("copy-of-nobody", "Normal CertificateWaiting", "by rule machine: no machine is node "+node)
	if state := stateOf(a.get("copy-of-nobody")); state != "" {
		a.t.Errorf("it is %s", state)
	}
}

// inventory writes another list of machines. It has machine n as well, which asks for a certificate: when that is
// issued the list was read.
func (a *approver) inventory(n int, list string) {
	a.t.Helper()
	id, node, address := worker(n)
	list = fmt.Sprintf("machines:\n- {id: %s, nodeName: %s, addresses: [%s]}\n%s", id, node, address, list)
	maps := a.plane.Admin().CoreV1().ConfigMaps(approverNamespace)
	_, err := maps.Update(a.t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "muster-machines"}, Data: map[string]string{"machines.yaml": list},
	}, metav1.UpdateOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	a.create(a.bootstrap(n), request("read-"+id, signerClient, pkitest.Kubelet(a.t, node)))
	a.becomes("read-"+id, issuedByRules)
}

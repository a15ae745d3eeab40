// SPDX-License-Identifier: Apache-2.0

package csr

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

func runCSR(ctx context.Context, b *clitest.Bench, args ...string) error {
	c := &csrCommand{Options: b.O, cluster: b.Planes.Cluster, now: func() time.Time { return clitest.Noon }}
	return b.Run(ctx, c.command(), args...)
}

// requests are a waiting one, one that was denied, and one with a decision that its own maker wrote into it.
func requests(t *testing.T) []client.Object {
	t.Helper()
	waits := &certificatesv1.CertificateSigningRequest{ObjectMeta: clitest.MadeBefore("csr-waits", 90*time.Second)}
	waits.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeletServingSignerName, Username: "system:node:" + clitest.FirstNode, Groups: []string{"system:nodes", "system:authenticated"},
		Usages:  []certificatesv1.KeyUsage{"digital signature", "server auth"},
		Request: pkitest.Kubelet(t, clitest.FirstNode, clitest.FirstNode, "172.31.0.99"),
	}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "default"}, LastTimestamp: metav1.NewTime(clitest.Noon)}
	event.InvolvedObject = corev1.ObjectReference{Kind: "CertificateSigningRequest", Name: waits.Name, UID: waits.UID}
	event.Annotations = map[string]string{csrview.Annotation: `{"verdict":"Wait","rule":"machine","checks":[{"rule":"signer","outcome":"Pass","detail":"ours"},{"rule":"machine","outcome":"Wait","detail":"no machine is node \u001b[31mx","hint":"it may yet appear in the inventory"}]}`}
	event.Message = "Wait by rule machine"

	denied := &certificatesv1.CertificateSigningRequest{ObjectMeta: clitest.MadeBefore("csr-denied", time.Minute)}
	denied.Spec = certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Username: "system:bootstrap:abcdef"}
	denied.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Reason: "shape", Message: "two PEM blocks"}}

	forged := &certificatesv1.CertificateSigningRequest{ObjectMeta: clitest.MadeBefore("csr-forged", time.Second)}
	forged.Annotations = map[string]string{csrview.Annotation: `{"verdict":"Approve","checks":[]}`}
	forged.Spec = certificatesv1.CertificateSigningRequestSpec{SignerName: "kubernetes.io/kube-apiserver-client", Username: "vip"}
	return []client.Object{waits, event, denied, forged}
}

func TestCSRList(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, requests(t)...)
	for name, args := range map[string][]string{
		"csr-list.txt":         {"list"},
		"csr-list-wide.txt":    {"list", "-o", "wide", "--pending"},
		"csr-list-names.txt":   {"list", "-o", "name", "--signer", "kubelet-serving"},
		"csr-list-named.txt":   {"list", "csr-denied", "csr/csr-waits", "-o", "name"},
		"csr-explain.txt":      {"explain", "csr-waits"},
		"csr-explain-none.txt": {"explain", "csr-forged"},
	} {
		if err := runCSR(t.Context(), b, args...); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		clitest.Golden(t, name, b.Out.String())
	}
	if err := runCSR(t.Context(), b, "list", "-o", "json", "--signer", "nobody/knows"); err != nil || b.Out.String() != "[]\n" {
		t.Errorf("no requests in JSON: %q, %v", b.Out.String(), err)
	}
	clitest.WantErr(t, runCSR(t.Context(), b, "explain", "csr-gone"), `no certificate signing request "csr-gone"`, false)
	clitest.WantErr(t, runCSR(t.Context(), b, "list", "csr-gone"), `no certificate signing request "csr-gone"`, false)
	clitest.WantErr(t, runCSR(t.Context(), b, "list", "csr-waits", "--pending"), "give names or filters (--pending, --signer), not both", true)
	clitest.WantErr(t, runCSR(t.Context(), b, "list", "-o", "xml"), `unknown output format "xml"`, true)
}

// A request that a person approved is judged again before it is signed. Both are shown: who approved it, and what it
// waits for.
func TestCSRApprovedByHandWaits(t *testing.T) {
	t.Parallel()
	objects := requests(t)
	objects[0].(*certificatesv1.CertificateSigningRequest).Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ApprovedByOperator", Message: "ticket 4711"},
	}
	b := clitest.NewBench(t, interceptor.Funcs{}, objects...)
	for name, args := range map[string][]string{
		"csr-explain-approved.txt": {"explain", "csr-waits"},
		"csr-list-approved.txt":    {"list", "--signer", "kubelet-serving"},
	} {
		if err := runCSR(t.Context(), b, args...); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		clitest.Golden(t, name, b.Out.String())
	}
	event := objects[1].(*corev1.Event) // an earlier decision about it counts no more
	event.Annotations[csrview.Annotation] = `{"verdict":"Ignore","rule":"requester","checks":[]}`
	b = clitest.NewBench(t, interceptor.Funcs{}, objects...)
	if err := runCSR(t.Context(), b, "explain", "csr-waits"); err != nil || !strings.Contains(b.Out.String(), "Why:          ApprovedByOperator: ticket 4711 (condition)\n") {
		t.Errorf("told %q (%v)", b.Out.String(), err)
	}
}

// Who may read requests, but no Events, is shown what there is.
func TestCSRWithoutEvents(t *testing.T) {
	t.Parallel()
	var refusal error
	b := clitest.NewBench(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*corev1.EventList); ok {
				return refusal
			}
			return c.List(ctx, list, opts...)
		},
	}, requests(t)...)
	refusal = apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("not yours"))
	if err := runCSR(t.Context(), b, "list"); err != nil || !strings.Contains(b.Out.String(), "csr-denied") || !strings.HasPrefix(b.Err.String(), "Warning: what requests wait for may be missing: events is forbidden") {
		t.Errorf("%v: printed %q, said %q", err, b.Out.String(), b.Err.String())
	}
	refusal = errors.New("etcd is away")
	clitest.WantErr(t, runCSR(t.Context(), b, "list"), "etcd is away", false)
}

// Commands accept a name as -o name prints it.
func TestCSRNamesWithTheirKind(t *testing.T) {
	t.Parallel()
	b := clitest.NewBench(t, interceptor.Funcs{}, requests(t)...)
	for _, name := range []string{"csr/csr-waits", "certificatesigningrequest.certificates.k8s.io/csr-waits"} {
		if err := runCSR(t.Context(), b, "explain", name); err != nil || !strings.HasPrefix(b.Out.String(), "Request:      csr-waits\n") {
			t.Errorf("%s: %v, told %q", name, err, b.Out.String())
		}
	}
	clitest.WantErr(t, runCSR(t.Context(), b, "explain", "node/csr-waits"), "node/csr-waits", false)
}

func TestCSRVerdictsByHand(t *testing.T) {
	t.Parallel()
	conflicts := 1
	b := clitest.NewBench(t, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if sub != "approval" {
				t.Errorf("wrote through %q", sub)
			}
			if conflicts--; conflicts >= 0 {
				return apierrors.NewConflict(schema.GroupResource{Resource: "certificatesigningrequests"}, o.GetName(), errors.New("changed"))
			}
			return c.Status().Update(ctx, o)
		},
	}, requests(t)...)
	clitest.WantErr(t, runCSR(t.Context(), b, "approve", "csr-waits"), "--reason", true)
	clitest.WantErr(t, runCSR(t.Context(), b, "approve", "csr-waits", "csr-denied", "--reason", "x"), "csr-denied is already denied, which is final: the requester must make a new request", false)
	clitest.WantErr(t, runCSR(t.Context(), b, "approve", "csr-waits", "csr-gone", "--reason", "x"), `no certificate signing request "csr-gone"`, false)
	for range 2 { // doing it again changes nothing
		if err := runCSR(t.Context(), b, "approve", "csr-waits", "--reason", "ticket 4711"); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(b.Out.String(), "was approved already") {
		t.Errorf("said %q", b.Out.String())
	}
	var csr certificatesv1.CertificateSigningRequest
	if err := b.Client.Get(t.Context(), client.ObjectKey{Name: "csr-waits"}, &csr); err != nil {
		t.Fatal(err)
	}
	if len(csr.Status.Conditions) != 1 || csr.Status.Conditions[0].Type != certificatesv1.CertificateApproved || csr.Status.Conditions[0].Message != "ticket 4711" {
		t.Errorf("conditions %+v", csr.Status.Conditions)
	}
	clitest.WantErr(t, runCSR(t.Context(), b, "deny", "csr-waits", "--reason", "x"), "is already approved", false)
}

const simulatedMachines = `machines:
- id: i-1
  nodeName: node-1
  names: [node-1]
  addresses: [10.0.0.1]
`

func TestCSRSimulate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	machines := write("machines.yaml", []byte(simulatedMachines))
	good := write("good.pem", pkitest.Kubelet(t, "node-1", "node-1", "10.0.0.1"))
	bad := write("bad.pem", pkitest.Kubelet(t, "node-1", "node-1", "10.0.0.2"))
	join := write("join.pem", pkitest.Kubelet(t, "node-1"))
	config := write("policy.yaml", []byte(`apiVersion: certificates.muster.dev/v1alpha1
kind: CertificateControllerConfiguration
mode: approve-only
signers: [{name: kubernetes.io/kubelet-serving}]
inventory: {sources: [{static: {file: `+machines+`}}]}
`))
	token := []string{"--requester", "system:bootstrap:abcdef", "--group", "system:bootstrappers", "--group", "system:bootstrappers:muster:i-1"}
	for _, tc := range []struct {
		name string
		args []string
		want string
		code int
	}{
		{"serving", []string{"-f", good, "--machines", machines}, "Approve", 0},
		{"by the policy file", []string{"-f", good, "--config", config}, "Approve", 0},
		{"a signer that the policy file does not have", []string{"-f", join, "--config", config}, "Ignore by rule signer", 1},
		{"address of nobody", []string{"-f", bad, "--machines", machines}, "Wait by rule address-assigned", 1},
		{"nothing known", []string{"-f", good}, "no inventory was given", 1},
		{"joining", append([]string{"-f", join, "--machines", machines}, token...), "Approve", 0},
		{"joining as a node that there is", append([]string{"-f", join, "--machines", machines, "--node-exists"}, token...), "Wait by rule existing-node", 1},
		{"no access", append([]string{"-f", join, "--machines", machines, "--no-access"}, token...), "Wait by rule access-review", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := clitest.NewBench(t, interceptor.Funcs{})
			err := runCSR(t.Context(), b, append([]string{"simulate"}, tc.args...)...)
			var status terminal.ExitStatus
			if errors.As(err, &status) != (tc.code != 0) || err != nil && int(status) != tc.code {
				t.Fatalf("exit %v", err)
			}
			if !strings.Contains(b.Out.String(), tc.want) {
				t.Errorf("said %q", b.Out.String())
			}
		})
	}
	b := clitest.NewBench(t, interceptor.Funcs{})
	clitest.WantErr(t, runCSR(t.Context(), b, "simulate"), "-f", true)
	clitest.WantErr(t, runCSR(t.Context(), b, "simulate", "-f", machines), "is not a certificate signing request", false)
	clitest.WantErr(t, runCSR(t.Context(), b, "simulate", "-f", good, "--config", machines), "machines.yaml", false)
}

// SPDX-License-Identifier: Apache-2.0

package main

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

	"muster.dev/muster/internal/pki/pkitest"
	"muster.dev/muster/internal/review"
)

func (b *bench) csr(ctx context.Context, args ...string) error {
	c := &csrCommand{options: b.o, cluster: b.planes.cluster, now: func() time.Time { return noon }}
	return b.run(ctx, c.command(), args...)
}

// requests are a waiting one, one that was denied, and one with a decision that its own maker wrote into it.
func requests(t *testing.T) []client.Object {
	t.Helper()
	waits := &certificatesv1.CertificateSigningRequest{ObjectMeta: madeBefore("csr-waits", 90*time.Second)}
	waits.Spec = certificatesv1.CertificateSigningRequestSpec{
		SignerName: certificatesv1.KubeletServingSignerName, Username: "system:node:" + firstNode, Groups: []string{"system:nodes", "system:authenticated"},
		Usages:  []certificatesv1.KeyUsage{"digital signature", "server auth"},
		Request: pkitest.Kubelet(t, firstNode, firstNode, "192.168.64.99"),
	}
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "default"}, LastTimestamp: metav1.NewTime(noon)}
	event.InvolvedObject = corev1.ObjectReference{Kind: "CertificateSigningRequest", Name: waits.Name, UID: waits.UID}
	event.Annotations = map[string]string{review.Annotation: `{"verdict":"Wait","rule":"machine","checks":[{"rule":"signer","outcome":"Pass","detail":"ours"},{"rule":"machine","outcome":"Wait","detail":"no machine is node \u001b[31mx","hint":"it may yet appear in the inventory"}]}`}
	event.Message = "Wait by rule machine"

	denied := &certificatesv1.CertificateSigningRequest{ObjectMeta: madeBefore("csr-denied", time.Minute)}
	denied.Spec = certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Username: "system:bootstrap:abcdef"}
	denied.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Reason: "shape", Message: "two PEM blocks"}}

	forged := &certificatesv1.CertificateSigningRequest{ObjectMeta: madeBefore("csr-forged", time.Second)}
	forged.Annotations = map[string]string{review.Annotation: `{"verdict":"Approve","checks":[]}`}
	forged.Spec = certificatesv1.CertificateSigningRequestSpec{SignerName: "kubernetes.io/kube-apiserver-client", Username: "vip"}
	return []client.Object{waits, event, denied, forged}
}

func TestCSRList(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{}, requests(t)...)
	for name, args := range map[string][]string{
		"csr-list.txt":         {"list"},
		"csr-list-wide.txt":    {"list", "-o", "wide", "--pending"},
		"csr-list-names.txt":   {"list", "-o", "name", "--signer", "kubelet-serving"},
		"csr-list-named.txt":   {"list", "csr-denied", "csr/csr-waits", "-o", "name"},
		"csr-explain.txt":      {"explain", "csr-waits"},
		"csr-explain-none.txt": {"explain", "csr-forged"},
	} {
		if err := b.csr(t.Context(), args...); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		golden(t, name, b.out.String())
	}
	if err := b.csr(t.Context(), "list", "-o", "json", "--signer", "nobody/knows"); err != nil || b.out.String() != "[]\n" {
		t.Errorf("no requests in JSON: %q, %v", b.out.String(), err)
	}
	wantErr(t, b.csr(t.Context(), "explain", "csr-gone"), `no certificate signing request "csr-gone"`, false)
	wantErr(t, b.csr(t.Context(), "list", "csr-gone"), `no certificate signing request "csr-gone"`, false)
	wantErr(t, b.csr(t.Context(), "list", "csr-waits", "--pending"), "give names, or --pending and --signer, not both", true)
	wantErr(t, b.csr(t.Context(), "list", "-o", "xml"), `unknown output format "xml"`, true)
}

// One that a person approved is judged again before it is signed, and both are told: who approved it, and what it waits for.
func TestCSRApprovedByHandWaits(t *testing.T) {
	t.Parallel()
	objects := requests(t)
	objects[0].(*certificatesv1.CertificateSigningRequest).Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ApprovedByOperator", Message: "ticket 4711"},
	}
	b := newBench(t, interceptor.Funcs{}, objects...)
	for name, args := range map[string][]string{
		"csr-explain-approved.txt": {"explain", "csr-waits"},
		"csr-list-approved.txt":    {"list", "--signer", "kubelet-serving"},
	} {
		if err := b.csr(t.Context(), args...); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		golden(t, name, b.out.String())
	}
	event := objects[1].(*corev1.Event) // what was said of it before counts no more
	event.Annotations[review.Annotation] = `{"verdict":"Ignore","rule":"requester","checks":[]}`
	b = newBench(t, interceptor.Funcs{}, objects...)
	if err := b.csr(t.Context(), "explain", "csr-waits"); err != nil || !strings.Contains(b.out.String(), "Why:          ApprovedByOperator: ticket 4711 (condition)\n") {
		t.Errorf("told %q (%v)", b.out.String(), err)
	}
}

// Who may read requests, but no Events, is shown what there is.
func TestCSRWithoutEvents(t *testing.T) {
	t.Parallel()
	var refusal error
	b := newBench(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*corev1.EventList); ok {
				return refusal
			}
			return c.List(ctx, list, opts...)
		},
	}, requests(t)...)
	refusal = apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("not yours"))
	if err := b.csr(t.Context(), "list"); err != nil || !strings.Contains(b.out.String(), "csr-denied") || !strings.HasPrefix(b.err.String(), "Warning: what requests wait for may be missing: events is forbidden") {
		t.Errorf("%v: printed %q, said %q", err, b.out.String(), b.err.String())
	}
	refusal = errors.New("etcd is away")
	wantErr(t, b.csr(t.Context(), "list"), "etcd is away", false)
}

// What -o name prints is a name.
func TestCSRNamesWithTheirKind(t *testing.T) {
	t.Parallel()
	b := newBench(t, interceptor.Funcs{}, requests(t)...)
	for _, name := range []string{"csr/csr-waits", "certificatesigningrequest.certificates.k8s.io/csr-waits"} {
		if err := b.csr(t.Context(), "explain", name); err != nil || !strings.HasPrefix(b.out.String(), "Request:      csr-waits\n") {
			t.Errorf("%s: %v, told %q", name, err, b.out.String())
		}
	}
	wantErr(t, b.csr(t.Context(), "explain", "node/csr-waits"), "node/csr-waits", false)
}

func TestCSRVerdictsByHand(t *testing.T) {
	t.Parallel()
	conflicts := 1
	b := newBench(t, interceptor.Funcs{
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
	wantErr(t, b.csr(t.Context(), "approve", "csr-waits"), "--reason", true)
	wantErr(t, b.csr(t.Context(), "approve", "csr-waits", "csr-denied", "--reason", "x"), "csr-denied is denied already, which cannot be changed", false)
	wantErr(t, b.csr(t.Context(), "approve", "csr-waits", "csr-gone", "--reason", "x"), `no certificate signing request "csr-gone"`, false)
	for range 2 { // doing it again changes nothing
		if err := b.csr(t.Context(), "approve", "csr-waits", "--reason", "ticket 4711"); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(b.out.String(), "was approved already") {
		t.Errorf("said %q", b.out.String())
	}
	var csr certificatesv1.CertificateSigningRequest
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: "csr-waits"}, &csr); err != nil {
		t.Fatal(err)
	}
	if len(csr.Status.Conditions) != 1 || csr.Status.Conditions[0].Type != certificatesv1.CertificateApproved || csr.Status.Conditions[0].Message != "ticket 4711" {
		t.Errorf("conditions %+v", csr.Status.Conditions)
	}
	wantErr(t, b.csr(t.Context(), "deny", "csr-waits", "--reason", "x"), "is approved already", false)
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
			b := newBench(t, interceptor.Funcs{})
			err := b.csr(t.Context(), append([]string{"simulate"}, tc.args...)...)
			var status exitStatus
			if errors.As(err, &status) != (tc.code != 0) || err != nil && int(status) != tc.code {
				t.Fatalf("exit %v", err)
			}
			if !strings.Contains(b.out.String(), tc.want) {
				t.Errorf("said %q", b.out.String())
			}
		})
	}
	b := newBench(t, interceptor.Funcs{})
	wantErr(t, b.csr(t.Context(), "simulate"), "-f", true)
	wantErr(t, b.csr(t.Context(), "simulate", "-f", machines), "neither a CertificateSigningRequest", false)
	wantErr(t, b.csr(t.Context(), "simulate", "-f", good, "--config", machines), "machines.yaml", false)
}

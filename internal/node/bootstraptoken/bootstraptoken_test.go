// SPDX-License-Identifier: Apache-2.0

package bootstraptoken_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/bootstraptoken"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func cluster(funcs interceptor.Funcs, objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).
		WithIndex(&corev1.Secret{}, "type", func(o client.Object) []string {
			s, ok := o.(*corev1.Secret)
			if !ok {
				return nil
			}
			return []string{string(s.Type)}
		}).Build()
}

func bootstrap(t *testing.T, id string, expires time.Time, scopes ...token.Scope) token.Bootstrap {
	t.Helper()
	tok, err := token.Parse(id + ".zyxwvutsrq987654")
	if err != nil {
		t.Fatal(err)
	}
	b := token.Bootstrap{Token: tok, Usages: []string{"authentication", "signing"}, Groups: []string{token.DefaultGroup}, Expires: expires}
	if err := b.Bind(scopes...); err != nil {
		t.Fatal(err)
	}
	return b
}

func wantErr(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "zyxwvuts") {
		t.Errorf("got %v, want %q", err, says)
	}
}

func TestTokensComeAndGo(t *testing.T) {
	broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-broken"}, Type: corev1.SecretTypeBootstrapToken}
	bound, err := bootstrap(t, "twice0", noon).Secret()
	if err != nil {
		t.Fatal(err)
	}
	bound.Data["auth-extra-groups"] = []byte("system:bootstrappers:muster:name:a,system:bootstrappers:muster:name:b")
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "other"}, Type: corev1.SecretTypeOpaque}
	c := cluster(interceptor.Funcs{}, broken, bound, other)
	for _, b := range []token.Bootstrap{
		bootstrap(t, "never0", time.Time{}), bootstrap(t, "later0", noon.Add(time.Hour)),
		bootstrap(t, "first0", noon, token.Scope{Kind: token.ScopePattern, Value: "w-*"}), bootstrap(t, "later1", noon.Add(time.Hour)),
	} {
		if err := bootstraptoken.Create(t.Context(), c, b); err != nil {
			t.Fatal(err)
		}
	}
	wantErr(t, bootstraptoken.Create(t.Context(), c, bootstrap(t, "never0", noon)), "there is a token never0 already")
	tokens, unusable, err := bootstraptoken.List(t.Context(), c)
	var ids []string
	for _, l := range tokens {
		ids = append(ids, l.Token.ID)
	}
	if diff := cmp.Diff([]string{"first0", "later0", "later1", "never0"}, ids); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if diff := cmp.Diff([]token.Scope{{Kind: token.ScopePattern, Value: "w-*"}}, tokens[0].Scopes); diff != "" {
		t.Error(diff)
	}
	if len(unusable) != 2 {
		t.Fatalf("unusable are %v", unusable)
	}
	wantErr(t, unusable[0], "Secret kube-system/bootstrap-token-broken is not a usable bootstrap token")
	wantErr(t, unusable[1], "refuses the token twice0: it is bound to two values of name")
	if l, err := bootstraptoken.Get(t.Context(), c, "later0"); err != nil || l.Token.ID != "later0" {
		t.Errorf("got %+v, %v", l, err)
	}
	if err := bootstraptoken.Delete(t.Context(), c, "later0"); err != nil {
		t.Error(err)
	}
	wantErr(t, bootstraptoken.Delete(t.Context(), c, "later0"), "there is no token later0")
	_, err = bootstraptoken.Get(t.Context(), c, "later0")
	wantErr(t, err, "there is no token later0")
}

func host(name, address string) policy.Machine {
	return policy.Machine{ID: facts.HostID(name), NodeName: name, Addresses: []netip.Addr{netip.MustParseAddr(address)}}
}

// Two people register hosts at the same moment: none is lost.
func TestHosts(t *testing.T) {
	conflicts := 2
	var c client.Client
	rival := func(ctx context.Context) {
		if conflicts--; conflicts == 1 { // in between, somebody else wrote
			if _, err := bootstraptoken.Register(ctx, c, host("rival", "10.0.0.9")); err != nil {
				t.Error(err)
			}
		}
	}
	hosts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "muster-system", Name: "machines", Labels: map[string]string{"a": "b"}}, Data: map[string]string{"machines.yaml": "machines: []\n", "notes": "mine"}}
	c = cluster(interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		rival(ctx)
		return c.Update(ctx, o, opts...)
	}}, hosts)
	if before, err := bootstraptoken.Register(t.Context(), c, host("worker-1", "10.0.0.3")); err != nil || before != nil {
		t.Fatalf("there was %v, %v", before, err)
	}
	for _, was := range []string{"10.0.0.3", "10.0.0.1"} { // with another address, and with the same again
		if before, err := bootstraptoken.Register(t.Context(), c, host("worker-1", "10.0.0.1")); err != nil || before == nil || before.Addresses[0].String() != was {
			t.Errorf("there was %v, %v", before, err)
		}
	}
	var got corev1.ConfigMap
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(hosts), &got); err != nil {
		t.Fatal(err)
	}
	machines, err := facts.ReadList([]byte(got.Data["machines.yaml"]))
	if err != nil || len(machines) != 2 || got.Data["notes"] != "mine" || got.Labels["a"] != "b" {
		t.Errorf("there is %+v, %v", got, err)
	}
	if found, err := bootstraptoken.Forget(t.Context(), c, "worker-1"); err != nil || !found {
		t.Errorf("found %v, %v", found, err)
	}
	if found, err := bootstraptoken.Forget(t.Context(), c, "worker-1"); err != nil || found {
		t.Errorf("again: found %v, %v", found, err)
	}
	_, err = bootstraptoken.Register(t.Context(), c, host("worker-2", "10.0.0.9"))
	wantErr(t, err, "ConfigMap muster-system/machines, key machines.yaml): the address 10.0.0.9 is that of ")
}

func TestDifferencesOfHosts(t *testing.T) {
	before := host("worker-1", "10.0.0.1")
	if got := bootstraptoken.Differences(before, host("worker-1", "10.0.0.1")); got != nil {
		t.Errorf("the same is another: %q", got)
	}
	now := host("worker-1", "10.0.0.2")
	now.Addresses = append(now.Addresses, netip.MustParseAddr("fd00::1"))
	now.Group, before.Names = "rack-7", []string{"a", "b"}
	want := []string{"address 10.0.0.2,fd00::1 instead of 10.0.0.1", "name none instead of a,b", "group rack-7 instead of none"}
	if diff := cmp.Diff(want, bootstraptoken.Differences(before, now)); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

func TestHostsOfOtherClusters(t *testing.T) {
	c := cluster(interceptor.Funcs{})
	if found, err := bootstraptoken.Forget(t.Context(), c, "worker-1"); err != nil || found {
		t.Errorf("found %v, %v", found, err)
	}
	if before, err := bootstraptoken.Register(t.Context(), c, host("worker-1", "10.0.0.1")); err != nil || before != nil {
		t.Errorf("there was %v, %v", before, err)
	}
	none := cluster(interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "muster-system")
	}})
	_, err := bootstraptoken.Register(t.Context(), none, host("worker-1", "10.0.0.1"))
	wantErr(t, err, "no namespace muster-system")
	failure := errors.New("no room")
	full := cluster(interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return failure
	}})
	if _, err := bootstraptoken.Register(t.Context(), full, host("worker-1", "10.0.0.1")); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}

func TestUses(t *testing.T) {
	l := bootstraptoken.Listed{Bootstrap: bootstrap(t, "abcdef", noon), Created: noon}
	entry := func(uid, requester, signer, node string, at time.Time) issued.Entry {
		return issued.Entry{UID: uid, CSR: "csr-" + uid, Requester: requester, Signer: signer, Node: node, NotBefore: at.Add(-5 * time.Minute)}
	}
	request := func(uid, requester, node string, at time.Time, records bool) certificatesv1.CertificateSigningRequest {
		r := certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-" + uid, UID: types.UID(uid), CreationTimestamp: metav1.NewTime(at)}}
		r.Spec.Username, r.Spec.SignerName, r.Spec.Request = requester, pki.SignerKubeletClient, pkitest.Kubelet(t, node)
		if records {
			r.Status.Certificate = []byte("x")
		}
		return r
	}
	const by = "system:bootstrap:abcdef"
	trash := request("trash", by, "x", noon, true)
	trash.Spec.Request = []byte("trash")
	uses := bootstraptoken.UsesOf(l, []issued.Entry{
		entry("1", by, pki.SignerKubeletClient, "a", noon.Add(2*time.Minute)),
		entry("2", by, pki.SignerKubeletServing, "a", noon.Add(2*time.Minute)),
		entry("3", "system:bootstrap:abcdeg", pki.SignerKubeletClient, "b", noon.Add(2*time.Minute)),
		entry("4", "", pki.SignerKubeletClient, "c", noon.Add(2*time.Minute)),
		entry("5", by, pki.SignerKubeletClient, "before", noon.Add(-time.Minute)),
		entry("6", by, pki.SignerKubeletClient, "", noon.Add(time.Minute)),
		entry("7", by, pki.SignerKubeletClient, "at-once", noon.Add(-time.Second)),
	}, []certificatesv1.CertificateSigningRequest{
		request("1", by, "a", noon.Add(90*time.Second), true),
		request("8", by, "live", noon.Add(time.Minute), true),
		request("9", by, "waits", noon.Add(time.Minute), false),
		request("10", "system:node:a", "a", noon.Add(time.Minute), true),
		trash,
	})
	want := []bootstraptoken.Use{
		{Node: "at-once", At: noon.Add(-time.Second), Request: "csr-7"},
		{Node: "live", At: noon.Add(time.Minute), Request: "csr-8"},
		{Node: "a", At: noon.Add(90 * time.Second), Request: "csr-1"},
	}
	if diff := cmp.Diff(want, uses); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

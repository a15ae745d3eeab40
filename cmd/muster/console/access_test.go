// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/explain"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/platform/statedir"
)

// secretHalf is what no reading has.
const secretHalf = "zyxwvutsrq987654"

const dev = "arn:aws:iam::000000000000:role/dev"

// entered are the objects of a cluster that say who gets in.
func entered(t *testing.T) []client.Object {
	t.Helper()
	entry := &accessv1alpha1.AccessEntry{ObjectMeta: clitest.MadeBefore("dev", time.Hour)}
	entry.Spec = accessv1alpha1.AccessEntrySpec{PrincipalARN: dev, PrincipalID: "AROAEXAMPLEEXAMPLE123", Type: accessv1alpha1.TypeStandard, KubernetesGroups: []string{"team"}, AccessPolicies: []accessv1alpha1.AccessPolicy{
		{PolicyARN: "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy", Scope: accessv1alpha1.AccessScope{Type: accessv1alpha1.ScopeNamespace, Namespaces: []string{"shop"}}},
		{PolicyARN: "arn:aws:eks::aws:cluster-access-policy/AmazonEKSHybridPolicy", Scope: accessv1alpha1.AccessScope{Type: accessv1alpha1.ScopeCluster}},
	}}
	late := &accessv1alpha1.AccessEntry{ObjectMeta: clitest.MadeBefore("late", time.Hour)} // whose principal's id is not recorded
	late.Spec = accessv1alpha1.AccessEntrySpec{PrincipalARN: dev + "-2", Type: accessv1alpha1.TypeStandard}
	tok, err := token.Parse("abcdef." + secretHalf)
	if err != nil {
		t.Fatal(err)
	}
	b := token.Bootstrap{Token: tok, Usages: []string{token.UsageAuthentication}, Expires: clitest.Noon.Add(time.Hour), Description: "for a host"}
	if err := b.Bind(token.Scope{Kind: token.ScopeName, Value: "edge-1"}); err != nil {
		t.Fatal(err)
	}
	secret, err := b.Secret()
	if err != nil {
		t.Fatal(err)
	}
	secret.CreationTimestamp = metav1.NewTime(clitest.Noon.Add(-time.Hour))
	broken := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-000000"}, Type: corev1.SecretTypeBootstrapToken, Data: map[string][]byte{"token-id": []byte("000000"), "token-secret": []byte(secretHalf[:8])}}
	return []client.Object{
		entry, late, secret, broken,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth"}, Data: map[string]string{"mapRoles": "[{rolearn: '" + dev + "', username: c}]"}},
	}
}

// accessBench is a source before a cluster with such objects.
func accessBench(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) *source {
	t.Helper()
	association := &v1alpha1.PodIdentityAssociation{ObjectMeta: metav1.ObjectMeta{Name: "a-0123456789abcdefg", Namespace: "home"}}
	association.Spec = v1alpha1.PodIdentityAssociationSpec{ClusterName: "home", Namespace: "shop", ServiceAccount: "web", RoleARN: dev}
	b := world(t)
	if err := b.Client.Create(t.Context(), association); err != nil {
		t.Fatal(err)
	}
	asker, err := explain.NewAsker(b.O, b.Planes, noon)
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := kinds.NewAuthScheme()
	if err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).WithIndex(&corev1.Secret{}, "type", func(o client.Object) []string {
		return []string{string(o.(*corev1.Secret).Type)} //nolint:forcetypeassert // the index is one of Secrets
	}).Build()
	return &source{
		Options: b.O, planes: b.Planes, asker: asker, dir: statedir.Dir(b.O.StateDir), now: noon,
		recorded: func(context.Context, *terminal.Options) ([]issued.Entry, error) {
			return []issued.Entry{
				{UID: "1", Node: "edge-1", Requester: "system:bootstrap:abcdef", Signer: "kubernetes.io/kube-apiserver-client-kubelet", CSR: "csr-1", NotBefore: clitest.Noon.Add(-30 * time.Minute)},
				{UID: "2", Node: "edge-1", Requester: "system:bootstrap:abcdef", Signer: "kubernetes.io/kube-apiserver-client-kubelet", CSR: "csr-2", NotBefore: clitest.Noon.Add(-10 * time.Minute)},
			}, nil
		},
		entries: func(o *terminal.Options) (*kinds.Client, error) {
			if o.Cluster != "home" {
				t.Errorf("it connects to cluster %q", o.Cluster)
			}
			return &kinds.Client{WithWatch: api, Name: kinds.TheCluster, Address: "127.0.0.1:1"}, nil
		},
	}
}

func readFacts(t *testing.T, s *source) view.Facts {
	t.Helper()
	read, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return read.Facts()
}

// The source reads who gets in as muster auth check and muster token list read it, and no secret with it.
func TestAccess(t *testing.T) {
	s := accessBench(t, interceptor.Funcs{}, entered(t)...)
	f := readFacts(t, s)
	access := f.Of["home"].Access
	var got []string
	for _, g := range access.Grants {
		got = append(got, fmt.Sprintf("%s %s %v %v %v", g.Source, g.Entry, g.Used, g.After, g.Policies))
	}
	for _, k := range access.Tokens {
		got = append(got, fmt.Sprintf("%s %s %v %s %d %s", k.ID, k.Expires.Format(time.TimeOnly), k.BoundTo, k.Description, len(k.UsedBy), k.UsedBy[0].Request))
	}
	for _, a := range f.Associations {
		got = append(got, a.Spec.ServiceAccount)
	}
	want := []string{
		"AccessEntry dev true  [{AmazonEKSViewPolicy view [shop]} {AmazonEKSHybridPolicy  []}]", "AccessEntry late false  []", "aws-auth mapRoles[0] true AccessEntry dev []",
		"abcdef 13:00:00 [{name edge-1}] for a host 2 csr-2", "web",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if access.Mode != "API_AND_CONFIG_MAP" || len(access.Problems) != 2 || len(access.Notes) != 2 || !strings.Contains(access.Notes[1], "bootstrap-token-000000") {
		t.Errorf("mode %s, problems %v, notes %q", access.Mode, access.Problems, access.Notes)
	}
	raw, err := json.Marshal(f)
	if err != nil || strings.Contains(string(raw), secretHalf[:8]) || strings.Contains(fmt.Sprintf("%+v %#v", f, f), secretHalf[:8]) {
		t.Errorf("a reading has the secret of a token: %v", err)
	}
}

// A list that cannot be read is told, and the others are there.
func TestAccessThatIsNotSeen(t *testing.T) {
	for what, test := range map[string]struct {
		refuses        func(client.ObjectList) bool
		grants, tokens int
	}{
		"who becomes whom of cluster home":     {func(l client.ObjectList) bool { _, ok := l.(*accessv1alpha1.AccessEntryList); return ok }, 0, 1},
		"the bootstrap tokens of cluster home": {func(l client.ObjectList) bool { _, ok := l.(*corev1.SecretList); return ok }, 3, 0},
	} {
		s := accessBench(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if test.refuses(list) {
				return errors.New("forbidden")
			}
			return c.List(ctx, list, opts...)
		}}, entered(t)...)
		f := readFacts(t, s)
		told := false
		for _, u := range f.Wrong.Unseen {
			told = told || u.What == what && u.Why == "forbidden"
		}
		if access := f.Of["home"].Access; !told || len(access.Grants) != test.grants || len(access.Tokens) != test.tokens || (access.Mode == "") != (test.grants == 0) {
			t.Errorf("%s: told %v, %d entries, %d tokens, mode %q", what, told, len(access.Grants), len(access.Tokens), access.Mode)
		}
	}
}

// Refusals come from the logs of the host, which are parsed once in some seconds.
func TestRefusals(t *testing.T) {
	s := accessBench(t, interceptor.Funcs{})
	at := clitest.Noon
	s.now = func() time.Time { return at }
	denied := func(rule string) {
		path := s.dir.Cluster("home").Log("authenticator")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		line := `time=2026-11-20T11:59:59.000Z level=WARN msg="access denied" arn=` + dev + ` rule=` + rule + ` saw=x fix=y` + "\n"
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	denied("no-entry")
	for _, test := range []struct {
		after time.Duration
		rule  string
		want  string
	}{{0, "", "no-entry"}, {time.Second, "mode", "no-entry"}, {refusalAge, "mode", "mode"}} {
		if test.rule != "" {
			denied(test.rule)
		}
		at = clitest.Noon.Add(test.after)
		found := readFacts(t, s).Refusals
		if len(found) != 1 || found[0].Rule != test.want || found[0].Cluster != "home" || !slices.Contains([]string{"M-IAM-01", "M-IAM-05"}, string(found[0].Cause)) {
			t.Errorf("after %s: %+v, want rule %s", test.after, found, test.want)
		}
	}
}

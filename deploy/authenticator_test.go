// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/iam/accesspolicy"
	"muster.dev/muster/internal/iam/authenticator"
	"muster.dev/muster/internal/iam/authenticatorconfig"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/component"
)

const (
	authenticatorChart = "charts/muster-authenticator"
	withAccessPolicies = "manifests/authenticator-access-policies.yaml"
)

// nobody verifies no token.
type nobody struct{}

func (nobody) Verify(context.Context, ststoken.Token) (tokenverify.Identity, error) {
	return tokenverify.Identity{}, tokenverify.ErrThrottled
}

func (nobody) Admit(string)         {}
func (nobody) Admitted(string) bool { return false }

func TestMetricsAreThoseOfTheAuthenticator(t *testing.T) {
	got := &registry{}
	_, err := authenticator.New(authenticator.Config{
		ClusterID: "blue", Verifier: nobody{}, Table: func() *identity.Table { return nil }, Metrics: authenticator.NewMetrics(got), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	got.compare(t, "metrics-authenticator.txt")
}

// The authenticator accepts the file of every manifest.
func TestAuthenticatorFilesAreAccepted(t *testing.T) {
	for path, policies := range map[string]bool{"manifests/authenticator.yaml": false, withAccessPolicies: true} {
		c, err := authenticatorconfig.Read(dataOf(t, path, "authenticator.yaml"))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if c.ClusterID != "my-cluster" || c.AccessPolicies.Enabled != policies || c.Server.ClientCA != "/var/lib/muster-authenticator/client-ca.pem" ||
			c.Server.BindAddress != "127.0.0.1:21362" || c.Mapping.Namespace != "muster-system" {
			t.Errorf("%s: %+v", path, c)
		}
	}
}

// The chart takes every field of the authenticator's file and no other, but for those that it fills in itself.
func TestChartKnowsEveryFieldOfTheAuthenticatorsFile(t *testing.T) {
	s := schemaOf(t, authenticatorChart)
	filled := []string{
		"config.apiVersion", "config.kind", "config.server.stateDir", "config.server.bindAddress", "config.server.healthAddress", "config.server.metricsAddress", "config.mapping.namespace",
		"config.accessPolicies.alone", // a DaemonSet is not
	}
	compareFields(t, s.Definitions, s.Definitions["config"], reflect.TypeFor[authenticatorconfig.Configuration](), "config", filled)
}

// objectOf reads the object of a kind and, if it is not empty, a name from a manifest.
func objectOf[T any](t *testing.T, path, kind, name string) T {
	t.Helper()
	for _, document := range documents(t, path) {
		if !strings.Contains(document, "\nkind: "+kind+"\n") || name != "" && !strings.Contains(document, "\n  name: "+name+"\n") {
			continue
		}
		var o T
		_, content, _ := strings.Cut(document, "apiVersion:") // comments come before it
		if err := yaml.UnmarshalStrict([]byte("apiVersion:"+content), &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	t.Fatalf("%s has no %s %s", path, kind, name)
	return *new(T)
}

// The chart grants the permissions that access policies need, and brings their roles along.
func TestChartGrantsWhatAccessPoliciesNeed(t *testing.T) {
	all := objectOf[rbacv1.ClusterRole](t, withAccessPolicies, "ClusterRole", "muster-authenticator")
	for _, want := range accesspolicy.Rules() {
		found := false
		for _, rule := range all.Rules {
			found = found || cmp.Equal(want, rule)
		}
		if !found {
			t.Errorf("%v is not granted", want)
		}
	}
	for _, want := range accesspolicy.Roles() {
		if got := objectOf[rbacv1.ClusterRole](t, withAccessPolicies, "ClusterRole", want.Name); !cmp.Equal(want.Rules, got.Rules) {
			t.Errorf("%s: %v, want %v", want.Name, got.Rules, want.Rules)
		}
	}
}

// guard is the admission policy of muster's own clusters, and the one of the chart.
func guards(t *testing.T) map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec {
	t.Helper()
	const kind = "ValidatingAdmissionPolicy"
	all := map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec{
		"system:serviceaccount:muster-system:muster-authenticator": objectOf[admissionregistrationv1.ValidatingAdmissionPolicy](t, withAccessPolicies, kind, "").Spec,
	}
	config := component.Config{Account: component.Account{State: "/state", BinDir: "/bin"}, Network: clusternetworktest.Network(), Dir: "/state/clusters/blue"}
	config.Cluster.Name = "blue"
	config.Cluster.Default()
	objects, err := baseline.Cluster(config, []byte("ca"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetKind() == kind {
			var own admissionregistrationv1.ValidatingAdmissionPolicy
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &own); err != nil {
				t.Fatal(err)
			}
			all[component.UserAuthenticator] = own.Spec
		}
	}
	if len(all) != 2 {
		t.Fatal("muster's own clusters have no admission policy for the authenticator")
	}
	return all
}

// condition is an expression that is true or not.
type condition string

func (c condition) GetExpression() string { return string(c) }

func (condition) ReturnTypes() []*cel.Type { return []*cel.Type{cel.BoolType} }

// matches reports whether an expression of an admission policy is true, compiled as the API server of the oldest
// Kubernetes that has such policies does.
func matches(t *testing.T, expression string, about map[string]any) bool {
	t.Helper()
	compiler := plugincel.NewCompiler(environment.MustBaseEnvSet(version.MustParse("1.30")))
	compiled := compiler.CompileCELExpression(condition(expression), plugincel.OptionalVariableDeclarations{}, environment.NewExpressions)
	if compiled.Error != nil {
		t.Fatalf("%s: %v", expression, compiled.Error)
	}
	out, _, err := compiled.Program.Eval(about)
	return err == nil && out.Value() == true // a failed evaluation refuses: failurePolicy is Fail
}

// Whatever the authenticator is made to do, it binds the roles of access policies to the groups of their entries and to
// nobody else.
func TestTheAuthenticatorBindsGroupsOfAccessEntriesAlone(t *testing.T) {
	const mine, group = "muster:access-entry:alice:AmazonEKSViewPolicy", "muster:access-entry:alice"
	binding := func(name, role string, subjects ...any) map[string]any {
		b := map[string]any{"metadata": map[string]any{"name": name}, "roleRef": map[string]any{"kind": "ClusterRole", "name": role}}
		if subjects != nil {
			b["subjects"] = subjects
		}
		return b
	}
	subject := func(kind, name string) any {
		s := map[string]any{"kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"}
		if kind == "ServiceAccount" {
			delete(s, "apiGroup")
		}
		return s
	}
	byRole := binding(mine, "view", subject("Group", group))
	byRole["roleRef"] = map[string]any{"kind": "Role", "name": "view"}
	for user, spec := range guards(t) {
		for name, tc := range map[string]struct {
			object, old any
			allowed     bool
		}{
			"the group of the entry":           {object: binding(mine, "view", subject("Group", group)), allowed: true},
			"every role of a policy":           {object: binding(mine, "cluster-admin", subject("Group", group)), allowed: true},
			"nobody":                           {object: binding(mine, "view"), allowed: true},
			"its own, deleted":                 {old: binding(mine, "view"), allowed: true},
			"the group of another entry":       {object: binding(mine, "view", subject("Group", "muster:access-entry:bob"))},
			"a group that begins so":           {object: binding(mine, "view", subject("Group", "muster:access-entry:ali"))},
			"another group":                    {object: binding(mine, "cluster-admin", subject("Group", "system:authenticated"))},
			"a user of the group's name":       {object: binding(mine, "view", subject("User", group))},
			"a service account":                {object: binding(mine, "view", subject("ServiceAccount", group))},
			"the group and somebody else":      {object: binding(mine, "view", subject("Group", group), subject("User", "mallory"))},
			"a role that is no policy's":       {object: binding(mine, "system:node", subject("Group", group))},
			"a role of a namespace":            {object: byRole},
			"a binding of others":              {object: binding("cluster-admin", "cluster-admin", subject("Group", group))},
			"a binding of others, changed":     {object: binding("cluster-admin", "cluster-admin", subject("Group", group)), old: binding("cluster-admin", "cluster-admin")},
			"a binding of others, deleted":     {old: binding("cluster-admin", "cluster-admin")},
			"a binding named after the prefix": {object: binding("muster:access-entry:", "view", subject("Group", "muster:access-entry:"))},
		} {
			t.Run(user+"/"+name, func(t *testing.T) {
				about := map[string]any{"object": tc.object, "oldObject": tc.old}
				allowed := true
				for _, v := range spec.Validations {
					allowed = allowed && matches(t, v.Expression, about)
					if v.Message == "" {
						t.Errorf("%s says nothing", v.Expression)
					}
				}
				if allowed != tc.allowed {
					t.Errorf("allowed: %t", allowed)
				}
			})
		}
		for who, want := range map[string]bool{user: true, "kubernetes-admin": false, user + "-2": false} {
			about := map[string]any{"request": map[string]any{"userInfo": map[string]any{"username": who}}}
			if got := matches(t, spec.MatchConditions[0].Expression, about); got != want || len(spec.MatchConditions) != 1 {
				t.Errorf("it is about %s: %t", who, got)
			}
		}
		rules := spec.MatchConstraints.ResourceRules
		want := []string{"clusterrolebindings", "rolebindings"}
		if len(rules) != 1 || !cmp.Equal(rules[0].Resources, want) || !cmp.Equal(rules[0].Operations, []admissionregistrationv1.OperationType{"CREATE", "UPDATE", "DELETE"}) {
			t.Errorf("it looks at %+v", rules)
		}
	}
	// The roles are those that access policies have.
	for _, p := range accesspolicy.Policies() {
		if !matches(t, guards(t)[component.UserAuthenticator].Validations[2].Expression, map[string]any{"object": binding(mine, p.ClusterRole), "oldObject": nil}) {
			t.Errorf("the role of %s cannot be bound", p.Name)
		}
	}
}

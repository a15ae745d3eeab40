// SPDX-License-Identifier: Apache-2.0

package component

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"muster.dev/muster/internal/platform/statedir"
)

// The API server refuses to start on a file that it does not understand, so its own types read each here.

// content finds a file of a component.
func content(t *testing.T, c Config, component, name string) []byte {
	t.Helper()
	for _, spec := range specs(t, c) {
		for _, file := range spec.Files {
			if spec.Name == component && strings.HasSuffix(file.Path, "/"+name) {
				return []byte(file.Content)
			}
		}
	}
	t.Fatalf("%s has no file %s", component, name)
	return nil
}

// decode reads a file strictly: no field may be one that this version does not know.
func decode[T runtime.Object](t *testing.T, raw []byte) T {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiserverv1.AddToScheme, apiserverv1beta1.AddToScheme, auditv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	object, _, err := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer().Decode(raw, nil, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	typed, ok := object.(T)
	if !ok {
		t.Fatalf("it is a %T:\n%s", object, raw)
	}
	return typed
}

func TestAuthenticationConfiguration(t *testing.T) {
	health := []string{"/livez", "/readyz", "/healthz"}
	for component, want := range map[string][]string{
		APIServer:  append(slices.Clone(health), "/api/v1/namespaces/kube-public/configmaps/cluster-info"),
		Management: health,
	} {
		got := decode[*apiserverv1.AuthenticationConfiguration](t, content(t, fixed(true), component, "authentication.yaml"))
		if got.Anonymous == nil || !got.Anonymous.Enabled || len(got.JWT) != 0 {
			t.Errorf("%s: %+v", component, got)
			continue
		}
		var paths []string
		for _, condition := range got.Anonymous.Conditions {
			paths = append(paths, condition.Path)
		}
		if diff := cmp.Diff(want, paths); diff != "" {
			t.Errorf("%s lets strangers in elsewhere (-want +got):\n%s", component, diff)
		}
	}
}

// Nodes and RBAC are asked as on EKS, behind a webhook that is asked each time, about nodes with certificates alone.
func TestAuthorizationConfiguration(t *testing.T) {
	got := decode[*apiserverv1.AuthorizationConfiguration](t, content(t, fixed(true), APIServer, "authorization.yaml"))
	var kinds []string
	for _, a := range got.Authorizers {
		kinds = append(kinds, a.Type)
	}
	if diff := cmp.Diff([]string{"Webhook", "Node", "RBAC"}, kinds); diff != "" {
		t.Fatalf("authorizers (-want +got):\n%s", diff)
	}
	w := got.Authorizers[0].Webhook
	if w.FailurePolicy != apiserverv1.FailurePolicyDeny || *w.CacheAuthorizedRequests || *w.CacheUnauthorizedRequests || w.ConnectionInfo.KubeConfigFile == nil {
		t.Errorf("the webhook is %+v", w)
	}
	var conditions []authorizationcel.ExpressionAccessor
	for _, m := range w.MatchConditions {
		conditions = append(conditions, &authorizationcel.SubjectAccessReviewMatchCondition{Expression: m.Expression})
	}
	compiler := authorizationcel.NewDefaultCompiler()
	shown := map[string]authorizationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"X509SHA256=00"}}
	for name, tc := range map[string]struct {
		spec authorizationv1.SubjectAccessReviewSpec
		want bool
	}{
		"a node with a certificate":   {authorizationv1.SubjectAccessReviewSpec{User: "system:node:a", Extra: shown}, true},
		"a node with a token":         {authorizationv1.SubjectAccessReviewSpec{User: "system:node:a"}, false},
		"a person with a certificate": {authorizationv1.SubjectAccessReviewSpec{User: "system:nodes", Extra: shown}, false},
		"the certificate controller":  {authorizationv1.SubjectAccessReviewSpec{User: UserCertificateController, Extra: shown}, false},
		"a machine that joins":        {authorizationv1.SubjectAccessReviewSpec{User: "system:bootstrap:abcdef"}, false},
	} {
		matches := true
		for _, c := range conditions {
			compiled, err := compiler.CompileCELExpression(c)
			if err != nil {
				t.Fatal(err)
			}
			matcher := &authorizationcel.CELMatcher{CompilationResults: []authorizationcel.CompilationResult{compiled}}
			match, err := matcher.Eval(t.Context(), &authorizationv1.SubjectAccessReview{Spec: tc.spec})
			if err != nil {
				t.Fatal(err)
			}
			matches = matches && match
		}
		if matches != tc.want {
			t.Errorf("%s: asked about: %t", name, matches)
		}
	}
}

func TestEncryptionConfiguration(t *testing.T) {
	for component, key := range map[string]string{APIServer: key, Management: accountKey} {
		got := decode[*apiserverv1.EncryptionConfiguration](t, content(t, fixed(true), component, "encryption.yaml"))
		want := []apiserverv1.ResourceConfiguration{{
			Resources: []string{"secrets"},
			Providers: []apiserverv1.ProviderConfiguration{
				{Secretbox: &apiserverv1.SecretboxConfiguration{Keys: []apiserverv1.Key{{Name: "key1", Secret: key}}}}, // the first one writes
				{Identity: &apiserverv1.IdentityConfiguration{}},
			},
		}}
		if diff := cmp.Diff(want, got.Resources); diff != "" {
			t.Errorf("%s (-want +got):\n%s", component, diff)
		}
	}
}

func TestEgressSelectorConfiguration(t *testing.T) {
	for _, dir := range []string{"/var/lib/muster", "/home/a b/#1: it's \"mine\""} {
		c := fixed(true)
		c.State = statedir.Dir(dir)
		got := decode[*apiserverv1beta1.EgressSelectorConfiguration](t, content(t, c, APIServer, "egress.yaml"))
		selection := func(name, socket string) apiserverv1beta1.EgressSelection {
			return apiserverv1beta1.EgressSelection{Name: name, Connection: apiserverv1beta1.Connection{
				ProxyProtocol: apiserverv1beta1.ProtocolHTTPConnect, Transport: &apiserverv1beta1.Transport{UDS: &apiserverv1beta1.UDSTransport{UDSName: socket}},
			}}
		}
		want := []apiserverv1beta1.EgressSelection{selection("cluster", c.State.EgressSocket("blue")), selection("controlplane", c.State.ControlPlaneSocket("blue"))}
		if diff := cmp.Diff(want, got.EgressSelections); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		// Without a VPC nothing leads anywhere but to the account's own ports: a network that is not named would be
		// dialled from the host.
		c.VPC = false
		got = decode[*apiserverv1beta1.EgressSelectorConfiguration](t, content(t, c, APIServer, "egress.yaml"))
		want = []apiserverv1beta1.EgressSelection{selection("cluster", c.State.ControlPlaneSocket("blue")), selection("controlplane", c.State.ControlPlaneSocket("blue"))}
		if diff := cmp.Diff(want, got.EgressSelections); diff != "" {
			t.Errorf("without a VPC (-want +got):\n%s", diff)
		}
	}
}

// The ports on the host that an API server dials are those that its flags and files name, and no other; etcd it dials
// by itself.
func TestOwnWebhooksAreThoseOfFlagsAndFiles(t *testing.T) {
	named := regexp.MustCompile(`127\.0\.0\.1:\d+`)
	for _, vpc := range []bool{false, true} {
		c := fixed(vpc)
		want, got := map[string]bool{}, map[string]bool{}
		for _, spec := range specs(t, c) {
			_, values := flagsOf(t, spec)
			switch spec.Name {
			case APIServer:
				delete(values, "etcd-servers")
				for _, value := range values {
					for _, address := range named.FindAllString(value, -1) {
						want[address] = true
					}
				}
				for _, file := range spec.Files {
					for _, address := range named.FindAllString(file.Content, -1) {
						want[address] = true
					}
				}
			case WebhookProxy:
				for address := range strings.SplitSeq(values["own"], ",") {
					got[address] = true
				}
				if into := values["vpc-socket"]; vpc != (into == c.State.WebhookSocket("blue")) {
					t.Errorf("VPC %v: it dials others by %q", vpc, into)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("VPC %v (-want +got):\n%s", vpc, diff)
		}
	}
}

func TestAuditPolicy(t *testing.T) {
	raw := content(t, fixed(true), APIServer, "audit-policy.yaml")
	decode[*auditv1.Policy](t, raw)
	got, err := policy.LoadPolicyFromBytes(raw) // validates it too
	if err != nil {
		t.Fatal(err)
	}
	rules := policy.NewPolicyRuleEvaluator(got)
	started, complete := auditinternal.StageResponseStarted, auditinternal.StageResponseComplete
	once, both := []auditinternal.Stage{complete}, []auditinternal.Stage{started, complete}
	for _, test := range []struct {
		what  string
		event attributes
		want  auditinternal.Level
		at    []auditinternal.Stage // of a request that lasts; others have one stage
	}{
		{"CSR created", attributes{verb: "create", group: "certificates.k8s.io", resource: "certificatesigningrequests"}, auditinternal.LevelRequestResponse, both},
		{"CSR approved", attributes{verb: "update", group: "certificates.k8s.io", resource: "certificatesigningrequests", subresource: "approval"}, auditinternal.LevelRequestResponse, both},
		{"CSR issued", attributes{verb: "patch", group: "certificates.k8s.io", resource: "certificatesigningrequests", subresource: "status"}, auditinternal.LevelRequestResponse, both},
		{"CSR watched", attributes{verb: "watch", group: "certificates.k8s.io", resource: "certificatesigningrequests"}, auditinternal.LevelMetadata, once},
		{"Node registered", attributes{verb: "create", resource: "nodes"}, auditinternal.LevelRequest, both},
		{"Node deleted", attributes{verb: "delete", resource: "nodes"}, auditinternal.LevelRequest, both},
		{"RBAC changed", attributes{verb: "update", group: "rbac.authorization.k8s.io", resource: "clusterroles"}, auditinternal.LevelRequest, both},
		{"Secret made: never its content", attributes{verb: "create", resource: "secrets"}, auditinternal.LevelMetadata, both},
		{"Secret read", attributes{verb: "get", resource: "secrets"}, auditinternal.LevelMetadata, both},
		{"Secrets watched: told when it begins", attributes{verb: "watch", resource: "secrets"}, auditinternal.LevelMetadata, []auditinternal.Stage{started}},
		{"Secrets watched by the control plane", attributes{name: "system:kube-controller-manager", verb: "watch", resource: "secrets"}, auditinternal.LevelMetadata, []auditinternal.Stage{started}},
		{"service account token made: never the token", attributes{verb: "create", resource: "serviceaccounts", subresource: "token"}, auditinternal.LevelMetadata, both},
		{"token reviewed: never the token", attributes{verb: "create", group: "authentication.k8s.io", resource: "tokenreviews"}, auditinternal.LevelMetadata, once},
		{"exec", attributes{verb: "get", resource: "pods", subresource: "exec"}, auditinternal.LevelMetadata, both},
		{"attach", attributes{verb: "create", resource: "pods", subresource: "attach"}, auditinternal.LevelMetadata, both},
		{"port-forward", attributes{verb: "get", resource: "pods", subresource: "portforward"}, auditinternal.LevelMetadata, both},
		{"debug", attributes{verb: "patch", resource: "pods", subresource: "ephemeralcontainers"}, auditinternal.LevelMetadata, both},
		{"proxy to a node", attributes{verb: "get", resource: "nodes", subresource: "proxy"}, auditinternal.LevelMetadata, []auditinternal.Stage{started}},
		{"proxy to a Service", attributes{verb: "create", resource: "services", subresource: "proxy"}, auditinternal.LevelMetadata, []auditinternal.Stage{started}},
		{"anything that may be refused", attributes{verb: "get", resource: "pods"}, auditinternal.LevelMetadata, once},
		{"anything of a node", attributes{name: "system:node:a", groups: []string{"system:nodes"}, verb: "get", resource: "pods"}, auditinternal.LevelMetadata, once},
		{"a machine that joins", attributes{name: "system:bootstrap:abcdef", groups: []string{"system:bootstrappers"}, verb: "get", resource: "nodes"}, auditinternal.LevelMetadata, once},
		{"no resource", attributes{verb: "get", path: "/metrics"}, auditinternal.LevelMetadata, once},
		{"heartbeat", attributes{name: "system:node:a", groups: []string{"system:nodes"}, verb: "patch", resource: "nodes", subresource: "status"}, auditinternal.LevelNone, nil},
		{"status of a node, not by a node", attributes{verb: "patch", resource: "nodes", subresource: "status"}, auditinternal.LevelMetadata, once},
		{"first lease", attributes{verb: "create", group: "coordination.k8s.io", resource: "leases"}, auditinternal.LevelMetadata, once},
		{"lease renewed", attributes{verb: "update", group: "coordination.k8s.io", resource: "leases"}, auditinternal.LevelNone, nil},
		{"everyday work of the control plane", attributes{name: "system:kube-scheduler", verb: "watch", resource: "pods"}, auditinternal.LevelNone, nil},
		{"health", attributes{verb: "get", path: "/readyz"}, auditinternal.LevelNone, nil},
		{"health, asked by a stranger", attributes{name: "system:anonymous", groups: []string{"system:unauthenticated"}, verb: "get", path: "/livez"}, auditinternal.LevelNone, nil},
	} {
		decided := rules.EvaluatePolicyRule(test.event.record())
		var at []auditinternal.Stage
		for _, stage := range both {
			if decided.Level != auditinternal.LevelNone && !slices.Contains(decided.OmitStages, stage) {
				at = append(at, stage)
			}
		}
		if decided.Level != test.want || !slices.Equal(at, test.at) {
			t.Errorf("%s is recorded at level %s in stages %v, want %s in %v", test.what, decided.Level, at, test.want, test.at)
		}
		// A request that fails to authenticate has no user, and is recorded when its answer begins.
		stranger := test.event.record()
		stranger.User = nil
		if decided := rules.EvaluatePolicyRule(stranger); decided.Level == auditinternal.LevelNone || slices.Contains(decided.OmitStages, started) {
			t.Errorf("%s, by somebody who fails to authenticate, is not recorded: %+v", test.what, decided)
		}
	}
}

// attributes are what the rules of an audit policy look at. Without a name it is ann, and everybody but strangers is
// authenticated.
type attributes struct {
	name, verb, group, resource, subresource, path string
	groups                                         []string
}

func (a attributes) record() authorizer.AttributesRecord {
	if !slices.Contains(a.groups, user.AllUnauthenticated) {
		a.groups = append(slices.Clone(a.groups), user.AllAuthenticated)
	}
	if a.name == "" {
		a.name = "ann"
	}
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: a.name, Groups: a.groups}, Verb: a.verb, APIGroup: a.group, Resource: a.resource, Subresource: a.subresource,
		Path: a.path, ResourceRequest: a.path == "",
	}
}

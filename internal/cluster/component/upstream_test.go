// SPDX-License-Identifier: Apache-2.0

package component

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiserverv1beta1 "k8s.io/apiserver/pkg/apis/apiserver/v1beta1"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

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
		want := []apiserverv1beta1.EgressSelection{{
			Name: "cluster",
			Connection: apiserverv1beta1.Connection{
				ProxyProtocol: apiserverv1beta1.ProtocolHTTPConnect,
				Transport:     &apiserverv1beta1.Transport{UDS: &apiserverv1beta1.UDSTransport{UDSName: c.State.EgressSocket("blue")}},
			},
		}}
		if diff := cmp.Diff(want, got.EgressSelections); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for _, spec := range specs(t, fixed(false)) {
		if _, values := flagsOf(t, spec); values["egress-selector-config-file"] != "" {
			t.Error("without a VPC there is no door into it")
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
	for _, test := range []struct {
		what  string
		event attributes
		want  auditinternal.Level
	}{
		{"CSR created", attributes{"create", "certificates.k8s.io", "certificatesigningrequests", ""}, auditinternal.LevelRequestResponse},
		{"CSR approved", attributes{"update", "certificates.k8s.io", "certificatesigningrequests", "approval"}, auditinternal.LevelRequestResponse},
		{"CSR issued", attributes{"patch", "certificates.k8s.io", "certificatesigningrequests", "status"}, auditinternal.LevelRequestResponse},
		{"CSR watched", attributes{"watch", "certificates.k8s.io", "certificatesigningrequests", ""}, auditinternal.LevelNone},
		{"Node registered", attributes{"create", "", "nodes", ""}, auditinternal.LevelRequest},
		{"Node deleted", attributes{"delete", "", "nodes", ""}, auditinternal.LevelRequest},
		{"heartbeat", attributes{"patch", "", "nodes", "status"}, auditinternal.LevelNone},
		{"first lease", attributes{"create", "coordination.k8s.io", "leases", ""}, auditinternal.LevelMetadata},
		{"lease renewed", attributes{"update", "coordination.k8s.io", "leases", ""}, auditinternal.LevelNone},
		{"token review", attributes{"create", "authentication.k8s.io", "tokenreviews", ""}, auditinternal.LevelMetadata},
		{"RBAC changed", attributes{"update", "rbac.authorization.k8s.io", "clusterroles", ""}, auditinternal.LevelRequest},
		{"Secret made: never its content", attributes{"create", "", "secrets", ""}, auditinternal.LevelMetadata},
		{"Secret read", attributes{"get", "", "secrets", ""}, auditinternal.LevelNone},
		{"service account token made", attributes{"create", "", "serviceaccounts", "token"}, auditinternal.LevelNone},
		{"pod read", attributes{"get", "", "pods", ""}, auditinternal.LevelNone},
	} {
		decided := rules.EvaluatePolicyRule(test.event.record())
		if decided.Level != test.want {
			t.Errorf("%s is recorded at level %s, want %s", test.what, decided.Level, test.want)
		}
	}
}

// attributes are what the rules of an audit policy look at.
type attributes struct{ verb, group, resource, subresource string }

func (a attributes) record() authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "somebody"}, Verb: a.verb, APIGroup: a.group, Resource: a.resource, Subresource: a.subresource, ResourceRequest: true,
	}
}

// SPDX-License-Identifier: Apache-2.0

package insightfacts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/plane/deprecation"
	"muster.dev/muster/internal/plane/deprecation/deprecationlog"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/internal/platform/release"
)

// objects are those of a cluster; insights are about some of them.
func objects() []client.Object {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{ProviderID: "aws:///us-east-1a/i-1"}}
	node.Status.NodeInfo.KubeletVersion = "v1.36.4"
	fails, ignores := new(admissionregistrationv1.Fail), new(admissionregistrationv1.Ignore)
	of := func(service string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "n", Name: service}}
	}
	rules := []admissionregistrationv1.RuleWithOperations{
		{Operations: []admissionregistrationv1.OperationType{"CREATE"}, Rule: admissionregistrationv1.Rule{APIGroups: []string{"", "apps"}, Resources: []string{"pods", "*"}}},
		{Operations: []admissionregistrationv1.OperationType{"DELETE", "CONNECT"}, Rule: admissionregistrationv1.Rule{APIGroups: []string{"*"}, Resources: []string{"*/*"}}},
	}
	some := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	slice := func(service string, ready *bool) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service}}, Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: ready}}}}
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"}, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromString("100%"))}, Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: 3}}
	kind := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.x.io"}, Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}}}
	kind.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}, {Name: "v2"}}
	return []client.Object{
		node, budget, kind, slice("ready", nil), slice("unready", new(false)),
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{
			{Name: "a.x.io", ClientConfig: of("ready"), FailurePolicy: fails, Rules: rules},
			{Name: "b.x.io", ClientConfig: of("none"), FailurePolicy: ignores},
			{Name: "c.x.io", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://x.io")}, FailurePolicy: fails},
		}},
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionregistrationv1.MutatingWebhook{
			{Name: "d.x.io", ClientConfig: of("unready"), FailurePolicy: fails, ObjectSelector: some}, {Name: "e.x.io", ClientConfig: of("none"), FailurePolicy: fails},
		}},
	}
}

func TestGather(t *testing.T) {
	t.Parallel()
	scheme, err := planeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	object := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "blue"}, Spec: v1alpha1.ClusterSpec{Name: "blue", Version: "1.37"}, Status: v1alpha1.ClusterStatus{Version: "v1.36.4"}}
	addon := &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "kube-proxy"}, Spec: v1alpha1.AddonSpec{AddonName: "kube-proxy", Version: "v1.36.4-eksbuild.1"}}
	other := &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Namespace: "green", Name: "coredns"}, Spec: v1alpha1.AddonSpec{AddonName: "coredns"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects()...).Build()
	since := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	sources := Sources{
		Object: object, Management: fake.NewClientBuilder().WithScheme(scheme).WithObjects(addon, other).Build(), Now: since, Back: "1.35",
		Cluster: func() (client.Client, error) { return api, nil },
		Deprecated: func(context.Context) (deprecation.Seen, error) {
			return deprecation.Seen{Since: since, APIs: []deprecation.API{{Group: "g", Version: "v1", Resource: "r", Removed: "1.40", Requests: 2}}}, nil
		},
		Callers: func(context.Context) (deprecationlog.Seen, error) { return deprecationlog.Seen{}, errors.New("away") },
	}
	got := Gather(t.Context(), sources)
	want := insight.Facts{
		Now: since, Server: "v1.36.4", Minor: "1.36", Next: "1.37", Back: "1.35",
		Nodes: insight.Fact[[]insight.Node]{Is: []insight.Node{{Name: "a", Kubelet: "v1.36.4", KubeProxy: "v1.36.4"}}},
		Addons: insight.Fact[[]insight.Addon]{Is: []insight.Addon{{Name: "kube-proxy", Version: "v1.36.4-eksbuild.1", Versions: map[string][]string{
			"1.34": {"v1.34.10-eksbuild.1"}, "1.35": {"v1.35.8-eksbuild.1"}, "1.36": {"v1.36.4-eksbuild.1"}, "1.37": {"v1.37.2-eksbuild.1"},
		}}}},
		Requests: insight.Fact[insight.Requests]{Is: insight.Requests{Since: since, APIs: []insight.Request{{Path: "/apis/g/v1/r", Removed: "1.40", Count: 2}}}},
		Webhooks: insight.Fact[[]insight.Webhook]{Is: []insight.Webhook{
			{URI: "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/v", Name: "a.x.io", Service: "n/ready", Ready: true, Resources: []string{"/pods", "/*", "apps/pods", "apps/*"}},
			{URI: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/m", Name: "d.x.io", Service: "n/unready", Some: true},
			{URI: "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/m", Name: "e.x.io", Service: "n/none"},
		}},
		Budgets: insight.Fact[[]insight.Budget]{Is: []insight.Budget{{URI: "/apis/policy/v1/namespaces/n/poddisruptionbudgets/b", Pods: 3}}},
		Kinds:   insight.Fact[[]insight.Kind]{Is: []insight.Kind{{URI: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.x.io", Stored: []string{"v1"}, Served: map[string]bool{"v1": true, "v2": false}}}},
		Stored: insight.Fact[[]insight.Stored]{Is: []insight.Stored{
			{URI: "/apis/admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"}, {URI: "/apis/admissionregistration.k8s.io/v1/MutatingAdmissionPolicyBinding"},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	sources.Cluster = func() (client.Client, error) { return nil, errors.New("away") }
	sources.Deprecated = func(context.Context) (deprecation.Seen, error) { return deprecation.Seen{}, errors.New("away") }
	away := Gather(t.Context(), sources)
	for _, unknown := range []string{away.Nodes.Unknown, away.Webhooks.Unknown, away.Budgets.Unknown, away.Kinds.Unknown, away.Stored.Unknown} {
		if unknown != "The cluster is not reached" {
			t.Errorf("%q", unknown)
		}
	}
	if away.Requests.Unknown != "The API server's audit log and metrics cannot be read" || away.Addons.Unknown != "" {
		t.Errorf("%q, %q", away.Requests.Unknown, away.Addons.Unknown)
	}
}

// Objects that people make count, and those that Kubernetes makes for itself do not.
func TestStored(t *testing.T) {
	t.Parallel()
	scheme, err := planeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	of, err := release.All().OfMinor("1.37")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range of.Kinds { // client-go does not have all of them yet
		gvk := schema.GroupVersionKind(kind)
		scheme.AddKnownTypeWithName(gvk, &metav1.PartialObjectMetadata{})
		scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind(gvk.Kind+"List"), &metav1.PartialObjectMetadataList{})
	}
	bundle := func(name string) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "certificates.k8s.io", Version: "v1", Kind: "ClusterTrustBundle"})
		return o
	}
	own := bundle("kubernetes.io:kube-apiserver-serving:1387a1035cea1dc5e68ab46a") // of kube-controller-manager v1.37.2
	for _, others := range []int{0, 2} {
		objects := []client.Object{own.DeepCopy()}
		for n := range others {
			objects = append(objects, bundle(fmt.Sprintf("mine-%d", n)))
		}
		found, err := stored(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), "1.37")
		if err != nil || len(found) != 4 || found[0] != (insight.Stored{URI: "/apis/certificates.k8s.io/v1/ClusterTrustBundle", Objects: others}) {
			t.Errorf("%+v, %v", found, err)
		}
	}
	if _, err := stored(t.Context(), fake.NewClientBuilder().WithScheme(scheme).Build(), "1.99"); err == nil {
		t.Error("an unknown minor has no new kinds")
	}
}

func TestEvictable(t *testing.T) {
	t.Parallel()
	n, share := func(n int) *intstr.IntOrString { return new(intstr.FromInt32(int32(n))) }, func(s string) *intstr.IntOrString { return new(intstr.FromString(s)) }
	for _, c := range []struct {
		spec       policyv1.PodDisruptionBudgetSpec
		pods, want int
	}{
		{policyv1.PodDisruptionBudgetSpec{MaxUnavailable: n(0)}, 3, 0},
		{policyv1.PodDisruptionBudgetSpec{MaxUnavailable: n(1)}, 3, 1},
		{policyv1.PodDisruptionBudgetSpec{MaxUnavailable: share("1%")}, 3, 1},
		{policyv1.PodDisruptionBudgetSpec{MinAvailable: n(3)}, 3, 0},
		{policyv1.PodDisruptionBudgetSpec{MinAvailable: n(2)}, 3, 1},
		{policyv1.PodDisruptionBudgetSpec{MinAvailable: share("70%")}, 3, 0},
		{policyv1.PodDisruptionBudgetSpec{}, 1, 0},
		{policyv1.PodDisruptionBudgetSpec{}, 2, 1},
	} {
		if got := evictable(c.spec, c.pods); got != c.want {
			t.Errorf("%+v of %d pods: %d", c.spec, c.pods, got)
		}
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	nothing := Host(filepath.Join(dir, "none"), dir, authority.NewStore(filepath.Join(dir, "pki")), func() (int64, error) { return 0, errors.New("?") })
	for _, unknown := range []string{nothing.Memory.Unknown, nothing.Disk.Unknown, nothing.Etcd.Unknown, nothing.Certificates.Unknown} {
		if unknown == "" {
			t.Errorf("%+v", nothing)
		}
	}
	file := filepath.Join(dir, "member", "snap", "db")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, make([]byte, 4096), 0o600)); err != nil {
		t.Fatal(err)
	}
	store := authority.NewStore(filepath.Join(dir, "pki"))
	if _, err := store.Ensure(nil, now); err != nil {
		t.Fatal(err)
	}
	is := Host(dir, dir, store, func() (int64, error) { return 1 << 30, nil })
	if is.Memory.Is != (insight.Amount{Is: 1 << 30, Of: 400 << 20}) || is.Etcd.Is != (insight.Amount{Is: 4096, Of: 4 << 30}) || is.Disk.Is.Of < is.Disk.Is.Is || is.Disk.Is.Is == 0 {
		t.Errorf("%+v", is)
	}
	for _, c := range is.Certificates.Is {
		if c.Renews || !c.Ends.After(now) {
			t.Errorf("%+v", c)
		}
	}
	if len(is.Certificates.Is) == 0 {
		t.Error("there are no certificates")
	}
}

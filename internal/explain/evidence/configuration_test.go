// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
)

// elsewhere is the snapshot of a cluster elsewhere that has objects. Lists of a kind that is named are refused.
func elsewhere(t *testing.T, refused string, objects ...client.Object) *evidence.Snapshot {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme), certificatesv1.AddToScheme(scheme), admissionregistrationv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if refused != "" && strings.Contains(fmt.Sprintf("%T", list), refused) {
				return errors.New("not for you")
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	s := &evidence.Snapshot{Of: map[string]evidence.Cluster{}, At: noon}
	s.ReadClusters(t.Context(), map[string]client.Reader{"away": api})
	s.ReadElsewhere(t.Context(), "away", api)
	return s
}

// hook is a webhook that is asked about a kind, with a Service that has no targets.
func hook(group, resource string, change ...func(*admissionregistrationv1.ValidatingWebhook)) *admissionregistrationv1.ValidatingWebhookConfiguration {
	w := admissionregistrationv1.ValidatingWebhook{
		Name: "a.example.org", ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: "shop", Name: "hook"}},
		Rules: []admissionregistrationv1.RuleWithOperations{{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create}, Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}}}},
	}
	for _, f := range change {
		f(&w)
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hook"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{w}}
}

// slice is of the webhook's Service, whose target is ready or not since a while.
func slice(ready bool, ago time.Duration) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "hook-1", Labels: map[string]string{discoveryv1.LabelServiceName: "hook"}, Annotations: map[string]string{
			"endpoints.kubernetes.io/last-change-trigger-time": noon.Add(-ago).Format(time.RFC3339Nano),
		}},
		Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	}
}

func apiService(status string, ago time.Duration) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1beta1.metrics.k8s.io"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Available", "status": status, "reason": "MissingEndpoints", "message": "no", "lastTransitionTime": noon.Add(-ago).Format(time.RFC3339)}}},
	}}
}

func awsAuth(roles string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "aws-auth"}, Data: map[string]string{"mapRoles": roles}}
}

func lease(namespace, name string, ago time.Duration) *coordinationv1.Lease {
	at := metav1.NewMicroTime(noon.Add(-ago))
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &at}}
}

func binding(role, kind, subject string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, Subjects: []rbacv1.Subject{{Kind: kind, Name: subject}}}
}

func clusterInfo(key string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "cluster-info"}, Data: map[string]string{key: "x"}}
}

const asks = "certificates.k8s.io"

// Configuration that keeps nodes and pods from a cluster elsewhere is named, unless it may be so on purpose or for a moment.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	ignore, some := admissionregistrationv1.Ignore, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	for name, test := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"nothing is there":     {nil, "Healthy"},
		"about nodes":          {[]client.Object{hook("", "nodes")}, "Cause M-IAM-19"},
		"about leases":         {[]client.Object{hook("coordination.k8s.io", "leases")}, "Cause M-IAM-19"},
		"about requests":       {[]client.Object{hook(asks, "certificatesigningrequests")}, "Cause M-IAM-19"},
		"about everything":     {[]client.Object{hook("*", "*/*")}, "Cause M-IAM-19"},
		"about pods":           {[]client.Object{hook("", "pods")}, "Cause M-POD-78"},
		"about something else": {[]client.Object{hook("apps", "deployments")}, "Healthy"},
		"about ends of pods": {[]client.Object{hook("", "pods", func(w *admissionregistrationv1.ValidatingWebhook) {
			w.Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Delete}
		})}, "Healthy"},
		"it fails open":          {[]client.Object{hook("", "nodes", func(w *admissionregistrationv1.ValidatingWebhook) { w.FailurePolicy = &ignore })}, "Healthy"},
		"outside of the cluster": {[]client.Object{hook("", "nodes", func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.Service = nil })}, "Healthy"},
		"about some objects":     {[]client.Object{hook("", "nodes", func(w *admissionregistrationv1.ValidatingWebhook) { w.ObjectSelector = some })}, "Healthy"},
		"about some pods":        {[]client.Object{hook("", "pods", func(w *admissionregistrationv1.ValidatingWebhook) { w.NamespaceSelector = some })}, "Healthy"},
		"under a condition": {[]client.Object{hook("", "pods", func(w *admissionregistrationv1.ValidatingWebhook) {
			w.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "x"}}
		})}, "Healthy"},
		"a webhook that is ready":     {[]client.Object{hook("", "nodes"), slice(true, time.Hour)}, "Healthy"},
		"one that begins":             {[]client.Object{hook("", "pods"), slice(false, 5*time.Second)}, "Healthy"},
		"one that is not ready":       {[]client.Object{hook("", "pods"), slice(false, time.Hour)}, "Cause M-POD-78"},
		"an APIService":               {[]client.Object{apiService("False", time.Hour)}, "Cause M-POD-79"},
		"one of a moment":             {[]client.Object{apiService("False", time.Second)}, "Healthy"},
		"one that is there":           {[]client.Object{apiService("True", time.Hour)}, "Healthy"},
		"aws-auth":                    {[]client.Object{awsAuth("- {rolearn: 'arn:aws:iam::111122223333:role/node', username: 'system:node:{{EC2PrivateDNSName}}', groups: ['system:nodes']}")}, "Healthy"},
		"aws-auth in China":           {[]client.Object{awsAuth("- {rolearn: 'arn:aws-cn:iam::111122223333:role/node', username: 'system:node:{{EC2PrivateDNSName}}', groups: ['system:nodes']}")}, "Healthy"},
		"an instance profile there":   {[]client.Object{awsAuth("- {rolearn: 'arn:aws:iam::111122223333:instance-profile/node', username: u, groups: [g]}")}, "Cause M-IAM-02"},
		"what cannot be read there":   {[]client.Object{awsAuth("- {rolearn: nobody, username: u, groups: [g]}")}, "Cause M-IAM-06"},
		"tokens, and no binding":      {[]client.Object{clusterInfo("jws-kubeconfig-abcdef")}, "Cause M-TLS-98"},
		"no tokens, and no binding":   {[]client.Object{clusterInfo("kubeconfig")}, "Healthy"},
		"tokens and a binding":        {[]client.Object{clusterInfo("jws-kubeconfig-abcdef"), binding("system:node-bootstrapper", "Group", "system:bootstrappers:kubeadm:default-node-token")}, "Healthy"},
		"no controller manager":       {[]client.Object{lease("kube-system", "kube-controller-manager", time.Hour), lease("kube-system", "kube-scheduler", 0), lease("kube-system", "apiserver-x", 5*time.Second)}, "Cause M-READY-99"},
		"a node's clock is ahead":     {[]client.Object{lease("kube-system", "kube-controller-manager", 0), lease("kube-system", "kube-scheduler", 0), lease(corev1.NamespaceNodeLease, "b", -time.Hour)}, "Healthy"},
		"all is as old":               {[]client.Object{lease("kube-system", "kube-controller-manager", time.Hour), lease("kube-system", "kube-scheduler", time.Hour)}, "Healthy"},
		"somebody's lease is old":     {[]client.Object{lease("kube-system", "my-leader", time.Hour), lease("kube-system", "kube-scheduler", 0)}, "Healthy"},
		"a lease that is never taken": {[]client.Object{&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"}}, lease("kube-system", "x", 0)}, "Healthy"},
	} {
		if got := inWords(t, elsewhere(t, "", test.objects...).ClusterElsewhere("away")); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// Configuration that cannot be read is told, and hides nothing of the rest.
func TestConfigurationThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, refused := range []string{"ValidatingWebhook", "MutatingWebhook", "UnstructuredList", "ClusterRoleBinding", "LeaseList"} {
		s := elsewhere(t, refused, hook("", "nodes"), clusterInfo("jws-kubeconfig-abcdef"))
		f := s.ClusterElsewhere("away")
		if !slices.ContainsFunc(f.Unseen, func(u diagnosis.Unseen) bool { return u.Why == "not for you" }) || len(s.Of["away"].Unseen) > 0 {
			t.Errorf("%s: %+v", refused, f.Unseen)
		}
		want := "Cause M-TLS-98 M-IAM-19"
		switch refused {
		case "ValidatingWebhook":
			want = "Cause M-TLS-98"
		case "ClusterRoleBinding": // whether there is one is not known
			want = "Cause M-IAM-19"
		}
		if got := inWords(t, f); got != want {
			t.Errorf("without %s: %s, want %s", refused, got, want)
		}
	}
	eks := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.1-eks-1a2b3c4"}}}
	if f := elsewhere(t, "", eks).ClusterElsewhere("away"); len(f.Unseen) != 1 || !strings.Contains(f.Unseen[0].Why, "aws eks list-access-entries") {
		t.Errorf("of EKS: %+v", f.Unseen)
	}
}

// A Node whose Lease is old has stopped, though it still says that it is Ready. Old is compared with other nodes, and one alone of them may have a clock that is ahead.
func TestLeaseOfANode(t *testing.T) {
	t.Parallel()
	ready := func(name string) *corev1.Node {
		n := newNode(corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
		n.Name = name
		return &n
	}
	const leases = corev1.NamespaceNodeLease
	for name, test := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"both are renewed": {[]client.Object{lease(leases, "a", 5*time.Second), lease(leases, "b", 0)}, "Healthy"},
		"its own is old":   {[]client.Object{lease(leases, "a", 2*time.Minute), lease(leases, "b", 0), lease("kube-system", "kube-scheduler", 0)}, "Cause M-READY-65"},
		"beside two":       {[]client.Object{lease(leases, "a", 2*time.Minute), lease(leases, "b", 0), lease(leases, "c", 10*time.Second)}, "Cause M-READY-65"},
		"one is ahead":     {[]client.Object{lease(leases, "a", 0), lease(leases, "b", -time.Hour), lease("kube-system", "kube-scheduler", 0)}, "Healthy"},
		"who is ahead?":    {[]client.Object{lease(leases, "a", 0), lease(leases, "b", -time.Hour)}, "Healthy"},
		"both are old":     {[]client.Object{lease(leases, "a", time.Hour), lease(leases, "b", time.Hour)}, "Healthy"},
		"the other's is":   {[]client.Object{lease(leases, "a", 0), lease(leases, "b", time.Hour)}, "Healthy"},
		"it has none":      {[]client.Object{lease(leases, "b", 0)}, "Healthy"},
	} {
		s := elsewhere(t, "", append(test.objects, ready("a"), ready("b"))...)
		for _, n := range s.Of["away"].Nodes {
			if n.Name != "a" {
				continue
			}
			if got := inWords(t, s.Node("away", &n)); got != test.want {
				t.Errorf("%s: %s, want %s", name, got, test.want)
			}
		}
	}
}

// A request that waits elsewhere has the reason why kube-controller-manager does not approve it, if that is so.
func TestRequestThatNobodyApproves(t *testing.T) {
	t.Parallel()
	const first = "system:certificates.k8s.io:certificatesigningrequests:nodeclient"
	const own = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
	request := func(user, signer string) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "csr-1", CreationTimestamp: at(10 * time.Minute)},
			Spec:       certificatesv1.CertificateSigningRequestSpec{Request: pkitest.Kubelet(t, node), Username: user, Groups: []string{"system:bootstrappers", "system:nodes"}, SignerName: signer},
		}
	}
	const kubelet, serving = certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName
	for name, test := range map[string]struct {
		user, signer string
		binding      *rbacv1.ClusterRoleBinding
		want         bool
	}{
		"a first one, unbound":      {"system:bootstrap:abcdef", kubelet, nil, true},
		"a first one, bound":        {"system:bootstrap:abcdef", kubelet, binding(first, "Group", "system:bootstrappers"), false},
		"a first one, by its user":  {"system:bootstrap:abcdef", kubelet, binding(first, "User", "system:bootstrap:abcdef"), false},
		"a first one, for another":  {"system:bootstrap:abcdef", kubelet, binding(first, "Group", "system:masters"), true},
		"a renewal, unbound":        {"system:node:" + node, kubelet, binding(first, "Group", "system:nodes"), true},
		"a renewal, bound":          {"system:node:" + node, kubelet, binding(own, "Group", "system:nodes"), false},
		"for serving, which no one": {"system:node:" + node, serving, nil, false},
	} {
		objects := []client.Object{request(test.user, test.signer)}
		if test.binding != nil {
			objects = append(objects, test.binding)
		}
		f, ok := elsewhere(t, "", objects...).Request("away", "csr-1")
		has := slices.ContainsFunc(f.Evidence, func(e diagnosis.Evidence) bool { return e.Code == "Approval/NoBinding" })
		if !ok || has != test.want || inWords(t, f) != "Cause M-TLS-37" {
			t.Errorf("%s: %t, %s, %+v", name, has, inWords(t, f), f.Evidence)
		}
	}
}

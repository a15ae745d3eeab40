// SPDX-License-Identifier: Apache-2.0

package insightfacts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/plane/planeclient"
)

// The version of kube-proxy is that of its own program, or is not known: a kubelet's says nothing of it.
func TestKubeProxies(t *testing.T) {
	t.Parallel()
	scheme, err := planeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	var objects []client.Object
	node := func(name, provider, image string) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: provider}}
		n.Status.NodeInfo.KubeletVersion = "v1.36.4"
		objects = append(objects, n)
		if image != "" {
			objects = append(objects, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{"k8s-app": "kube-proxy"}},
				Spec:       corev1.PodSpec{NodeName: name, Containers: []corev1.Container{{Name: "log", Image: "log:v1.20"}, {Name: "kube-proxy", Image: image}}},
			})
		}
	}
	node("digest", "", "registry:5000/kube-proxy:v1.34.10@sha256:00")
	node("nothing-known", "", "")
	node("of-a-machine", "aws:///us-east-1a/i-1", "")
	node("own", "aws:///us-east-1a/i-2", "registry.k8s.io/kube-proxy:v1.35.8-eksbuild.1")
	node("untagged", "", "registry:5000/kube-proxy")
	objects[0].SetLabels(map[string]string{karpenter.LabelNodeClass: karpenter.NodeClass})
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	found, err := nodes(t.Context(), api, false)
	if err != nil {
		t.Fatal(err)
	}
	want := []insight.Node{
		{Name: "digest", Kubelet: "v1.36.4", KubeProxy: "v1.34.10"},
		{Name: "nothing-known", Kubelet: "v1.36.4"},
		{Name: "of-a-machine", Kubelet: "v1.36.4", KubeProxy: "v1.36.4"},
		{Name: "own", Kubelet: "v1.36.4", KubeProxy: "v1.35.8-eksbuild.1"},
		{Name: "untagged", Kubelet: "v1.36.4"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
	want[0].GoesBack = true
	if found, err = nodes(t.Context(), api, true); err != nil || !cmp.Equal(want, found) {
		t.Errorf("with a Karpenter in the control plane: %v, %v", found, err)
	}
}

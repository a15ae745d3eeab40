// SPDX-License-Identifier: Apache-2.0

package addoncontroller

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/platform/release"
)

const dns = `
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: coredns, namespace: kube-system}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: coredns, namespace: kube-system}, data: {Corefile: ours}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: coredns, namespace: kube-system}
  spec:
    selector: {matchLabels: {k8s-app: kube-dns}}
    template:
      metadata: {labels: {k8s-app: kube-dns}}
      spec:
        containers: [{name: coredns, image: i, resources: {limits: {memory: 170Mi}}}]
`

func baseObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var list []map[string]any
	if err := yaml.Unmarshal([]byte(dns), &list); err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, object := range list {
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	return objects
}

// forVersion is the catalogue of a cluster of a version, or of the default.
func forVersion(version string) addon.Catalogue {
	of, err := release.All().OfMinor(release.Minor(version))
	if err != nil {
		of = release.Default()
	}
	return catalogue.For(of)
}

// world is a management plane and a cluster, without the controllers of Deployments.
type world struct {
	t            *testing.T
	api, cluster client.Client
	r            *addons
	now          time.Time
	gaveUp       []string
	began        bool  // the cluster has its self-managed add-ons
	refuse       error // of every apply
	away         error // of every read
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, now: time.Unix(1800000000, 0)}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Addon{}).Build()
	w.cluster = fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithStatusSubresource(&appsv1.Deployment{}).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if w.refuse != nil {
				return w.refuse
			}
			var o client.ApplyOptions
			o.ApplyOptions(opts)
			raw, err := json.Marshal(object)
			if err != nil {
				return err
			}
			if o.FieldManager == "muster" && !strings.Contains(string(raw), `"spec"`) && !strings.Contains(string(raw), `"data"`) && w.began {
				// The API server has the manager give its fields up. The fake fills in empty fields before, and finds
				// conflicts.
				w.gaveUp = append(w.gaveUp, string(raw))
				return nil
			}
			return c.Apply(ctx, object, opts...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if w.away != nil {
				return w.away
			}
			return c.Get(ctx, key, object, opts...)
		},
	}).Build()
	w.r = &addons{api: w.api, now: func() time.Time { return w.now }, answered: map[string]time.Time{}, Config: Config{
		ClusterName: "blue", Cluster: w.cluster, Catalogue: forVersion,
		Objects: func(string) ([]*unstructured.Unstructured, error) { return baseObjects(t), nil },
	}}
	return w
}

func newAddon(name string, change func(*v1alpha1.AddonSpec)) *v1alpha1.Addon {
	a := &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "blue", Generation: 1}, Spec: v1alpha1.AddonSpec{AddonName: name}}
	if change != nil {
		change(&a.Spec)
	}
	return a
}

// step reconciles until nothing changes any more, and returns the add-on; nil if it is gone.
func (w *world) step(name string) *v1alpha1.Addon {
	w.t.Helper()
	a := &v1alpha1.Addon{}
	for range 5 {
		if _, err := w.r.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "blue", Name: name}}); err != nil && w.away == nil {
			w.t.Fatal(err)
		}
		if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "blue", Name: name}, a); err != nil {
			return nil
		}
	}
	return a
}

// wants changes the spec of an add-on, as the API server does.
func (w *world) wants(name string, change func(*v1alpha1.AddonSpec)) {
	w.t.Helper()
	a := &v1alpha1.Addon{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "blue", Name: name}, a); err != nil {
		w.t.Fatal(err)
	}
	change(&a.Spec)
	a.Generation++
	if err := w.api.Update(w.t.Context(), a); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) deployment() *appsv1.Deployment {
	w.t.Helper()
	d := &appsv1.Deployment{}
	if err := w.cluster.Get(w.t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "coredns"}, d); err != nil {
		w.t.Fatal(err)
	}
	return d
}

// runs has all pods of the Deployment available.
func (w *world) runs() {
	w.t.Helper()
	d := w.deployment()
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, AvailableReplicas: n}
	if err := w.cluster.Status().Update(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) is(a *v1alpha1.Addon, phase v1alpha1.AddonPhase, code, says string) {
	w.t.Helper()
	got, message := "", ""
	if len(a.Status.Issues) > 0 {
		got, message = a.Status.Issues[0].Code, a.Status.Issues[0].Message
	}
	if a.Status.Phase != phase || got != code || !strings.Contains(message, says) {
		w.t.Errorf("it is %s, %s %q, want %s, %s %q", a.Status.Phase, got, message, phase, code, says)
	}
	ready := meta.IsStatusConditionTrue(a.Status.Conditions, v1alpha1.ConditionReady)
	if ready != (phase == v1alpha1.AddonActive) {
		w.t.Errorf("Ready is %v of %s", ready, phase)
	}
}

// A cluster begins with a CoreDNS of the field manager muster.
func (w *world) selfManaged() {
	w.t.Helper()
	if err := baseline.Apply(w.t.Context(), w.cluster, baseObjects(w.t)); err != nil {
		w.t.Fatal(err)
	}
	w.began = true
}

func (w *world) managers() []string {
	w.t.Helper()
	var names []string
	for _, e := range w.deployment().ManagedFields {
		if e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" {
			names = append(names, e.Manager)
		}
	}
	return names
}

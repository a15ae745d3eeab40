// SPDX-License-Identifier: Apache-2.0

package addoncontroller

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/traefik"
)

func object(apiVersion, kind, name, namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetName(name)
	u.SetNamespace(namespace)
	return u
}

// ingressWorld is a cluster that gets Traefik. Its API server serves the Gateway API a while after the kinds were
// applied.
type ingressWorld struct {
	*world

	order            []string // objects that were applied for good, each once
	served           bool
	loads, unloads   int
	cannotLoad       error
	class, role, crd *unstructured.Unstructured
}

func newIngressWorld(t *testing.T, change func(*v1alpha1.AddonSpec)) *ingressWorld {
	t.Helper()
	w := &ingressWorld{
		world: newWorld(t, newAddon(traefik.Name, change)),
		crd:   object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "gatewayclasses.gateway.networking.k8s.io", ""),
		class: object("gateway.networking.k8s.io/v1", "GatewayClass", traefik.Name, ""),
		role:  object("rbac.authorization.k8s.io/v1", "ClusterRole", "traefik-gateway", ""),
	}
	unknown := func(o client.Object) error {
		gvk := o.GetObjectKind().GroupVersionKind()
		if gvk.Kind == "GatewayClass" && !w.served {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}}
		}
		return nil
	}
	beneath, ok := w.cluster.(client.WithWatch)
	if !ok {
		t.Fatal("the fake cannot be intercepted")
	}
	w.r.Cluster = interceptor.NewClient(beneath, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, applied runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			u := &unstructured.Unstructured{}
			raw, err := json.Marshal(applied)
			if err == nil {
				err = json.Unmarshal(raw, u)
			}
			if err != nil {
				return err
			}
			if err := unknown(u); err != nil {
				return err
			}
			if err := c.Apply(ctx, applied, opts...); err != nil {
				return err
			}
			var o client.ApplyOptions
			o.ApplyOptions(opts)
			if len(o.DryRun) == 0 && !slices.Contains(w.order, u.GetKind()) {
				w.order = append(w.order, u.GetKind())
			}
			return nil
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := unknown(o); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	w.r.Objects = func(string) ([]*unstructured.Unstructured, error) {
		return []*unstructured.Unstructured{w.role, w.class, object("v1", "ServiceAccount", traefik.Name, "kube-system")}, nil
	}
	w.r.Kinds = func(name string) ([]*unstructured.Unstructured, error) {
		if name != traefik.Name {
			return nil, errors.New("the kinds of another add-on")
		}
		return []*unstructured.Unstructured{w.crd}, nil
	}
	w.r.Load = func(context.Context, string) error { w.loads++; return w.cannotLoad }
	w.r.Unload = func(context.Context, string) error { w.unloads++; return nil }
	return w
}

// has reports whether an object is in the cluster.
func (w *ingressWorld) has(o *unstructured.Unstructured) bool {
	w.t.Helper()
	there := object(o.GetAPIVersion(), o.GetKind(), "", "")
	err := w.cluster.Get(w.t.Context(), client.ObjectKeyFromObject(o), there)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	return err == nil
}

func TestKindsComeFirstAndStay(t *testing.T) {
	w := newIngressWorld(t, nil)
	for range 4 {
		_, _ = w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "blue", Name: traefik.Name}}) // it waits for the kind
	}
	if !slices.Equal(w.order, []string{"CustomResourceDefinition", "ClusterRole"}) {
		t.Errorf("before the kind is served it has applied %v", w.order)
	}
	w.served = true
	a := w.step(traefik.Name)
	w.is(a, v1alpha1.AddonActive, "", "")
	if w.order[0] != "CustomResourceDefinition" || !w.has(w.crd) || !w.has(w.class) || !w.has(w.role) || w.loads == 0 {
		t.Errorf("it has applied %v, and loaded %d times", w.order, w.loads)
	}

	w.wants(traefik.Name, func(s *v1alpha1.AddonSpec) { s.ConfigurationValues = "gateway: false" })
	w.is(w.step(traefik.Name), v1alpha1.AddonActive, "", "")
	if !w.has(w.crd) || w.has(w.class) || w.has(w.role) {
		t.Error("without the Gateway API the kinds are to stay, and nothing else of it")
	}
	w.wants(traefik.Name, func(s *v1alpha1.AddonSpec) { s.ConfigurationValues = "" })
	a = w.step(traefik.Name)
	if !w.has(w.class) || w.unloads != 0 {
		t.Error("the GatewayClass does not come back")
	}

	if err := w.api.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if a := w.step(traefik.Name); a != nil {
		t.Errorf("it is there: %+v", a.Status)
	}
	if !w.has(w.crd) || w.has(w.class) || w.has(w.role) || w.unloads != 1 {
		t.Errorf("the kinds are to stay, and nothing else; unloaded %d times", w.unloads)
	}
}

func TestRemovedWithoutTheKind(t *testing.T) {
	w := newIngressWorld(t, func(s *v1alpha1.AddonSpec) { s.ConfigurationValues = "gateway: false" })
	a := w.step(traefik.Name)
	w.is(a, v1alpha1.AddonActive, "", "")
	w.r.Absent = func(string) string { return "it is not built any more" } // its objects are removed all the same
	if err := w.api.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if a := w.step(traefik.Name); a != nil || w.has(object("v1", "ServiceAccount", traefik.Name, "kube-system")) {
		t.Errorf("it is there: %+v", a)
	}
}

func TestImageThatCannotBeLoaded(t *testing.T) {
	w := newIngressWorld(t, nil)
	w.served, w.cannotLoad = true, errors.New("the disk is full")
	w.is(w.step(traefik.Name), v1alpha1.AddonCreating, issueInsufficient, "the disk is full")
	if len(w.order) != 0 {
		t.Errorf("it has applied %v", w.order)
	}
	w.now = w.now.Add(patience)
	w.is(w.step(traefik.Name), v1alpha1.AddonDegraded, issueInsufficient, "the disk is full")
	w.cannotLoad = nil
	w.is(w.step(traefik.Name), v1alpha1.AddonActive, "", "")
}

// SPDX-License-Identifier: Apache-2.0

package baseline_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/plane/baseline"
)

// Changes that people made to an object that muster made for them stay, and the object comes back when somebody deleted
// it.
func TestApplyOnce(t *testing.T) {
	objects, err := baseline.Cluster(config(false), []byte(ca))
	if err != nil {
		t.Fatal(err)
	}
	objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetName() != "machines" })
	if len(objects) != 1 {
		t.Fatalf("%d objects are called machines", len(objects))
	}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	list := func() *corev1.ConfigMap {
		if err := baseline.Apply(t.Context(), c, objects); err != nil {
			t.Fatal(err)
		}
		var got corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "muster-system", Name: "machines"}, &got); err != nil {
			t.Fatal(err)
		}
		return &got
	}
	for range 2 {
		first := list()
		if machines, err := facts.ReadList([]byte(first.Data["machines.yaml"])); err != nil || len(machines) > 0 {
			t.Fatalf("it begins with %v, %v", machines, err)
		}
		first.Data["machines.yaml"] = "mine"
		if err := c.Update(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		again := list()
		if again.Data["machines.yaml"] != "mine" {
			t.Errorf("it became %q", again.Data)
		}
		if err := c.Delete(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
	if err := baseline.Apply(t.Context(), noWrites(c), objects); !errors.Is(err, errNoRoom) {
		t.Errorf("error is %v", err)
	}
	list()
	if err := baseline.Apply(t.Context(), noWrites(c), objects); err != nil {
		t.Errorf("it is there, and was written: %v", err)
	}
}

// errNoRoom is what an etcd says that takes no writes: also to creating what is there.
var errNoRoom = errors.New("etcdserver: mvcc: database space exceeded")

// noWrites is a client of an API server whose etcd takes no writes. Applying writes nothing if nothing changes.
func noWrites(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return errNoRoom },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return errNoRoom },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errNoRoom
		},
	})
}

// Every start applies everything, so that a rule deleted by accident comes back; and says which object failed.
func TestApply(t *testing.T) {
	objects, err := baseline.Management()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	for range 2 {
		if err := baseline.Apply(t.Context(), c, objects); err != nil {
			t.Fatal(err)
		}
		for _, want := range objects {
			var got unstructured.Unstructured
			got.SetGroupVersionKind(want.GroupVersionKind())
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(want), &got); err != nil {
				t.Fatal(err)
			}
			if owners := got.GetManagedFields(); len(owners) > 0 && owners[0].Manager != "muster" {
				t.Errorf("%s belongs to %q", got.GetName(), owners[0].Manager)
			}
		}
		deleted := &rbacv1.ClusterRole{}
		deleted.Name = "muster:inventory"
		if err := c.Delete(t.Context(), deleted); err != nil {
			t.Fatal(err)
		}
	}
	failure := errors.New("no room")
	failing := interceptor.NewClient(c, interceptor.Funcs{
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return failure
		},
	})
	if err := baseline.Apply(t.Context(), failing, objects); !errors.Is(err, failure) || !strings.Contains(err.Error(), "applying ClusterRole cluster-admin") {
		t.Errorf("error is %v", err)
	}
}

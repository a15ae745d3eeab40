// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/api/v1alpha1/crds"
	"muster.dev/muster/internal/addons/addon"
	"muster.dev/muster/internal/addons/addoncontroller"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/addons/coredns"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/baseline"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/planeclient"
	"muster.dev/muster/test/plane"
)

// TestAddonsAreApplied has the controller of add-ons work on a real API server, which knows the managers of fields and
// their conflicts. There are no nodes: the test says when pods run.
//
//story:about addons/addon addons/coredns addons/addoncontroller addons/addonfiles
func TestAddonsAreApplied(t *testing.T) {
	t.Parallel()
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plane.Start(t.Context(), plane.Config{Bin: bin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	if _, err := p.RunControllerManager("--controllers=garbage-collector-controller"); err != nil {
		t.Fatal(err)
	}
	w := newAddonsWorld(t, p)

	const values = `{"replicaCount":1,"resources":{"limits":{"memory":"200Mi"}},"corefile":"mine"}`
	w.write(&v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "coredns"}, Spec: v1alpha1.AddonSpec{AddonName: "coredns", ConfigurationValues: values}})
	w.becomes(v1alpha1.AddonCreateFailed, "ConfigMap coredns - .data.Corefile (set by muster)\nDeployment.apps coredns - .spec.template.spec.containers[name=\"coredns\"].resources.limits.memory (set by muster)")

	before := w.deployment().Spec.Template
	w.change(func(s *v1alpha1.AddonSpec) { s.ConfigurationValues = `{"replicaCount":1}` })
	w.applied()
	if after := w.deployment().Spec.Template; after.String() != before.String() {
		t.Errorf("the pods change: %s\nwere %s", after.String(), before.String())
	}
	for _, object := range w.objects() {
		there := &unstructured.Unstructured{}
		there.SetGroupVersionKind(object.GroupVersionKind())
		if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(object), there); err != nil {
			t.Fatal(err)
		}
		if got := managersOf(there); got != "eks" {
			t.Errorf("%s %s is %s's", object.GetKind(), object.GetName(), got)
		}
	}
	w.runs()
	w.becomes(v1alpha1.AddonActive, "")
	if managed, err := addoncontroller.Managed(t.Context(), w.api); err != nil || !slices.Equal(managed, []string{"coredns"}) {
		t.Errorf("managed are %v, %v", managed, err)
	}

	d := w.deployment()
	d.Spec.Replicas = new(int32(3))
	if err := w.api.Update(t.Context(), d, client.FieldOwner("people")); err != nil {
		t.Fatal(err)
	}
	w.change(func(s *v1alpha1.AddonSpec) { s.ConfigurationValues = values })
	w.becomes(v1alpha1.AddonUpdateFailed, "Deployment.apps coredns - .spec.replicas (set by people)")
	w.change(func(s *v1alpha1.AddonSpec) { s.ResolveConflicts = v1alpha1.ConflictsPreserve })
	w.applied()
	d = w.deployment()
	if memory := d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().String(); *d.Spec.Replicas != 3 || memory != "200Mi" || d.Spec.Template.Spec.Containers[0].Image == "" {
		t.Errorf("with PRESERVE there are %d pods of %s", *d.Spec.Replicas, memory)
	}
	w.change(func(s *v1alpha1.AddonSpec) {
		s.ResolveConflicts, s.ConfigurationValues = v1alpha1.ConflictsOverwrite, `{"replicaCount":2,"podDisruptionBudget":{"enabled":true,"minAvailable":1}}`
	})
	w.applied()
	d = w.deployment()
	if memory := d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().String(); *d.Spec.Replicas != 2 || memory != "170Mi" {
		t.Errorf("with OVERWRITE there are %d pods of %s", *d.Spec.Replicas, memory)
	}
	w.runs()
	w.becomes(v1alpha1.AddonActive, "")

	w.change(func(s *v1alpha1.AddonSpec) { s.ConfigurationValues = `{"affinity":{"nodeAffinity":{"wrong":1}}}` })
	w.becomes(v1alpha1.AddonUpdateFailed, "wrong")

	if err := w.api.Delete(t.Context(), w.addon()); err != nil {
		t.Fatal(err)
	}
	w.eventually("the add-on is gone", func() error {
		err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "blue", Name: "coredns"}, &v1alpha1.Addon{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
	for _, object := range w.objects() {
		if err := w.api.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%s %s is left: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// addonsWorld is an API server that is a management plane and a cluster at once.
type addonsWorld struct {
	t   *testing.T
	api client.Client
}

func newAddonsWorld(t *testing.T, p *plane.Plane) *addonsWorld {
	t.Helper()
	config, err := p.RESTConfig("test", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := planeclient.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &addonsWorld{t: t, api: api}
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions {
		if slices.Contains([]string{"Addon", "Cluster", "Machine"}, definition.Spec.Names.Kind) {
			w.write(definition)
		}
	}
	for _, name := range []string{"blue", "muster-system"} {
		w.write(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	w.eventually("the kinds are served", func() error {
		return errors.Join(api.List(t.Context(), &v1alpha1.AddonList{}), api.List(t.Context(), &v1alpha1.ClusterList{}), api.List(t.Context(), &v1alpha1.MachineList{}))
	})
	if err := baseline.Apply(t.Context(), api, w.objects()); err != nil {
		t.Fatal(err)
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := addoncontroller.Add(manager, addoncontroller.Config{
		ClusterName: "blue", Cluster: api, Catalogue: func(string) addon.Catalogue { return catalogue.New() },
		Objects: func(string) ([]*unstructured.Unstructured, error) { return w.objects(), nil },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

// objects are those of a cluster's CoreDNS, without an address that is another cluster's.
func (w *addonsWorld) objects() []*unstructured.Unstructured {
	w.t.Helper()
	c := component.Config{Account: component.Account{VPC: true}, Network: clusternetworktest.Network()}
	c.Cluster.Default()
	objects, err := coredns.Addon().Base(c)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() == "Service" {
			unstructured.RemoveNestedField(object.Object, "spec", "clusterIP")
		}
	}
	return objects
}

func (w *addonsWorld) write(object client.Object) {
	w.t.Helper()
	if err := w.api.Create(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

func (w *addonsWorld) addon() *v1alpha1.Addon {
	w.t.Helper()
	a := &v1alpha1.Addon{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "blue", Name: "coredns"}, a); err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *addonsWorld) deployment() *appsv1.Deployment {
	w.t.Helper()
	d := &appsv1.Deployment{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "coredns"}, d); err != nil {
		w.t.Fatal(err)
	}
	return d
}

func (w *addonsWorld) change(change func(*v1alpha1.AddonSpec)) {
	w.t.Helper()
	a := w.addon()
	before := a.DeepCopy()
	change(&a.Spec)
	if err := w.api.Patch(w.t.Context(), a, client.MergeFrom(before)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *addonsWorld) becomes(phase v1alpha1.AddonPhase, says string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("the add-on is %s and says %q", phase, says), func() error {
		a, message := w.addon(), ""
		if len(a.Status.Issues) > 0 {
			message = a.Status.Issues[0].Message
		}
		if a.Phase() != phase || !strings.Contains(message, says) {
			return fmt.Errorf("it is %s: %q", a.Phase(), message)
		}
		return nil
	})
}

// applied waits until the spec is in the cluster.
func (w *addonsWorld) applied() {
	w.t.Helper()
	w.eventually("the objects are applied", func() error {
		a := w.addon()
		if phase := a.Phase(); phase == v1alpha1.AddonCreateFailed || phase == v1alpha1.AddonUpdateFailed {
			w.t.Fatalf("it is %s: %+v", phase, a.Status.Issues)
		}
		if a.Status.ObservedGeneration < a.Generation || len(a.Status.Issues) == 0 || a.Status.Issues[0].Code != "InsufficientNumberOfReplicas" {
			return fmt.Errorf("it is %s: %+v", a.Phase(), a.Status.Issues)
		}
		return nil
	})
}

// runs says that all pods run, as the controller of Deployments does.
func (w *addonsWorld) runs() {
	w.t.Helper()
	d := w.deployment()
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	if err := w.api.Status().Update(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
}

func (w *addonsWorld) eventually(what string, ask func() error) {
	w.t.Helper()
	for end := time.Now().Add(patience); ; {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%s: not after %s: %v", what, patience, err)
		}
		select {
		case <-w.t.Context().Done():
			w.t.Fatal(err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// managersOf are the managers that have applied fields of an object.
func managersOf(object client.Object) string {
	var names []string
	for _, e := range object.GetManagedFields() {
		if e.Operation == metav1.ManagedFieldsOperationApply {
			names = append(names, e.Manager)
		}
	}
	return strings.Join(names, " ")
}

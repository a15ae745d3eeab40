// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
)

// staleLists is a client whose cache is behind.
type staleLists struct {
	client.Client
	lists client.Reader
}

func (s staleLists) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return s.lists.List(ctx, list, opts...)
}

func TestCluster(t *testing.T) {
	tests := []struct {
		name, object    string
		health          Health
		ready           bool
		reason, message string
		endpoint        string
	}{
		{"healthy", "muster", Health{Endpoint: "https://127.0.0.1:1", PrivateEndpoint: "https://192.168.64.2", Version: "v1.36.3", Issuer: "https://127.93.14.201/id/A"}, true, "Healthy", "answers", "https://127.0.0.1:1"},
		{"never healthy", "muster", Health{Endpoint: "https://127.0.0.1:1", Version: "v1.36.3", Err: errors.New("starting etcd")}, false, "Creating", "starting etcd", "https://127.0.0.1:1"},
		{"changed to what cannot be", "muster", Health{Endpoint: "https://127.0.0.1:1", Refused: "there is no such version", Generation: 1, Mode: v1alpha1.AuthenticationAPI}, false, "ChangeRefused", "runs on as it was: there is no such version", "https://127.0.0.1:1"},
		{"a long story", "muster", Health{Err: errors.New(strings.Repeat("x", 5000))}, false, "Creating", "xxx...", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object := newTestCluster()
			object.Name = test.object
			w := newWorld(t, object)
			w.health = test.health
			r := &clusters{parts: w.parts}
			result := mustReconcile(t, r, test.object)
			if result.RequeueAfter == 0 {
				t.Errorf("looks again after %v", result.RequeueAfter)
			}
			w.get(t, w.management, object, test.object)
			condition := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
			if condition == nil || (condition.Status == "True") != test.ready || condition.Reason != test.reason || !strings.Contains(condition.Message, test.message) || len(condition.Message) > 1024 {
				t.Errorf("condition %+v", condition)
			}
			if follows := test.health.Generation; follows != 0 && condition.ObservedGeneration != follows || object.Status.AuthenticationMode != test.health.Mode {
				t.Errorf("generation %d, mode %q", condition.ObservedGeneration, object.Status.AuthenticationMode)
			}
			if object.Status.Endpoint != test.endpoint || object.Status.Identity.OIDC.Issuer != test.health.Issuer || object.Status.ObservedGeneration != 1 {
				t.Errorf("status %+v", object.Status)
			}
			mustReconcile(t, r, test.object)
			if writes := w.faults.calls["management patch status *v1alpha1.Cluster"]; writes != 1 {
				t.Errorf("%d status writes, want 1", writes)
			}
		})
	}
}

// Conditions beside Ready are there whether the cluster is Ready or not, and a message that changes is no transition.
func TestConditionsBesideReady(t *testing.T) {
	w := newWorld(t, newTestCluster())
	r := &clusters{parts: w.parts}
	for _, err := range []error{nil, errors.New("down")} {
		health := Health{Version: "v1.36.3", Err: err, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionAPIServerMemoryLimited, Status: "True", Reason: "Limited", Message: "4096 MiB"}}}
		r.Health = func(context.Context) Health { return health }
		mustReconcile(t, r, "muster")
		object := &v1alpha1.Cluster{}
		w.get(t, w.management, object, "muster")
		condition := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionAPIServerMemoryLimited)
		if condition == nil || condition.Message != "4096 MiB" || condition.ObservedGeneration != 1 || condition.LastTransitionTime.IsZero() || len(object.Status.Conditions) != 2 {
			t.Errorf("conditions %+v", object.Status.Conditions)
		}
	}
	r.Health = func(context.Context) Health { return Health{Version: "v1.36.3"} } // not known for a moment
	mustReconcile(t, r, "muster")
	object := &v1alpha1.Cluster{}
	if w.get(t, w.management, object, "muster"); len(object.Status.Conditions) != 2 {
		t.Errorf("conditions %+v", object.Status.Conditions)
	}
}

func TestClusterKeepsVersion(t *testing.T) {
	w := newWorld(t, newTestCluster())
	r := &clusters{parts: w.parts}
	r.Health = func(context.Context) Health { return Health{Version: "v1.36.3"} }
	mustReconcile(t, r, "muster")
	r.Health = func(context.Context) Health { return Health{Err: errors.New("down")} }
	mustReconcile(t, r, "muster")
	object := &v1alpha1.Cluster{}
	if w.get(t, w.management, object, "muster"); object.Status.Version != "v1.36.3" {
		t.Errorf("version %q", object.Status.Version)
	}
	if ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason != "Unhealthy" || ready.Message != "down" {
		t.Errorf("of one that was Ready before: %+v", ready)
	}
	w.faults.fail("management patch status *v1alpha1.Cluster", 1)
	r.Health = func(context.Context) Health { return Health{} }
	if _, err := reconcileOnce(t, r, "muster"); !errors.Is(err, errTest) {
		t.Errorf("error %v", err)
	}
	mustReconcile(t, r, "gone")
}

// What is said of a Cluster that is not the one that is served, or is being deleted, is another controller's.
func TestClusterOfAnother(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.Cluster){
		"another's name":            func(c *v1alpha1.Cluster) { c.Spec.Name = "second" },
		"not that of its namespace": func(c *v1alpha1.Cluster) { c.Name = "second" },
		"being deleted": func(c *v1alpha1.Cluster) {
			c.Finalizers, c.DeletionTimestamp = []string{v1alpha1.FinalizerCluster}, &metav1.Time{Time: time.Unix(1, 0)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := newTestCluster()
			change(object)
			w := newWorld(t, object)
			if result := mustReconcile(t, &clusters{parts: w.parts}, object.Name); result != (reconcile.Result{}) {
				t.Errorf("result %+v", result)
			}
			w.get(t, w.management, object, object.Name)
			if len(object.Status.Conditions) != 0 {
				t.Errorf("status %+v", object.Status)
			}
		})
	}
}

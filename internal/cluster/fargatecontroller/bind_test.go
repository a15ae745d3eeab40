// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A pod whose binding the cluster denies says so, once, and is bound when that is mended. An error that passes is tried again
// without a word.
func TestTheClusterDeniesTheBinding(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		err  error
		told bool
	}{
		"a policy":                {apierrors.NewForbidden(pods, "a", errors.New("ValidatingAdmissionPolicy 'no-bindings' denied request")), true},
		"a policy says invalid":   {apierrors.NewInvalid(schema.GroupKind{Kind: "Binding"}, "a", nil), true},
		"a webhook that is away":  {apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		"too many requests":       {apierrors.NewTooManyRequests("later", 1), false},
		"the API server is away":  {errDown, false},
		"the API server is going": {apierrors.NewServiceUnavailable("shutting down"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle()
			w.run("a", "uid-of-a", nil)
			w.settle()
			w.launched()
			w.denies = c.err
			request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "jobs", Name: "a"}}
			for range 2 {
				result, err := w.pods.Reconcile(t.Context(), request)
				if (err == nil) != c.told || c.told && result.RequeueAfter != refusedAgain {
					t.Errorf("%+v, %v", result, err)
				}
			}
			says := why(w.pod("a"))
			if c.told != strings.Contains(says, c.err.Error()) {
				t.Errorf("the pod says %q", says)
			}
			events := 0
			for len(w.events.Events) > 0 {
				if e := <-w.events.Events; strings.Contains(e, reasonFailed) && strings.Contains(e, "refuses to bind") {
					events++
				}
			}
			if want := map[bool]int{true: 1}[c.told]; events != want {
				t.Errorf("%d Events, want %d", events, want)
			}
			w.denies = nil
			w.settle()
			if w.pod("a").Spec.NodeName == "" || len(w.machines()) != 1 {
				t.Errorf("the pod is on %q, of %d machines", w.pod("a").Spec.NodeName, len(w.machines()))
			}
		})
	}
}

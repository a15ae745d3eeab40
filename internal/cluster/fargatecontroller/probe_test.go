// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/api/v1alpha1"
)

// A cluster whose own admission refuses the pod that asks for the policy has profiles all the same: they select pods after
// a while, and go when they are deleted, also beside another profile.
func TestTheProbeIsRefused(t *testing.T) {
	for name, refuses := range map[string]error{
		"by a webhook":            apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "muster-fargate-probe", errors.New("admission webhook denied the request: images of none")),
		"by a webhook that fails": apierrors.NewInternalError(errors.New("failed calling webhook: connection refused")),
		"without dry runs":        apierrors.NewBadRequest("admission webhook does not support dry run"),
		"by a pod of its name":    apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, "muster-fargate-probe"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.refuses = refuses
			if err := w.ofProfiles(); err != nil {
				t.Fatal(err)
			}
			ready := meta.FindStatusCondition(w.profile().Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Reason != reasonApplying || !strings.Contains(ready.Message, refuses.Error()) {
				t.Fatalf("the profile says %+v", ready)
			}
			w.now = noon.Add(assumed)
			w.settle()
			if p := w.profile(); !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
				t.Errorf("after a while the profile is %+v", p.Status)
			}
			w.another()
			w.delete(w.profile())
			w.settle()
			if p := w.profile(); p != nil {
				t.Errorf("the deleted profile is left: %+v", p.Status)
			}
		})
	}
	w := newWorld(t)
	w.refuses = errDown
	if err := w.ofProfiles(); !errors.Is(err, errDown) {
		t.Errorf("an API server that does not answer: %v", err)
	}
}

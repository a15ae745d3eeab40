// SPDX-License-Identifier: Apache-2.0

package fargatecontroller

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/fargate"
)

// An error that says nothing of the role, such as an identity service that starts, fails no profile: clients give up one
// that is CREATE_FAILED. A profile that selects pods stays as it is.
func TestRoleIsNotKnownYet(t *testing.T) {
	w := newWorld(t)
	w.roles.err = errors.New("the identity service is not ready")
	if err := w.ofProfiles(); !errors.Is(err, w.roles.err) {
		t.Errorf("it is not tried again: %v", err)
	}
	ready := meta.FindStatusCondition(w.profile().Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != reasonApplying || !strings.Contains(ready.Message, "the identity service is not ready") {
		t.Errorf("a new profile is %+v", ready)
	}
	w.roles.err = nil
	w.settle()
	w.roles.err = errors.New("the management plane does not answer")
	if err := w.ofProfiles(); !errors.Is(err, w.roles.err) {
		t.Errorf("it is not tried again: %v", err)
	}
	if p := w.profile(); !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("a profile that selects pods is %+v", p.Status)
	}
	w.roles.err = &fargate.RoleProblem{Reason: v1alpha1.ReasonPodExecutionRoleInUse, Message: "the role has another entry"}
	w.settle()
	if ready := meta.FindStatusCondition(w.profile().Status.Conditions, v1alpha1.ConditionReady); ready.Reason != v1alpha1.ReasonPodExecutionRoleInUse {
		t.Errorf("a profile whose role is in use is %+v", ready)
	}
}

// A profile that selects pods does so while another one is being made.
func TestAnotherProfileIsMade(t *testing.T) {
	w := newWorld(t)
	w.settle()
	w.follows = false
	w.another()
	w.settle()
	if p := w.profile(); !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady) {
		t.Errorf("the first profile is %+v", p.Status)
	}
}

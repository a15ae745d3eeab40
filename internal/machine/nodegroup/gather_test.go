// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// Steps of a join are written together, and that the machine is Ready at once. Its token goes with the first sign
// of its Node, whenever that is written.
func TestStepsAreWrittenTogether(t *testing.T) {
	w := newWorld(t, newTestMachine())
	r := w.machines()
	writes := func() int { return w.faults.calls["management update status *v1alpha1.Machine"] }
	mustReconcile(t, r, id)
	launched := writes()

	w.now = w.now.Add(stepsEvery / 4)
	node := newTestNode(corev1.ConditionFalse)
	node.Spec.PodCIDR = "" // which the status has, too
	if err := w.faults.off(func() error { return w.cluster.Create(t.Context(), node) }); err != nil {
		t.Fatal(err)
	}
	result := mustReconcile(t, r, id)
	if result.RequeueAfter != stepsEvery*3/4 || writes() != launched || len(w.tokens(t)) != 0 {
		t.Errorf("of a Node half a second after the launch: %d writes, %d tokens; looks again after %s", writes()-launched, len(w.tokens(t)), result.RequeueAfter)
	}
	removals := w.faults.calls["cluster delete *v1.Secret"]
	mustReconcile(t, r, id)
	if again := w.faults.calls["cluster delete *v1.Secret"]; again != removals || removals == 0 {
		t.Errorf("the token is removed %d times, and then %d times more", removals, again-removals)
	}
	w.now = w.now.Add(stepsEvery * 3 / 4)
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineJoining, "NodeNotReady")
	if writes() != launched+1 || w.machine(t).Status.BootstrapTokenID != "" {
		t.Errorf("when the time is over: %d writes, token %s", writes()-launched, w.machine(t).Status.BootstrapTokenID)
	}
	w.setReady(t, corev1.ConditionTrue)
	mustReconcile(t, r, id)
	want(t, w.machine(t), v1alpha1.MachineReady, reasonNodeReady)
}

func TestStepsAlone(t *testing.T) {
	status := func(change func(*v1alpha1.MachineStatus)) *v1alpha1.MachineStatus {
		s := &v1alpha1.MachineStatus{
			Phase: v1alpha1.MachineJoining, ProviderID: "aws:///us-east-1a/" + id, BootstrapTokenID: "abcdef",
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Joining"}, {Type: "Other"}},
			Join:       []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched}},
		}
		change(s)
		return s
	}
	before := status(func(*v1alpha1.MachineStatus) {})
	for name, test := range map[string]struct {
		change func(*v1alpha1.MachineStatus)
		want   bool
	}{
		"a step": {func(s *v1alpha1.MachineStatus) {
			s.Join = append(s.Join, v1alpha1.JoinRecord{Step: v1alpha1.StepAPIReached})
		}, true},
		"another reason":   {func(s *v1alpha1.MachineStatus) { s.Conditions[0].Reason = "NodeNotReady" }, true},
		"its token went":   {func(s *v1alpha1.MachineStatus) { s.BootstrapTokenID = "" }, true},
		"another token":    {func(s *v1alpha1.MachineStatus) { s.BootstrapTokenID = "fedcba" }, false},
		"a phase":          {func(s *v1alpha1.MachineStatus) { s.Phase = v1alpha1.MachineReady }, false},
		"it is late":       {func(s *v1alpha1.MachineStatus) { s.Conditions[0].Reason = "Late" }, false},
		"no condition":     {func(s *v1alpha1.MachineStatus) { s.Conditions = nil }, false},
		"what else is":     {func(s *v1alpha1.MachineStatus) { s.Conditions[1].Status = metav1.ConditionTrue }, false},
		"another instance": {func(s *v1alpha1.MachineStatus) { s.ProviderID = "aws:///us-east-1b/" + id }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stepsAlone(before, status(test.change)); got != test.want {
				t.Errorf("%t, want %t", got, test.want)
			}
		})
	}
	if stepsAlone(&v1alpha1.MachineStatus{}, before) {
		t.Error("a launch may wait")
	}
}

// The last step of a join waits for nothing, and the same step of a machine that is not Ready yet does.
func TestAWholeJoinIsWrittenAtOnce(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for phase, want := range map[v1alpha1.MachinePhase]time.Duration{v1alpha1.MachineReady: 0, v1alpha1.MachineJoining: stepsEvery} {
		m, before := newMemory(), newTestMachine()
		before.Status.Phase = phase
		before.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reasonNodeReady}}
		m.wrote(before, now)
		after := before.DeepCopy()
		after.Status.Join = []v1alpha1.JoinRecord{{Step: v1alpha1.StepServingCSRIssued}}
		if wait := m.gather(before, after, now); wait != want {
			t.Errorf("%s: %s, want %s", phase, wait, want)
		}
	}
}

// A clock that was set back does not keep a status from being written for longer.
func TestGatherIsBounded(t *testing.T) {
	m, now := newMemory(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	before := newTestMachine()
	before.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: "Joining"}}
	after := before.DeepCopy()
	after.Status.Join = []v1alpha1.JoinRecord{{Step: v1alpha1.StepAPIReached}}
	if wait := m.gather(before, after, now); wait != 0 {
		t.Errorf("without a write before: %s", wait)
	}
	m.wrote(after, now.Add(time.Hour))
	if wait := m.gather(before, after, now); wait != stepsEvery {
		t.Errorf("with a write an hour ahead: %s, want %s", wait, stepsEvery)
	}
	m.forget(after.Name)
	if wait := m.gather(before, after, now); wait != 0 {
		t.Errorf("of a machine that was forgotten: %s", wait)
	}
}

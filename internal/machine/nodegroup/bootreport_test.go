// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/node/bootreport"
)

// reporting is a provider whose machines report.
type reporting struct {
	*provider
	reports map[string]bootreport.Report
}

func (p reporting) Report(id string) (bootreport.Report, bool) {
	report, ok := p.reports[id]
	return report, ok
}

// What a machine reports of its boot is in its condition, in one Event for each report and in the condition of its
// group; it is asked for again and again. A report is not believed to be of a machine that is Ready, and none makes a
// machine Ready.
func TestMachineReports(t *testing.T) {
	w := newWorld(t, newTestCluster(), newTestMachine())
	p := reporting{w.provider, map[string]bootreport.Report{}}
	w.Providers[v1alpha1.ProviderLocal] = p
	r := w.machines()
	mustReconcile(t, r, id)
	failed := bootreport.Report{Reason: bootreport.UserDataFailed, Message: "the script user data, part 1 failed: exit status 4; its last lines: no disk", Since: w.now}
	p.reports[id] = failed
	for range 2 {
		if result := mustReconcile(t, r, id); result.RequeueAfter <= 0 || result.RequeueAfter > reportAgain {
			t.Errorf("it is asked again after %s", result.RequeueAfter)
		}
		w.now = w.now.Add(time.Second)
	}
	m := w.machine(t)
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	want := failed.Message + "; more: muster logs " + id
	if m.Status.Phase != v1alpha1.MachineJoining || ready.Status != "False" || ready.Reason != bootreport.UserDataFailed || ready.Message != want {
		t.Errorf("phase %s, condition %+v", m.Status.Phase, ready)
	}
	told := 0
	for _, event := range w.events.list {
		if event == "Warning UserDataFailed: "+id+": "+want {
			told++
		}
	}
	if told != 1 {
		t.Errorf("events: %q", w.events.list)
	}
	group := newTestGroup(1)
	w.groups().sum(group, []v1alpha1.Machine{*m, *m.DeepCopy()}, nil)
	if got := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionReady); got.Reason != "NodeCreationFailure" || got.Message != "0 of 1 machine is Ready; "+id+": "+want+" (and 1 more)" {
		t.Errorf("the group's condition is %+v", got)
	}

	delete(p.reports, id)
	mustReconcile(t, r, id)
	if ready := meta.FindStatusCondition(w.machine(t).Status.Conditions, v1alpha1.ConditionReady); ready.Reason != "Joining" || strings.Contains(ready.Message, "exit status") {
		t.Errorf("after its end the condition is %+v", ready)
	}
	p.reports[id] = failed
	w.addNode(t, corev1.ConditionTrue)
	mustReconcile(t, r, id)
	if m := w.machine(t); m.Status.Phase != v1alpha1.MachineReady {
		t.Errorf("a Ready node whose machine reports a failure is %s", m.Status.Phase)
	}
}

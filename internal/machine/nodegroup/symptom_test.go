// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/node/bootreport"
)

// The identifier of a cause is in the condition of a machine, in its Event and in the condition of its group, once; where
// the cause is not known, messages are as they were.
func TestMessagesNameTheirCause(t *testing.T) {
	w := newWorld(t, newTestCluster(), newTestMachine())
	var asked []Symptom
	w.Cause = func(s Symptom) string {
		asked = append(asked, s)
		return map[string]string{bootreport.DiskFull: "M-NODE-61", "Ready/IamNodeRoleNotFound": "M-GROUP-91"}[s.Code]
	}
	p := reporting{w.provider, map[string]bootreport.Report{}}
	w.Providers[v1alpha1.ProviderLocal] = p
	r := w.machines()
	mustReconcile(t, r, id)
	p.reports[id] = bootreport.Report{Reason: bootreport.DiskFull, Message: "no space", Since: w.now}
	w.now = w.now.Add(time.Minute)
	mustReconcile(t, r, id)
	m := w.machine(t)
	want := "M-NODE-61: no space; more: muster logs " + id
	if got := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady).Message; got != want {
		t.Errorf("the machine: %q", got)
	}
	if !slices.Contains(w.events.list, "Warning DiskFull: "+id+": "+want) {
		t.Errorf("events: %q", w.events.list)
	}
	if s := asked[len(asked)-1]; s.Source != "report" || s.Code != bootreport.DiskFull || s.Still < time.Minute || s.Still > time.Hour {
		t.Errorf("asked about %+v", s)
	}
	group := newTestGroup(1)
	w.groups().sum(group, []v1alpha1.Machine{*m}, nil)
	if got := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionReady).Message; strings.Count(got, "M-NODE-61") != 1 {
		t.Errorf("the group, of its machine: %q", got)
	}
	w.groups().sum(group, nil, &RoleProblem{Reason: "IamNodeRoleNotFound", Message: "no role"})
	if got := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionReady).Message; got != "M-GROUP-91: no role" {
		t.Errorf("the group, of its own: %q", got)
	}
	delete(p.reports, id)
	mustReconcile(t, r, id)
	if got := meta.FindStatusCondition(w.machine(t).Status.Conditions, v1alpha1.ConditionReady).Message; strings.Contains(got, "M-") {
		t.Errorf("after its end: %q", got)
	}
}

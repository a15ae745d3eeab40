// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
)

func newRoleMachine() *v1alpha1.Machine {
	m := newTestMachine()
	m.Spec.InstanceProfile = "muster-node"
	return m
}

func identityOf(m *v1alpha1.Machine) (status, message string) {
	if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionIdentity); c != nil {
		return string(c.Status), c.Message
	}
	return "", ""
}

func readyMessage(m *v1alpha1.Machine) string {
	return meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady).Message
}

func TestMachineByRoleHasNoToken(t *testing.T) {
	w := newWorld(t, newRoleMachine())
	r := w.machines()
	mustReconcile(t, r, id)
	m := w.machine(t)
	if tokens := w.tokens(t); len(tokens) > 0 || m.Status.BootstrapTokenID != "" {
		t.Errorf("%d tokens, %q", len(tokens), m.Status.BootstrapTokenID)
	}
	if len(w.provider.userData) != 1 || w.provider.userData[0] != "token: " {
		t.Errorf("launched with %q", w.provider.userData)
	}
	mustReconcile(t, r, id)
	if len(w.provider.userData) != 1 {
		t.Errorf("launched %d times", len(w.provider.userData))
	}
}

func TestMachineSaysWhyItIsRefused(t *testing.T) {
	w := newWorld(t, newRoleMachine())
	w.roles.refusal = &Refusal{Rule: "no-entry", Saw: "arn:aws:iam::000000000000:role/muster-node is in no access entry", Fix: "make one"}
	r := w.machines()
	result := mustReconcile(t, r, id)
	if result.RequeueAfter <= 0 || result.RequeueAfter > refusedAgain {
		t.Errorf("looked at again after %s", result.RequeueAfter)
	}
	const want = "the cluster does not let the machine in: refused by rule no-entry: arn:aws:iam::000000000000:role/muster-node is in no access entry; make one"
	m := w.machine(t)
	if status, message := identityOf(m); status != "False" || message != want || readyMessage(m) != want {
		t.Errorf("%s %q, %q", status, message, readyMessage(m))
	}
	mustReconcile(t, r, id) // before it is time to ask again
	if m = w.machine(t); readyMessage(m) != want || w.roles.checks != 1 {
		t.Errorf("after another look: %q, asked %d times", readyMessage(m), w.roles.checks)
	}
	w.roles.refusal = nil
	w.now = w.now.Add(refusedAgain)
	mustReconcile(t, r, id)
	if status, _ := identityOf(w.machine(t)); status != "True" || strings.Contains(readyMessage(w.machine(t)), "refused") {
		t.Errorf("after it was mended: %s, %q", status, readyMessage(w.machine(t)))
	}
}

func TestReadyMachineThatIsRefusedSaysSo(t *testing.T) {
	w := newWorld(t, newRoleMachine(), newTestNode("True"))
	r := w.machines()
	mustReconcile(t, r, id)
	mustReconcile(t, r, id)
	if m := w.machine(t); m.Status.Phase != v1alpha1.MachineReady {
		t.Fatalf("phase %s", m.Status.Phase)
	}
	w.now = w.now.Add(time.Minute)
	w.roles.refusal = &Refusal{Rule: "role-gone"}
	mustReconcile(t, r, id)
	m := w.machine(t)
	if status, message := identityOf(m); status != "False" || !strings.Contains(message, "role-gone") || m.Status.Phase != v1alpha1.MachineReady {
		t.Errorf("%s %q in phase %s", status, message, m.Status.Phase)
	}
	checks := w.roles.checks
	w.now = w.now.Add(refusedAgain)
	w.roles.refusal = errors.New("nobody answers")
	mustReconcile(t, r, id)
	if status, _ := identityOf(w.machine(t)); status != "Unknown" || w.roles.checks != checks+1 {
		t.Errorf("while nobody can tell: %s, asked %d times", status, w.roles.checks-checks)
	}
}

func TestMachineByTokenIsNotAskedFor(t *testing.T) {
	w := newWorld(t, newTestMachine())
	mustReconcile(t, w.machines(), id)
	if status, _ := identityOf(w.machine(t)); status != "" || w.roles.checks != 0 || len(w.tokens(t)) != 1 {
		t.Errorf("%q, asked %d times, %d tokens", status, w.roles.checks, len(w.tokens(t)))
	}
}

func TestGroupSaysWhatIsWrongWithItsRole(t *testing.T) {
	group := newTestGroup(2)
	group.Spec.NodeRole = "nobody"
	w := newWorld(t, newTestCluster(), group)
	w.roles.problem = &RoleProblem{"IamNodeRoleNotFound", "there is no role nobody"}
	r := w.groups()
	result := mustReconcile(t, r, "workers")
	wantGroup(t, w.group(t), "IamNodeRoleNotFound", "there is no role nobody")
	if len(w.list(t)) != 0 || result.RequeueAfter != roleAgain {
		t.Errorf("%d machines, again after %s", len(w.list(t)), result.RequeueAfter)
	}
	w.roles.problem = nil
	mustReconcile(t, r, "workers")
	if machines := w.list(t); len(machines) != 2 || machines[0].Spec.InstanceProfile != "profile-of-nobody" {
		t.Errorf("%+v", machines)
	}
}

func TestGroupByToken(t *testing.T) {
	group := newTestGroup(1)
	group.Spec.Bootstrap = v1alpha1.BootstrapToken
	w := newWorld(t, newTestCluster(), group)
	mustReconcile(t, w.groups(), "workers")
	if machines := w.list(t); len(machines) != 1 || machines[0].Spec.InstanceProfile != "" || w.faults.calls["Prepare"] != 0 {
		t.Errorf("%+v", machines)
	}
}

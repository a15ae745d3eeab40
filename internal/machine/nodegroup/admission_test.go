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
	const want = "the cluster does not let the machine in: refused by rule no-entry (M-IAM-01): arn:aws:iam::000000000000:role/muster-node is in no access entry; make one"
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
	if status, _ := identityOf(w.machine(t)); status != "Unknown" || strings.Contains(readyMessage(w.machine(t)), "refused") {
		t.Errorf("after it was mended: %s, %q", status, readyMessage(w.machine(t)))
	}
}

// What the cluster would do with a right token is not what it does with the one that the machine sends.
func TestMachineWhoseTokenIsRefused(t *testing.T) {
	w := newWorld(t, newRoleMachine())
	r := w.machines()
	mustReconcile(t, r, id)
	if status, message := identityOf(w.machine(t)); status != "Unknown" || !strings.Contains(message, "has not reached the API server yet") {
		t.Errorf("before the machine was there: %s %q", status, message)
	}
	hear := func(saw string) {
		r.memory.heard(Heard{Machine: id, Refusal: Refusal{Rule: "signature/SignatureDoesNotMatch", Saw: saw, Fix: "name the cluster"}}, w.now)
		mustReconcile(t, r, id)
	}
	hear(`a signature that key ASIA1 did not make for cluster "muster"`)
	const want = "refuses the token that is sent with its session: refused by rule signature/SignatureDoesNotMatch (M-IAM-07): a signature that key ASIA1 did not make for cluster \"muster\"; name the cluster"
	m := w.machine(t)
	if status, message := identityOf(m); status != "False" || !strings.Contains(message, want) || !strings.Contains(readyMessage(m), want) {
		t.Errorf("%s %q, %q", status, message, readyMessage(m))
	}
	events := len(w.events.list)
	for range 5 {
		w.now = w.now.Add(5 * time.Second)
		hear(`a signature that key ASIA1 did not make for cluster "muster"`)
	}
	if len(w.events.list) != events || !strings.Contains(strings.Join(w.events.list, "\n"), "Warning Refused: ") {
		t.Errorf("events %q", w.events.list)
	}
	w.now = w.now.Add(heardFor + time.Second)
	mustReconcile(t, r, id)
	if status, _ := identityOf(w.machine(t)); status != "Unknown" {
		t.Errorf("long after the last refusal: %s", status)
	}
	r.steps.Line(reached(newRoleMachine()))
	mustReconcile(t, r, id) // before it is time to ask again
	if status, message := identityOf(w.machine(t)); status != "True" {
		t.Errorf("after the machine was there: %s %q", status, message)
	}
}

// Whoever got hold of a session token can have tokens refused in the machine's name. Of a machine that is Ready that
// says nothing.
func TestReadyMachineIsNotSpoiltByRefusedTokens(t *testing.T) {
	w := newWorld(t, newRoleMachine(), newTestNode("True"))
	r := w.machines()
	mustReconcile(t, r, id)
	mustReconcile(t, r, id)
	r.memory.heard(Heard{Machine: id, Refusal: Refusal{Rule: "host"}}, w.now)
	mustReconcile(t, r, id)
	m := w.machine(t)
	if status, message := identityOf(m); status != "True" || m.Status.Phase != v1alpha1.MachineReady || strings.Contains(strings.Join(w.events.list, "\n"), "Refused") {
		t.Errorf("%s %q in phase %s, events %q", status, message, m.Status.Phase, w.events.list)
	}
}

// The identity service hears of the private DNS name after the launch that is checked: that is no refusal.
func TestHealthyLaunchByRoleWarnsOfNothing(t *testing.T) {
	w := newWorld(t, newRoleMachine())
	w.roles.refusal = errors.New("the instance has no private DNS name yet")
	r := w.machines()
	mustReconcile(t, r, id)
	w.roles.refusal = nil
	w.now = w.now.Add(refusedAgain)
	mustReconcile(t, r, id)
	w.addNode(t, "True")
	mustReconcile(t, r, id)
	if events := strings.Join(w.events.list, "\n"); strings.Contains(events, "Warning") {
		t.Errorf("events %s", events)
	}
}

func TestMachineThatDoesNotComeIsLate(t *testing.T) {
	for name, m := range map[string]*v1alpha1.Machine{"ClientCSRCreated": newTestMachine(), "NodeRegistered": newRoleMachine()} {
		w := newWorld(t, m)
		r := w.machines()
		if wait := mustReconcile(t, r, id).RequeueAfter; wait <= 0 || wait > lateAfter {
			t.Errorf("looks again after %s", wait)
		}
		if message := readyMessage(w.machine(t)); message != "the machine is joining; its next step is APIReached" {
			t.Errorf("says %q", message)
		}
		w.now = w.now.Add(lateAfter)
		r.steps.Line(reached(m))
		mustReconcile(t, r, id)
		want(t, w.machine(t), v1alpha1.MachineJoining, "Late")
		expected := "the machine is not Ready 3m0s after its launch; its last step is APIReached, its next is " + name + "; see muster logs " + id
		if message := readyMessage(w.machine(t)); message != expected {
			t.Errorf("says %q, want %q", message, expected)
		}
		w.now = w.now.Add(time.Minute)
		mustReconcile(t, r, id)
		if n := strings.Count(strings.Join(w.events.list, "\n"), "Warning JoinLate"); n != 1 {
			t.Errorf("%d events: %q", n, w.events.list)
		}
		w.addNode(t, "False")
		mustReconcile(t, r, id)
		want(t, w.machine(t), v1alpha1.MachineJoining, "Late")
		w.setReady(t, "True")
		mustReconcile(t, r, id)
		want(t, w.machine(t), v1alpha1.MachineReady, "NodeReady")
	}
}

// reached is a line of the audit log by which a machine was at the API server.
func reached(m *v1alpha1.Machine) []byte {
	user := `"username":"system:bootstrap:abcdef","groups":["` + v1alpha1.BootstrapGroupPrefix + id + `"]`
	if m.Spec.InstanceProfile != "" {
		user = `"username":"system:node:` + nodeName + `","groups":["system:nodes"],"extra":{"sessionName":["` + id + `"]}`
	}
	return []byte(`{"kind":"Event","stage":"ResponseComplete","verb":"get","user":{` + user +
		`},"objectRef":{"resource":"nodes"},"responseStatus":{"code":404},"requestReceivedTimestamp":"2026-11-20T12:00:01Z","stageTimestamp":"2026-11-20T12:00:01Z"}`)
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

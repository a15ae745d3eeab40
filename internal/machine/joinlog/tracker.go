// SPDX-License-Identifier: Apache-2.0

package joinlog

import (
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// maxTracked bounds each of a tracker's tables: more than twice the machines that a group can have.
const maxTracked = 1 << 14

// Tracker knows the steps of machines as far as it was shown them. It may be used by several goroutines.
type Tracker struct {
	mu       sync.Mutex
	machines table[map[v1alpha1.JoinStep]time.Time] // machine → its steps
	requests table[request]                         // CSR's name → whose it is
	nodes    table[string]                          // node's name → machine
}

// request is a CSR on its way.
type request struct {
	machine string
	node    string // the name that a client CSR asks for
	serving bool
}

// NewTracker returns a tracker that knows nothing yet.
func NewTracker() *Tracker { return &Tracker{} }

// Line takes in one line of the audit log, and returns the machine that it adds a step to, or "".
func (t *Tracker) Line(line []byte) string {
	e, ok := parse(line)
	if !ok {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	machine, added := t.observe(e)
	if !added {
		return ""
	}
	return machine
}

func (t *Tracker) observe(e event) (string, bool) {
	const csrs = "certificatesigningrequests"
	machine, reached := e.bootstrapMachine(), false
	if machine != "" {
		reached = t.step(machine, v1alpha1.StepAPIReached, e.Received)
	}
	if of := e.instance(); of != "" {
		machine = of
		t.nodes.put(e.node(), of)
		reached = t.step(of, v1alpha1.StepAPIReached, e.Received)
	}
	switch {
	case !e.done():
	case e.on(csrs, "", "create"):
		if of, ok := t.created(e, machine); ok {
			return of, true
		}
	case e.on(csrs, "approval", "update", "patch"):
		if csr, ok := e.csr(); ok && approved(csr) {
			return t.requestStep(csr.Name, v1alpha1.StepClientCSRApproved, v1alpha1.StepServingCSRApproved, e.Reached)
		}
	case e.on(csrs, "status", "update", "patch"):
		if csr, ok := e.csr(); ok && len(csr.Status.Certificate) > 0 {
			return t.issued(csr.Name, e.Reached)
		}
	case e.on("nodes", "", "create"):
		if of, ok := t.nodes.get(e.node()); ok {
			return of, t.step(of, v1alpha1.StepNodeRegistered, e.Reached)
		}
	}
	return machine, reached
}

// created takes note of a CSR: one made with a bootstrap token, or one for a serving certificate. A client certificate
// that a node renews is not a step of its join.
func (t *Tracker) created(e event, machine string) (string, bool) {
	csr, ok := e.csr()
	if !ok {
		return "", false
	}
	switch {
	case e.bootstrapMachine() != "" && csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName:
		t.requests.put(csr.Name, request{machine: machine, node: requestedNode(csr)})
		return machine, t.step(machine, v1alpha1.StepClientCSRCreated, e.Reached)
	case csr.Spec.SignerName == certificatesv1.KubeletServingSignerName:
		of, ok := t.nodes.get(e.node())
		if !ok {
			return "", false
		}
		if steps, _ := t.machines.get(of); !steps[v1alpha1.StepServingCSRIssued].IsZero() {
			return "", false // it renews, too
		}
		t.requests.put(csr.Name, request{machine: of, serving: true})
		return of, t.step(of, v1alpha1.StepServingCSRCreated, e.Reached)
	}
	return "", false
}

func (t *Tracker) requestStep(name string, client, serving v1alpha1.JoinStep, at time.Time) (string, bool) {
	of, ok := t.requests.get(name)
	if !ok {
		return "", false
	}
	if of.serving {
		return of.machine, t.step(of.machine, serving, at)
	}
	return of.machine, t.step(of.machine, client, at)
}

func (t *Tracker) issued(name string, at time.Time) (string, bool) {
	of, ok := t.requests.get(name)
	if !ok {
		return "", false
	}
	if of.node != "" {
		t.nodes.put(of.node, of.machine)
	}
	machine, added := t.requestStep(name, v1alpha1.StepClientCSRIssued, v1alpha1.StepServingCSRIssued, at)
	t.requests.drop(name)
	return machine, added
}

// step records a machine's step unless it has it already, and reports whether it did.
func (t *Tracker) step(machine string, step v1alpha1.JoinStep, at time.Time) bool {
	steps, ok := t.machines.get(machine)
	if !ok {
		steps = map[v1alpha1.JoinStep]time.Time{}
		t.machines.put(machine, steps)
	}
	if _, ok := steps[step]; ok {
		return false
	}
	steps[step] = at
	return true
}

// Records returns the steps of a machine, in the order of v1alpha1.JoinSteps.
func (t *Tracker) Records(machine string) []v1alpha1.JoinRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	steps, _ := t.machines.get(machine)
	var records []v1alpha1.JoinRecord
	for _, step := range v1alpha1.JoinSteps() {
		if at, ok := steps[step]; ok {
			records = append(records, v1alpha1.JoinRecord{Step: step, Time: metav1.NewMicroTime(at)})
		}
	}
	return records
}

// Forget drops the records of a machine that is gone.
func (t *Tracker) Forget(machine string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.machines.drop(machine)
	t.requests.dropFunc(func(r request) bool { return r.machine == machine })
	t.nodes.dropFunc(func(of string) bool { return of == machine })
}

// table is a map that forgets its oldest entry rather than grow past maxTracked.
type table[V any] struct {
	entries map[string]V
	order   []string // keys, oldest first; may hold keys that were dropped
}

func (t *table[V]) get(key string) (V, bool) {
	value, ok := t.entries[key]
	return value, ok
}

func (t *table[V]) put(key string, value V) {
	if t.entries == nil {
		t.entries = map[string]V{}
	}
	if _, ok := t.entries[key]; !ok {
		t.order = append(t.order, key)
	}
	t.entries[key] = value
	for len(t.entries) > maxTracked || len(t.order) > 2*maxTracked {
		delete(t.entries, t.order[0])
		t.order = t.order[1:]
	}
}

func (t *table[V]) drop(key string) { delete(t.entries, key) }

func (t *table[V]) dropFunc(drop func(V) bool) {
	for key, value := range t.entries {
		if drop(value) {
			delete(t.entries, key)
		}
	}
}

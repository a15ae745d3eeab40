// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/aws/cloudformation/stack"
)

// asked is what a template of these tests asks of a resource.
type asked struct {
	value, key int  // a change of the key replaces the resource
	rebuilt    bool // the resource is replaced when a resource that it refers to is
	unresolved bool
}

// template is a graph with what it asks for.
type template struct {
	graph stack.Graph
	asks  map[string]asked
}

// judge resolves properties: a value, a key, and the physical ids of the needs.
func (t template) judge(s stack.State, id string, had *stack.Resource) (stack.Wanted, error) {
	a := t.asks[id]
	if a.unresolved {
		return stack.Wanted{}, errors.New("no attribute of that name")
	}
	properties := map[string]any{"value": a.value, "key": a.key}
	for _, need := range t.graph[id].Needs {
		r, ok := s.Current(need)
		if !ok || r.PhysicalID == "" {
			return stack.Wanted{}, fmt.Errorf("defect: %s is asked for before %s is there", id, need)
		}
		properties["ref:"+need] = r.PhysicalID
	}
	w := stack.Wanted{Properties: properties, Change: stack.InPlace}
	switch {
	case had == nil:
	case reflect.DeepEqual(had.Properties, properties):
		w.Change = stack.None
	case had.Properties["key"] != a.key || a.rebuilt && !maps.Equal(references(had.Properties), references(properties)):
		w.Change = stack.Replace
	}
	return w, nil
}

func references(properties map[string]any) map[string]any {
	refs := map[string]any{}
	for k, v := range properties {
		if strings.HasPrefix(k, "ref:") {
			refs[k] = v
		}
	}
	return refs
}

// drawTemplate makes a template of up to six resources in a random order. Each needs some resources before it.
func drawTemplate(t *rapid.T, types map[string]string) template {
	order := rapid.Permutation([]string{"A", "B", "C", "D", "E", "F"}).Draw(t, "order")
	order = order[:rapid.IntRange(1, len(order)).Draw(t, "size")]
	made := template{graph: stack.Graph{}, asks: map[string]asked{}}
	policies := []stack.Policy{"", "", "", stack.Retain, stack.RetainExceptOnCreate}
	for i, id := range order {
		node := stack.Node{
			Type: types[id], DeletionPolicy: rapid.SampledFrom(policies).Draw(t, "deletion"), ReplacePolicy: rapid.SampledFrom(policies[:4]).Draw(t, "replacement"),
		}
		for _, need := range order[:i] {
			if rapid.IntRange(0, 2).Draw(t, "needs") == 0 {
				node.Needs = append(node.Needs, need)
			}
		}
		made.graph[id] = node
		made.asks[id] = asked{
			value: rapid.IntRange(0, 1).Draw(t, "value"), key: rapid.IntRange(0, 1).Draw(t, "key"), rebuilt: rapid.Bool().Draw(t, "rebuilt"),
			unresolved: rapid.IntRange(0, 30).Draw(t, "unresolved") == 0,
		}
	}
	return made
}

var types = map[string]string{"A": "T::A", "B": "T::B", "C": "T::C", "D": "T::D", "E": "T::E", "F": "T::F"}

// TestEachOperationEnds creates, updates, rolls back and deletes stacks at random, with calls that fail, wait and are answered to
// a process that is killed. Each operation ends in a status of CloudFormation, nothing is made twice or forgotten, the order
// is kept, and what a rollback leaves is what was there before.
func TestEachOperationEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		of := drawTemplate(t, types)
		s, _ := stack.Create(of.graph, rapid.SampledFrom([]stack.OnFailure{stack.Rollback, stack.DoNothing, stack.Delete}).Draw(t, "on failure"))
		for range rapid.IntRange(0, 6).Draw(t, "rounds before it is deleted") { // a stack may be deleted at any time while it is created
			plan := stack.Next(s, of.judge)
			s = plan.State
			w.told(s, plan.Events)
			for _, call := range plan.Calls {
				var events []stack.Event
				s, events = stack.Record(s, w.do(call))
				w.told(s, events)
			}
		}
		if rapid.IntRange(0, 4).Draw(t, "deleted early") == 0 {
			s, _, _ = s.Delete(nil)
		}
		s = w.run(s, of)
		w.check(s, of, nil)
		for range rapid.IntRange(0, 3).Draw(t, "operations") {
			s, of = w.operate(s, of)
		}
		w.luck = true
		w.fates, w.delays = map[string]string{}, map[string]int{}
		s = w.run(s, of)
		if (s.Status == stack.UpdateFailed || s.Status == stack.UpdateRollbackFailed) && rapid.Bool().Draw(t, "rolled back at last") {
			s, _, _ = s.RollBack()
			s = w.run(s, of)
			if s.Status != stack.UpdateRollbackComplete {
				t.Fatalf("%s: a rollback without failures does not end well", s.Status)
			}
		}
		s, _, err := s.Delete(nil)
		if err != nil {
			t.Fatal(err)
		}
		s = w.run(s, of)
		w.accounted(s)
		if s.Status != stack.DeleteComplete {
			t.Fatalf("%s, and nothing failed: %+v", s.Status, s.Resources)
		}
	})
}

// operate does one operation that the stack takes.
func (w *world) operate(s stack.State, of template) (stack.State, template) {
	w.t.Helper()
	before := w.currents(s)
	var err error
	switch choice := rapid.IntRange(0, 2).Draw(w.t, "operation"); {
	case s.Status.Updatable() && choice > 0:
		next := drawTemplate(w.t, types)
		if s, _, err = s.Update(next.graph, rapid.SampledFrom([]stack.OnFailure{stack.Rollback, stack.Rollback, stack.DoNothing}).Draw(w.t, "on failure")); err != nil {
			w.t.Fatal(err)
		}
		s = w.run(s, next)
		w.check(s, next, before)
		if s.Status != stack.UpdateFailed || rapid.Bool().Draw(w.t, "left as it is") {
			return s, next
		}
		if s, _, err = s.RollBack(); err != nil {
			w.t.Fatal(err)
		}
		s = w.run(s, next)
		w.check(s, next, before)
		return s, next
	case s.Status == stack.CreateFailed || s.Status == stack.UpdateRollbackFailed:
		if s, _, err = s.RollBack(); err != nil {
			w.t.Fatal(err)
		}
		s = w.run(s, of)
		w.check(s, of, nil)
	}
	return s, of
}

// check holds a stack at the end of an operation to what its status says. before is what it had before an update.
func (w *world) check(s stack.State, of template, before map[string][2]any) {
	w.t.Helper()
	w.accounted(s)
	if strings.HasSuffix(string(s.Status), "FAILED") && s.Reason == "" {
		w.t.Fatalf("%s without a reason: %+v", s.Status, s.Resources)
	}
	switch s.Status { //nolint:exhaustive // failures leave what they leave
	case stack.CreateComplete, stack.UpdateComplete:
		w.whole(s, of)
	case stack.RollbackComplete, stack.DeleteComplete:
		if have := w.currents(s); len(have) > 0 {
			w.t.Fatalf("%s, and the stack has %v", s.Status, have)
		}
	case stack.UpdateRollbackComplete:
		if have := w.currents(s); before != nil && !reflect.DeepEqual(have, before) {
			w.t.Fatalf("%s: the stack has %v, and before the update it had %v", s.Status, have, before)
		}
	}
}

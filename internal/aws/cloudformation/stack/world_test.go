// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/aws/cloudformation/stack"
)

// world carries out calls. It fails the test if a call breaks the order, or makes something twice.
type world struct {
	t       *rapid.T
	live    map[string]map[string]any // properties by physical id
	tokens  map[int]string            // physical id by serial
	delays  map[string]int            // how often a call is still pending
	fates   map[string]string         // how a call ends, drawn once
	luck    bool                      // no call fails
	crashes int                       // how often the process may still be killed
	skipped map[string]bool           // physical ids that were retained
}

func newWorld(t *rapid.T) *world {
	return &world{
		t: t, live: map[string]map[string]any{}, tokens: map[int]string{}, delays: map[string]int{}, fates: map[string]string{}, skipped: map[string]bool{},
		crashes: rapid.IntRange(0, 12).Draw(t, "crashes"),
	}
}

// killed reports whether the process ends here.
func (w *world) killed() bool {
	if w.crashes == 0 || rapid.IntRange(0, 3).Draw(w.t, "killed") > 0 {
		return false
	}
	w.crashes--
	return true
}

// fate is how a call ends, the same however often it is made.
func (w *world) fate(call string, of ...string) string {
	if _, ok := w.fates[call]; !ok {
		w.fates[call] = "good"
		if !w.luck && rapid.IntRange(0, 5).Draw(w.t, "fails") == 0 {
			w.fates[call] = rapid.SampledFrom(of).Draw(w.t, "fate")
		}
		w.delays[call] = rapid.IntRange(0, 2).Draw(w.t, "delay")
	}
	return w.fates[call]
}

// waits reports whether a call is still pending.
func (w *world) waits(call string) bool {
	w.delays[call]--
	return w.delays[call] >= 0
}

func (w *world) do(c stack.Call) stack.Outcome {
	w.t.Helper()
	r := c.Resource
	o := stack.Outcome{Serial: r.Serial, Work: c.Work, Result: stack.Succeeded}
	key := fmt.Sprintf("%s %d %v", c.Work, r.Serial, r.Properties)
	switch c.Work {
	case stack.Creating:
		return w.create(r, o, key)
	case stack.Updating, stack.Restoring:
		if w.live[r.PhysicalID] == nil {
			w.t.Fatalf("%s of %s, which is not there", c.Work, r.PhysicalID)
		}
		w.referred(r)
		fate := w.fate(key, "failed", "torn")
		if w.waits(key) {
			o.Result = stack.Pending
			return o
		}
		if fate == "good" || fate == "torn" {
			w.live[r.PhysicalID] = maps.Clone(r.Properties)
		}
		if fate != "good" {
			o.Result, o.Reason = stack.Failed, "it failed"
			delete(w.fates, key) // another attempt may succeed
		}
		return o
	case stack.Deleting:
		return w.remove(r, o, key)
	default:
		w.t.Fatalf("a call without work: %+v", c)
		return o
	}
}

func (w *world) create(r stack.Resource, o stack.Outcome, key string) stack.Outcome {
	fate := w.fate(key, "nothing", "broken")
	if _, made := w.tokens[r.Serial]; !made {
		if fate == "nothing" {
			o.Result, o.Reason = stack.Failed, "it was refused"
			return o
		}
		w.referred(r)
		w.tokens[r.Serial] = fmt.Sprintf("%s-%d", r.LogicalID, r.Serial)
		w.live[w.tokens[r.Serial]] = maps.Clone(r.Properties)
	}
	switch waits := w.waits(key); {
	case waits && w.delays[key] > 0: // not even the id is known
		o.Result = stack.Pending
	case waits:
		o.Result, o.PhysicalID = stack.Pending, w.tokens[r.Serial]
	case fate == "broken":
		o.Result, o.PhysicalID, o.Reason = stack.Failed, w.tokens[r.Serial], "it broke"
	default:
		o.PhysicalID = w.tokens[r.Serial]
	}
	return o
}

func (w *world) remove(r stack.Resource, o stack.Outcome, key string) stack.Outcome {
	for id, properties := range w.live {
		for _, to := range references(properties) {
			if to == r.PhysicalID && !w.skipped[id] {
				w.t.Fatalf("%s is deleted while %s refers to it", r.PhysicalID, id)
			}
		}
	}
	if w.skipped[r.PhysicalID] {
		w.t.Fatalf("%s is deleted, and was retained", r.PhysicalID)
	}
	fate := w.fate(key, "stuck")
	if w.waits(key) {
		o.Result = stack.Pending
		return o
	}
	if fate == "stuck" {
		o.Result, o.Reason = stack.Failed, "it is stuck"
		delete(w.fates, key) // another attempt may succeed
		return o
	}
	delete(w.live, r.PhysicalID)
	return o
}

// referred fails the test if a resource refers to something that is not there.
func (w *world) referred(r stack.Resource) {
	for need, id := range references(r.Properties) {
		if w.live[id.(string)] == nil {
			w.t.Fatalf("%s refers by %s to %s, which is not there", r.LogicalID, need, id)
		}
	}
}

// told checks the events, and remembers what was retained.
func (w *world) told(s stack.State, events []stack.Event) {
	for _, e := range events {
		if e.Status == stack.DeleteSkipped {
			w.skipped[e.PhysicalID] = true
		}
		if e.LogicalID != "" && (e.Status == stack.CreateFailed || e.Status == stack.UpdateFailed || e.Status == stack.DeleteFailed) && e.Reason == "" {
			w.t.Fatalf("%+v has no reason", e)
		}
	}
	seen := map[string]bool{}
	for _, r := range s.Resources {
		if r.Superseded || r.Gone() {
			continue
		}
		if seen[r.LogicalID] {
			w.t.Fatalf("%s stands for two resources: %+v", r.LogicalID, s.Resources)
		}
		seen[r.LogicalID] = true
	}
}

// run brings a stack to the end of its operation, killed now and then.
func (w *world) run(s stack.State, of template) stack.State {
	w.t.Helper()
	for range 400 {
		plan := stack.Next(s, of.judge)
		if again := stack.Next(plan.State, of.judge); len(again.Events) > 0 || !reflect.DeepEqual(again.Calls, plan.Calls) {
			w.t.Fatalf("Next decides anew: events %+v, calls %+v, before %+v", again.Events, again.Calls, plan.Calls)
		}
		if w.killed() {
			continue // before the state was written
		}
		s = plan.State
		w.told(s, plan.Events)
		if !s.Status.InProgress() {
			return s
		}
		if len(plan.Calls) == 0 {
			w.t.Fatalf("%s, and nothing is under way: %+v", s.Status, s.Resources)
		}
		for _, call := range rapid.Permutation(plan.Calls).Draw(w.t, "calls") {
			outcome := w.do(call)
			if w.killed() {
				break // before the outcome was written
			}
			var events []stack.Event
			s, events = stack.Record(s, outcome)
			w.told(s, events)
		}
	}
	w.t.Fatalf("%s after 400 rounds: %+v", s.Status, s.Resources)
	return s
}

// currents are the physical ids and properties of a stack's resources, by logical id.
func (w *world) currents(s stack.State) map[string][2]any {
	all := map[string][2]any{}
	for _, r := range s.Resources {
		if !r.Superseded && !r.Gone() {
			all[r.LogicalID] = [2]any{r.PhysicalID, w.live[r.PhysicalID]}
		}
	}
	return all
}

// accounted fails the test if something is there that neither the stack has nor was retained, or the reverse.
func (w *world) accounted(s stack.State) {
	w.t.Helper()
	want := maps.Clone(w.skipped)
	for _, r := range s.Resources {
		if !r.Gone() && r.PhysicalID != "" {
			want[r.PhysicalID] = true
		}
	}
	have := slices.Sorted(maps.Keys(w.live))
	if listed := slices.Sorted(maps.Keys(want)); !slices.Equal(have, listed) {
		w.t.Fatalf("%s: there are %v, and the stack has, or retained, %v", s.Status, have, listed)
	}
}

// whole fails the test if the stack is not what the template asks for.
func (w *world) whole(s stack.State, of template) {
	w.t.Helper()
	have := w.currents(s)
	if len(have) != len(of.graph) {
		w.t.Fatalf("%s: the stack has %v, and the template %v", s.Status, have, of.graph)
	}
	for id := range of.graph {
		wanted, err := of.judge(s, id, nil)
		if err != nil || !reflect.DeepEqual(have[id][1], wanted.Properties) {
			w.t.Fatalf("%s: %s has %v, and the template asks for %v, %v", s.Status, id, have[id], wanted.Properties, err)
		}
	}
}

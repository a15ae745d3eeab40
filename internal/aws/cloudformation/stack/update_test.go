// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"testing"

	"muster.dev/muster/internal/aws/cloudformation/stack"
)

func TestUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		onFailure stack.OnFailure
		fails     script
		change    func(*template)
		want      string
	}{
		"nothing changes": {stack.Rollback, nil, func(*template) {}, `
the stack UPDATE_COMPLETE_CLEANUP_IN_PROGRESS
the stack UPDATE_COMPLETE`},
		"one in place, one is new, one is not asked for any more": {stack.Rollback, nil, func(of *template) {
			of.asks["A"] = asked{value: 1}
			delete(of.graph, "C")
			of.graph["D"] = stack.Node{Type: "T::D", Needs: []string{"A"}}
		}, `
A UPDATE_IN_PROGRESS
A UPDATE_COMPLETE
D CREATE_IN_PROGRESS
D CREATE_IN_PROGRESS Resource creation Initiated
D CREATE_COMPLETE
the stack UPDATE_COMPLETE_CLEANUP_IN_PROGRESS
C DELETE_IN_PROGRESS
C DELETE_COMPLETE
the stack UPDATE_COMPLETE`},
		"one is replaced, and what refers to it is updated": {stack.Rollback, nil, func(of *template) { of.asks["A"] = asked{key: 1} }, `
A UPDATE_IN_PROGRESS Requested update requires the creation of a new physical resource; hence creating one.
A UPDATE_IN_PROGRESS Resource creation Initiated
A UPDATE_COMPLETE
B UPDATE_IN_PROGRESS
B UPDATE_COMPLETE
the stack UPDATE_COMPLETE_CLEANUP_IN_PROGRESS
A DELETE_IN_PROGRESS
A DELETE_COMPLETE
the stack UPDATE_COMPLETE`},
		"the replaced one is retained": {stack.Rollback, nil, func(of *template) {
			of.asks["A"] = asked{key: 1}
			of.graph["A"] = stack.Node{Type: "T::A", ReplacePolicy: stack.Retain}
		}, `
A UPDATE_IN_PROGRESS Requested update requires the creation of a new physical resource; hence creating one.
A UPDATE_IN_PROGRESS Resource creation Initiated
A UPDATE_COMPLETE
B UPDATE_IN_PROGRESS
B UPDATE_COMPLETE
the stack UPDATE_COMPLETE_CLEANUP_IN_PROGRESS
A DELETE_SKIPPED
the stack UPDATE_COMPLETE`},
		"the replaced one cannot be deleted": {stack.Rollback, script{"Delete A": "in use"}, func(of *template) { of.asks["A"] = asked{key: 1} }, `
A UPDATE_IN_PROGRESS Requested update requires the creation of a new physical resource; hence creating one.
A UPDATE_IN_PROGRESS Resource creation Initiated
A UPDATE_COMPLETE
B UPDATE_IN_PROGRESS
B UPDATE_COMPLETE
the stack UPDATE_COMPLETE_CLEANUP_IN_PROGRESS
A DELETE_IN_PROGRESS
A DELETE_FAILED in use
the stack UPDATE_COMPLETE Update successful. One or more resources could not be deleted.`},
		"one fails": {stack.Rollback, script{"Update B": "denied"}, func(of *template) { of.asks["A"], of.asks["C"] = asked{key: 1}, asked{value: 1} }, `
A UPDATE_IN_PROGRESS Requested update requires the creation of a new physical resource; hence creating one.
C UPDATE_IN_PROGRESS
C UPDATE_COMPLETE
A UPDATE_IN_PROGRESS Resource creation Initiated
A UPDATE_COMPLETE
B UPDATE_IN_PROGRESS
B UPDATE_FAILED denied
the stack UPDATE_ROLLBACK_IN_PROGRESS The following resource(s) failed to update: [B].
A UPDATE_COMPLETE
C UPDATE_IN_PROGRESS
B UPDATE_IN_PROGRESS
C UPDATE_COMPLETE
B UPDATE_COMPLETE
the stack UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS
A DELETE_IN_PROGRESS
A DELETE_COMPLETE
the stack UPDATE_ROLLBACK_COMPLETE`},
		"one fails and all is left": {stack.DoNothing, script{"Create D": "denied"}, func(of *template) { of.graph["D"] = stack.Node{Type: "T::D"} }, `
D CREATE_IN_PROGRESS
D CREATE_FAILED denied
the stack UPDATE_FAILED The following resource(s) failed to create: [D].`},
		"one fails, and another cannot be restored": {stack.Rollback, script{"Create D": "denied", "Restore A": "gone"}, func(of *template) {
			of.asks["A"], of.asks["B"] = asked{value: 1}, asked{value: 1}
			of.graph["D"] = stack.Node{Type: "T::D", Needs: []string{"B"}}
		}, `
A UPDATE_IN_PROGRESS
A UPDATE_COMPLETE
B UPDATE_IN_PROGRESS
B UPDATE_COMPLETE
D CREATE_IN_PROGRESS
D CREATE_FAILED denied
the stack UPDATE_ROLLBACK_IN_PROGRESS The following resource(s) failed to create: [D].
A UPDATE_IN_PROGRESS
A UPDATE_FAILED gone
the stack UPDATE_ROLLBACK_FAILED The following resource(s) failed to update: [A].`},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := created(t, nil)
			of := chain()
			c.change(&of)
			s, events, err := s.Update(of.graph, c.onFailure)
			if err != nil || len(events) != 1 || events[0] != (stack.Event{Status: stack.UpdateInProgress, Reason: "User Initiated"}) {
				t.Fatalf("events %+v, %v", events, err)
			}
			_, told := c.fails.run(t, s, of.judge)
			compare(t, told, c.want)
		})
	}
}

// A call of a rollback knows which update it leads away from, also when the rollback is begun again.
func TestARollbackKnowsWhatWasTried(t *testing.T) {
	was, tried := map[string]any{"Size": 1}, map[string]any{"Size": 2}
	wants := was
	judge := func(_ stack.State, _ string, had *stack.Resource) (stack.Wanted, error) {
		w := stack.Wanted{Properties: wants}
		if had != nil && had.Properties["Size"] != wants["Size"] {
			w.Change = stack.InPlace
		}
		return w, nil
	}
	graph := stack.Graph{"A": {Type: "T"}}
	s, _ := stack.Create(graph, stack.Rollback)
	record := func(o stack.Outcome) {
		t.Helper()
		o.Serial = 1
		s, _ = stack.Record(s, o)
		s = stack.Next(s, judge).State
	}
	s = stack.Next(s, judge).State
	record(stack.Outcome{Work: stack.Creating, Result: stack.Succeeded, PhysicalID: "a"})
	s, _, err := s.Update(graph, stack.Rollback)
	if err != nil {
		t.Fatal(err)
	}
	wants = tried
	s = stack.Next(s, judge).State
	record(stack.Outcome{Work: stack.Updating, Result: stack.Failed, Reason: "torn"})
	restores := func() {
		t.Helper()
		calls := stack.Next(s, judge).Calls
		if len(calls) != 1 || calls[0].Work != stack.Restoring {
			t.Fatalf("%s: %+v", s.Status, calls)
		}
		if r := calls[0].Resource; r.Properties["Size"] != 1 || r.Tried == nil || r.Tried.Properties["Size"] != 2 {
			t.Errorf("%v, from %+v", r.Properties, r.Tried)
		}
	}
	restores()
	record(stack.Outcome{Work: stack.Restoring, Result: stack.Failed, Reason: "stuck"})
	if s, _, err = s.RollBack(); err != nil {
		t.Fatal(err)
	}
	s = stack.Next(s, judge).State
	restores()
	record(stack.Outcome{Work: stack.Restoring, Result: stack.Succeeded})
	if s.Status != stack.UpdateRollbackComplete {
		t.Error(s.Status)
	}
}

// A creation whose resources are all there can be rolled back as one that failed.
func TestFail(t *testing.T) {
	judge := func(stack.State, string, *stack.Resource) (stack.Wanted, error) { return stack.Wanted{}, nil }
	for failure, want := range map[stack.OnFailure]stack.Status{stack.Rollback: stack.RollbackComplete, stack.Delete: stack.DeleteComplete, stack.DoNothing: stack.CreateFailed} {
		s, _ := stack.Create(stack.Graph{"A": {Type: "T", DeletionPolicy: stack.RetainExceptOnCreate}}, failure)
		s = stack.Next(s, judge).State
		s, _ = stack.Record(s, stack.Outcome{Serial: 1, Work: stack.Creating, Result: stack.Succeeded, PhysicalID: "a"})
		if next := stack.Next(s, judge).State; next.Status != stack.CreateComplete {
			t.Fatal(next.Status)
		}
		s, events := s.Fail("no outputs")
		if len(events) != 1 || events[0].Reason != "no outputs" {
			t.Errorf("%+v", events)
		}
		s = stack.Next(s, judge).State
		s, _ = stack.Record(s, stack.Outcome{Serial: 1, Work: stack.Deleting, Result: stack.Succeeded})
		if s = stack.Next(s, judge).State; s.Status != want {
			t.Errorf("%s: %s, want %s", failure, s.Status, want)
		}
	}
}

// An update whose resources are all there can be rolled back: what it changed is changed back, what it replaced is what it was, and
// what it made is deleted.
func TestAnUpdateFails(t *testing.T) {
	for failure, want := range map[stack.OnFailure]string{
		stack.Rollback: `
A UPDATE_COMPLETE
C UPDATE_IN_PROGRESS
B UPDATE_IN_PROGRESS
C UPDATE_COMPLETE
B UPDATE_COMPLETE
the stack UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS
A DELETE_IN_PROGRESS
A DELETE_COMPLETE
the stack UPDATE_ROLLBACK_COMPLETE`,
		stack.DoNothing: "",
	} {
		s, of := created(t, nil)
		of.asks["A"], of.asks["C"] = asked{key: 1}, asked{value: 1}
		s, _, err := s.Update(of.graph, failure)
		if err != nil {
			t.Fatal(err)
		}
		serials := map[string]int{}
		for _, r := range s.Resources {
			serials[r.LogicalID] = r.Serial
		}
		s = untilOver(t, s, of.judge)
		s, events := s.Fail("an export is imported")
		if len(events) != 1 || events[0].Reason != "an export is imported" {
			t.Errorf("%+v", events)
		}
		s, told := script(nil).run(t, s, of.judge)
		if failure == stack.Rollback || len(told) > 0 {
			compare(t, told, want)
		}
		if failure == stack.DoNothing && s.Status != stack.UpdateFailed {
			t.Error(s.Status)
		}
		for id, serial := range serials {
			if r, ok := s.Current(id); failure == stack.Rollback && (!ok || r.Serial != serial) {
				t.Errorf("%s is %+v, and was the resource %d", id, r, serial)
			}
		}
	}
}

// untilOver carries an operation out, and returns the state before the plan that completes it.
func untilOver(t *testing.T, s stack.State, judge stack.Judge) stack.State {
	t.Helper()
	for range 100 {
		plan := stack.Next(s, judge)
		if plan.State.Status != s.Status {
			return s
		}
		s = plan.State
		for _, call := range plan.Calls {
			s, _ = stack.Record(s, stack.Outcome{Serial: call.Resource.Serial, Work: call.Work, Result: stack.Succeeded, PhysicalID: call.Resource.LogicalID + "-new"})
		}
	}
	t.Fatalf("%s does not end", s.Status)
	return s
}

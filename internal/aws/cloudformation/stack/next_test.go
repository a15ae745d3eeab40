// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/cloudformation/stack"
)

// script carries calls out at once, in their order. A call such as "Create B" that is a key fails with the reason. A
// reason that begins with a "?" leaves the creation without an end, with its physical id.
type script map[string]string

func (fails script) run(t *testing.T, s stack.State, judge stack.Judge) (stack.State, []string) {
	t.Helper()
	var told []string
	note := func(events []stack.Event) {
		for _, e := range events {
			id := e.LogicalID
			if id == "" {
				id = "the stack"
			}
			told = append(told, strings.TrimSpace(fmt.Sprintf("%s %s %s", id, e.Status, e.Reason)))
		}
	}
	for range 100 {
		plan := stack.Next(s, judge)
		s = plan.State
		note(plan.Events)
		if !s.Status.InProgress() {
			return s, told
		}
		for _, c := range plan.Calls {
			o := stack.Outcome{Serial: c.Resource.Serial, Work: c.Work, Result: stack.Succeeded}
			reason, bad := fails[string(c.Work)+" "+c.Resource.LogicalID]
			if c.Work == stack.Creating && (!bad || strings.HasPrefix(reason, "?")) {
				o.PhysicalID = fmt.Sprintf("%s-%d", c.Resource.LogicalID, c.Resource.Serial)
			}
			switch {
			case strings.HasPrefix(reason, "?"):
				o.Result = stack.Pending
			case bad:
				o.Result, o.Reason = stack.Failed, reason
			}
			var events []stack.Event
			s, events = stack.Record(s, o)
			note(events)
		}
	}
	t.Fatalf("%s after 100 rounds: %v", s.Status, told)
	return s, nil
}

// chain is A, B that needs A, and C that needs nothing.
func chain() template {
	return template{
		graph: stack.Graph{"A": {Type: "T::A"}, "B": {Type: "T::B", Needs: []string{"A"}}, "C": {Type: "T::C"}},
		asks:  map[string]asked{"A": {}, "B": {}, "C": {}},
	}
}

// created is a complete stack of chain, with what a function changes in the template.
func created(t *testing.T, change func(*template)) (stack.State, template) {
	t.Helper()
	of := chain()
	if change != nil {
		change(&of)
	}
	s, _ := stack.Create(of.graph, stack.Rollback)
	s, _ = script{}.run(t, s, of.judge)
	if s.Status != stack.CreateComplete {
		t.Fatalf("the stack is in %s", s.Status)
	}
	return s, of
}

func compare(t *testing.T, got []string, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(want), "\n"), got); diff != "" {
		t.Errorf("events, - want + got:\n%s", diff)
	}
}

func TestCreate(t *testing.T) {
	for name, c := range map[string]struct {
		onFailure stack.OnFailure
		fails     script
		change    func(*template)
		want      string
	}{
		"all there": {stack.Rollback, nil, nil, `
A CREATE_IN_PROGRESS
C CREATE_IN_PROGRESS
A CREATE_IN_PROGRESS Resource creation Initiated
A CREATE_COMPLETE
C CREATE_IN_PROGRESS Resource creation Initiated
C CREATE_COMPLETE
B CREATE_IN_PROGRESS
B CREATE_IN_PROGRESS Resource creation Initiated
B CREATE_COMPLETE
the stack CREATE_COMPLETE`},
		"one fails": {stack.Rollback, script{"Create B": "denied"}, nil, `
A CREATE_IN_PROGRESS
C CREATE_IN_PROGRESS
A CREATE_IN_PROGRESS Resource creation Initiated
A CREATE_COMPLETE
C CREATE_IN_PROGRESS Resource creation Initiated
C CREATE_COMPLETE
B CREATE_IN_PROGRESS
B CREATE_FAILED denied
the stack ROLLBACK_IN_PROGRESS The following resource(s) failed to create: [B]. Rollback requested by user.
B DELETE_COMPLETE
A DELETE_IN_PROGRESS
C DELETE_IN_PROGRESS
A DELETE_COMPLETE
C DELETE_COMPLETE
the stack ROLLBACK_COMPLETE`},
		"one fails while another is under way": {stack.Rollback, script{"Create A": "denied", "Create C": "?"}, nil, `
A CREATE_IN_PROGRESS
C CREATE_IN_PROGRESS
A CREATE_FAILED denied
C CREATE_IN_PROGRESS Resource creation Initiated
C CREATE_FAILED Resource creation cancelled
the stack ROLLBACK_IN_PROGRESS The following resource(s) failed to create: [A, C]. Rollback requested by user.
A DELETE_COMPLETE
C DELETE_IN_PROGRESS
C DELETE_COMPLETE
the stack ROLLBACK_COMPLETE`},
		"one fails and all is left": {stack.DoNothing, script{"Create B": "denied"}, nil, `
A CREATE_IN_PROGRESS
C CREATE_IN_PROGRESS
A CREATE_IN_PROGRESS Resource creation Initiated
A CREATE_COMPLETE
C CREATE_IN_PROGRESS Resource creation Initiated
C CREATE_COMPLETE
B CREATE_IN_PROGRESS
B CREATE_FAILED denied
the stack CREATE_FAILED The following resource(s) failed to create: [B].`},
		"one fails and the stack is deleted": {stack.Delete, script{"Create A": "denied"}, func(of *template) { delete(of.graph, "C") }, `
A CREATE_IN_PROGRESS
A CREATE_FAILED denied
the stack DELETE_IN_PROGRESS The following resource(s) failed to create: [A]. Delete requested by user.
A DELETE_COMPLETE
the stack DELETE_COMPLETE`},
		"one cannot be resolved, and one cannot be deleted": {stack.Rollback, script{"Delete A": "in use"}, func(of *template) { delete(of.graph, "C"); of.asks["B"] = asked{unresolved: true} }, `
A CREATE_IN_PROGRESS
A CREATE_IN_PROGRESS Resource creation Initiated
A CREATE_COMPLETE
B CREATE_IN_PROGRESS
B CREATE_FAILED no attribute of that name
the stack ROLLBACK_IN_PROGRESS The following resource(s) failed to create: [B]. Rollback requested by user.
B DELETE_COMPLETE
A DELETE_IN_PROGRESS
A DELETE_FAILED in use
the stack ROLLBACK_FAILED The following resource(s) failed to delete: [A].`},
		"what is retained": {stack.Rollback, script{"Create C": "denied"}, func(of *template) {
			of.graph["A"] = stack.Node{Type: "T::A", DeletionPolicy: stack.Retain}
			of.graph["B"] = stack.Node{Type: "T::B", DeletionPolicy: stack.RetainExceptOnCreate}
		}, `
A CREATE_IN_PROGRESS
B CREATE_IN_PROGRESS
C CREATE_IN_PROGRESS
A CREATE_IN_PROGRESS Resource creation Initiated
A CREATE_COMPLETE
B CREATE_IN_PROGRESS Resource creation Initiated
B CREATE_COMPLETE
C CREATE_FAILED denied
the stack ROLLBACK_IN_PROGRESS The following resource(s) failed to create: [C]. Rollback requested by user.
A DELETE_SKIPPED
C DELETE_COMPLETE
B DELETE_IN_PROGRESS
B DELETE_COMPLETE
the stack ROLLBACK_COMPLETE`},
	} {
		t.Run(name, func(t *testing.T) {
			of := chain()
			if c.change != nil {
				c.change(&of)
			}
			s, events := stack.Create(of.graph, c.onFailure)
			if len(events) != 1 || events[0] != (stack.Event{Status: stack.CreateInProgress, Reason: "User Initiated"}) {
				t.Errorf("the first events are %+v", events)
			}
			_, told := c.fails.run(t, s, of.judge)
			compare(t, told, c.want)
		})
	}
}

func TestDelete(t *testing.T) {
	s, of := created(t, func(of *template) {
		of.graph["C"] = stack.Node{Type: "T::C", DeletionPolicy: stack.RetainExceptOnCreate}
	})
	if _, _, err := s.Delete([]string{"A"}); err == nil {
		t.Error("resources of a complete stack are retained by their names")
	}
	s, _, err := s.Delete(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, told := script{"Delete B": "in use"}.run(t, s, of.judge)
	compare(t, told, `
C DELETE_SKIPPED
B DELETE_IN_PROGRESS
B DELETE_FAILED in use
the stack DELETE_FAILED The following resource(s) failed to delete: [B].`)
	if s, _, err = s.Delete([]string{"B"}); err != nil {
		t.Fatal(err)
	}
	s, told = script{}.run(t, s, of.judge)
	compare(t, told, `
B DELETE_SKIPPED
A DELETE_IN_PROGRESS
A DELETE_COMPLETE
the stack DELETE_COMPLETE`)
	if again, events, err := s.Delete(nil); err != nil || len(events) > 0 || again.Status != stack.DeleteComplete {
		t.Errorf("a stack that is deleted is deleted again: %v, %v", events, err)
	}
}

// A resource whose update or restoration failed may refer to what it referred to before, and to what it was to refer to: it
// is deleted before both.
func TestDeleteAfterFailedUpdates(t *testing.T) {
	for name, c := range map[string]struct {
		onFailure stack.OnFailure
		fails     script
		ends      stack.Status
	}{
		"an update":     {stack.DoNothing, script{"Update B": "denied"}, stack.UpdateFailed},
		"a restoration": {stack.Rollback, script{"Update C": "denied", "Restore B": "denied"}, stack.UpdateRollbackFailed},
	} {
		t.Run(name, func(t *testing.T) {
			change := func(of *template) { of.graph["C"] = stack.Node{Type: "T::C", Needs: []string{"B"}} }
			s, _ := created(t, change)
			of := chain()
			change(&of)
			of.asks["A"], of.asks["C"] = asked{key: 1}, asked{value: 1}
			s, _, err := s.Update(of.graph, c.onFailure)
			if err != nil {
				t.Fatal(err)
			}
			if s, _ = c.fails.run(t, s, of.judge); s.Status != c.ends {
				t.Fatalf("the update ends in %s", s.Status)
			}
			if s, _, err = s.Delete(nil); err != nil {
				t.Fatal(err)
			}
			_, told := script{}.run(t, s, of.judge)
			if first := slices.Index(told, "A DELETE_IN_PROGRESS"); first < 0 || first < slices.Index(told, "B DELETE_COMPLETE") {
				t.Errorf("A is deleted before B: %q", told)
			}
		})
	}
}

// A creation whose answer is lost is asked for again before the resource is deleted.
func TestDeleteWhileCreating(t *testing.T) {
	of := template{graph: stack.Graph{"A": {Type: "T::A"}}, asks: map[string]asked{"A": {}}}
	s, _ := stack.Create(of.graph, stack.Rollback)
	s = stack.Next(s, of.judge).State
	s, _, err := s.Delete(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, told := script{}.run(t, s, of.judge)
	compare(t, told, `
A CREATE_IN_PROGRESS Resource creation Initiated
A CREATE_COMPLETE
A DELETE_IN_PROGRESS
A DELETE_COMPLETE
the stack DELETE_COMPLETE`)
}

func TestRollBack(t *testing.T) {
	of := chain()
	s, _ := stack.Create(of.graph, stack.DoNothing)
	s, _ = script{"Create B": "denied"}.run(t, s, of.judge)
	s, _, err := s.RollBack()
	if err != nil {
		t.Fatal(err)
	}
	if s, _ = (script{}).run(t, s, of.judge); s.Status != stack.RollbackComplete {
		t.Errorf("the stack is in %s", s.Status)
	}

	s, _ = created(t, nil)
	of.asks["A"], of.asks["B"] = asked{value: 1}, asked{value: 1}
	if s, _, err = s.Update(of.graph, stack.Rollback); err != nil {
		t.Fatal(err)
	}
	s, _ = script{"Update B": "denied", "Restore A": "gone"}.run(t, s, of.judge)
	if s, _, err = s.RollBack(); err != nil {
		t.Fatal(err)
	}
	s, told := script{}.run(t, s, of.judge)
	compare(t, told, `
A UPDATE_IN_PROGRESS
A UPDATE_COMPLETE
B UPDATE_IN_PROGRESS
B UPDATE_COMPLETE
the stack UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS
the stack UPDATE_ROLLBACK_COMPLETE`)
	if _, _, err = s.RollBack(); err == nil {
		t.Error("a stack that was rolled back is rolled back again")
	}
}

func TestRefusals(t *testing.T) {
	s, of := created(t, nil)
	other := chain()
	other.graph["A"] = stack.Node{Type: "T::Other"}
	if _, _, err := s.Update(other.graph, stack.Rollback); err == nil || !strings.Contains(err.Error(), "of the following resources: [A]") {
		t.Errorf("the type of A changes: %v", err)
	}
	s, _, err := s.Update(of.graph, stack.Rollback)
	if err != nil {
		t.Fatal(err)
	}
	var state *stack.StatusError
	if _, _, err := s.Delete(nil); !errors.As(err, &state) || err.Error() != "the stack is in UPDATE_IN_PROGRESS state and can not be deleted" {
		t.Errorf("a stack that is being updated is deleted: %v", err)
	}
	if _, _, err := s.Update(of.graph, stack.Rollback); !errors.As(err, &state) {
		t.Errorf("a stack that is being updated is updated: %v", err)
	}
	if _, _, err := s.RollBack(); !errors.As(err, &state) {
		t.Errorf("a stack that is being updated is rolled back: %v", err)
	}
}

// An outcome that comes late is about something else than what is being done, and changes nothing.
func TestLateOutcomes(t *testing.T) {
	s, of := created(t, nil)
	for _, o := range []stack.Outcome{{Serial: 1, Work: stack.Creating, Result: stack.Failed, Reason: "late"}, {Serial: 99, Work: stack.Deleting}, {Serial: 1}} {
		if again, events := stack.Record(s, o); len(events) > 0 || again.Resources[0].Status != stack.CreateComplete {
			t.Errorf("%+v is recorded: %v", o, events)
		}
	}
	s, _, _ = s.Delete(nil)
	if plan := stack.Next(s, of.judge); len(plan.Calls) != 2 || plan.Calls[0].Resource.LogicalID != "C" || plan.Calls[1].Resource.LogicalID != "B" {
		t.Errorf("B and C are deleted first: %+v", plan.Calls)
	}
}

func TestToken(t *testing.T) {
	var tokens []string
	for _, id := range []string{"arn:1", "arn:2"} {
		for serial := range 3 {
			r := stack.Resource{Serial: serial}
			if token := r.Token(id); len(token) != 32 || token != r.Token(id) {
				t.Errorf("the token is %q", token)
			}
			tokens = append(tokens, r.Token(id))
		}
	}
	slices.Sort(tokens)
	if len(slices.Compact(tokens)) != 6 {
		t.Errorf("two resources have one token: %v", tokens)
	}
}

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

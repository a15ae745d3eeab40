// SPDX-License-Identifier: Apache-2.0

package joinlog

import (
	"fmt"
	"slices"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

// byRole is a node's request to register itself.
func byRole(user, groups, extra string) []byte {
	return []byte(fmt.Sprintf(`{"kind":"Event","stage":"ResponseComplete","verb":"create","user":{"username":%q,"groups":[%q],"extra":%s},`+
		`"objectRef":{"resource":"nodes","name":"n"},"responseStatus":{"code":201},`+
		`"requestReceivedTimestamp":"2026-11-21T12:00:00.000000Z","stageTimestamp":"2026-11-21T12:00:00.010000Z"}`, user, groups, extra))
}

func TestStepsOfAMachineThatJoinsByRole(t *testing.T) {
	const id = "i-0123456789abcdef0"
	for _, test := range []struct {
		name, user, groups, extra string
		want                      []v1alpha1.JoinStep
	}{
		{"its session is named after it", "system:node:n", "system:nodes", `{"sessionName":["` + id + `"]}`, []v1alpha1.JoinStep{v1alpha1.StepAPIReached, v1alpha1.StepNodeRegistered}},
		{"no session", "system:node:n", "system:nodes", `{}`, nil},
		{"two sessions", "system:node:n", "system:nodes", `{"sessionName":["` + id + `","i-1"]}`, nil},
		{"a person whose session has such a name", "alice", "devs", `{"sessionName":["` + id + `"]}`, nil},
		{"a node's name without its group", "system:node:n", "devs", `{"sessionName":["` + id + `"]}`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			tracker := NewTracker()
			tracker.Line(byRole(test.user, test.groups, test.extra))
			var got []v1alpha1.JoinStep
			for _, record := range tracker.Records(id) {
				got = append(got, record.Step)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("steps %v, want %v", got, test.want)
			}
			if test.want != nil && Next(tracker.Records(id), true) != v1alpha1.StepServingCSRCreated {
				t.Errorf("its next step is %s", Next(tracker.Records(id), true))
			}
		})
	}
}

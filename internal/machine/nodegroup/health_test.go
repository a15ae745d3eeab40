// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"testing"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/runner"
)

// An API server that is not Ready yet is not asked: it refuses the service, with a 403 that says nothing to anybody.
func TestAnswersRequests(t *testing.T) {
	t.Parallel()
	for state, want := range map[runner.State]bool{runner.Ready: true, runner.Starting: false, runner.Unready: false} {
		components := []runner.Status{{Name: component.Etcd, State: runner.Ready}, {Name: component.APIServer, State: state}}
		if got := answersRequests(components); got != want {
			t.Errorf("an API server that is %s is asked: %v", state, got)
		}
	}
}

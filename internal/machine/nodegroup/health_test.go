// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"testing"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/supervise"
)

// An API server that is not Ready yet is not asked: it refuses the service, with a 403 that says nothing to anybody.
func TestAnswersRequests(t *testing.T) {
	t.Parallel()
	for state, want := range map[supervise.State]bool{supervise.Ready: true, supervise.Starting: false, supervise.Unready: false} {
		components := []supervise.Status{{Name: component.Etcd, State: supervise.Ready}, {Name: component.APIServer, State: state}}
		if got := answersRequests(components); got != want {
			t.Errorf("an API server that is %s is asked: %v", state, got)
		}
	}
}

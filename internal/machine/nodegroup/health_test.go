// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
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

// An API server that is on its way beside another one keeps no cluster from being Ready, and the only one does.
func TestNeeded(t *testing.T) {
	t.Parallel()
	is := func(slot int, state runner.State) runner.Status {
		return runner.Status{Name: component.APIServerName(slot), State: state}
	}
	etcd := runner.Status{Name: component.Etcd, State: runner.Unready}
	for name, tc := range map[string]struct{ components, want []runner.Status }{
		"one that starts": {[]runner.Status{etcd, is(0, runner.Starting)}, []runner.Status{etcd, is(0, runner.Starting)}},
		"a newcomer":      {[]runner.Status{etcd, is(0, runner.Ready), is(1, runner.Backoff)}, []runner.Status{etcd, is(0, runner.Ready)}},
		"the other slot":  {[]runner.Status{is(0, runner.Starting), is(1, runner.Ready), etcd}, []runner.Status{is(1, runner.Ready), etcd}},
		"none, as the one that serves does not answer": {[]runner.Status{is(0, runner.Unready), is(1, runner.Starting)}, []runner.Status{is(0, runner.Unready), is(1, runner.Starting)}},
	} {
		if got := needed(tc.components); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %+v", name, got)
		}
		if got, want := answersRequests(tc.components), !strings.HasPrefix(name, "one") && !strings.HasPrefix(name, "none"); got != want {
			t.Errorf("%s: it is asked: %v", name, got)
		}
	}
}

// Nothing is said of a generation that the service has not been told of.
func TestGenerationOf(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		said, follows, want int64
	}{
		"a cluster that nothing was said of": {0, 0, 7}, "the service has just started": {6, 0, 6}, "it follows the one before": {6, 6, 6}, "it follows the last": {6, 7, 7},
	} {
		object := &v1alpha1.Cluster{}
		object.Generation = 7
		if tc.said != 0 {
			setReady(&object.Status.Conditions, time.Unix(0, 0), tc.said, metav1.ConditionTrue, "Healthy", "")
		}
		if got := generationOf(object, Health{Generation: tc.follows}); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

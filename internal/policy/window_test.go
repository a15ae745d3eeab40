// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/policy"
	"muster.dev/muster/internal/trace"
)

func TestBootstrapWindow(t *testing.T) {
	made := func(ago time.Duration) func(*world) {
		return func(w *world) {
			w.policy.Bootstrap.Window = 2 * time.Hour
			w.facts.NodeMachine.Value.Created = now.Add(-ago)
		}
	}
	again := func(w *world) {
		w.object.Spec.Groups = []string{"system:bootstrappers", "system:bootstrappers:muster:rejoin:ip-192-168-64-11:muster:internal"}
	}
	run(t, []namedCase{
		{"no window", bootstrap(t), nil, trace.Approve, ""},
		{"at once", bootstrap(t), made(0), trace.Approve, ""},
		{"at the end of it", bootstrap(t), made(2 * time.Hour), trace.Approve, ""},
		{"after it", bootstrap(t), made(2*time.Hour + time.Second), trace.Wait, "bootstrap-window"},
		{"by clocks that differ", bootstrap(t), made(-time.Minute), trace.Approve, ""},
		{"before there was a machine", bootstrap(t), made(-time.Minute - time.Second), trace.Wait, "bootstrap-window"},
		{"when it was made is not known", bootstrap(t), all(made(0), func(w *world) { w.facts.NodeMachine.Value.Created = time.Time{} }), trace.Wait, "bootstrap-window"},
		{"when it was asked is not known", bootstrap(t), all(made(0), func(w *world) { w.object.CreationTimestamp = metav1.Time{} }), trace.Wait, "bootstrap-window"},
		{"the machine is not known", bootstrap(t), all(made(0), func(w *world) { w.facts.NodeMachine = policy.DontKnow[policy.Machine]("test", "broken") }), trace.Wait, "machine"},
		{"a person approved it", bootstrap(t), all(made(3*time.Hour), (*world).approvedAlready), trace.Approve, ""},
		{"a token to join again", bootstrap(t), all(made(3*time.Hour), again), trace.Approve, ""},
		{"a node renews", renewal(t), made(300 * time.Hour), trace.Approve, ""},
		{"a node's serving certificate", serving(t, nodeA), made(300 * time.Hour), trace.Approve, ""},
	})
}

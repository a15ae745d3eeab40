// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/platform/decision"
)

func TestBootstrapWindow(t *testing.T) {
	made := func(ago time.Duration) func(*world) {
		return func(w *world) {
			w.policy.Bootstrap.Window = 2 * time.Hour
			w.facts.NodeMachine.Value.Created = now.Add(-ago)
		}
	}
	again := func(w *world) {
		w.object.Spec.Groups = []string{"system:bootstrappers", "system:bootstrappers:muster:rejoin:ip-192-168-64-11:ec2:internal"}
	}
	run(t, []namedCase{
		{"no window", bootstrap(t), nil, decision.Approve, ""},
		{"at once", bootstrap(t), made(0), decision.Approve, ""},
		{"at the end of it", bootstrap(t), made(2 * time.Hour), decision.Approve, ""},
		{"after it", bootstrap(t), made(2*time.Hour + time.Second), decision.Wait, "bootstrap-window"},
		{"by clocks that differ", bootstrap(t), made(-time.Minute), decision.Approve, ""},
		{"before there was a machine", bootstrap(t), made(-time.Minute - time.Second), decision.Wait, "bootstrap-window"},
		{"when it was made is not known", bootstrap(t), all(made(0), func(w *world) { w.facts.NodeMachine.Value.Created = time.Time{} }), decision.Wait, "bootstrap-window"},
		{"when it was asked is not known", bootstrap(t), all(made(0), func(w *world) { w.object.CreationTimestamp = metav1.Time{} }), decision.Wait, "bootstrap-window"},
		{"the machine is not known", bootstrap(t), all(made(0), func(w *world) { w.facts.NodeMachine = policy.DontKnow[policy.Machine]("test", "broken") }), decision.Wait, "machine"},
		{"a person approved it", bootstrap(t), all(made(3*time.Hour), (*world).approvedAlready), decision.Approve, ""},
		{"a token to join again", bootstrap(t), all(made(3*time.Hour), again), decision.Approve, ""},
		{"a node renews", renewal(t), made(300 * time.Hour), decision.Approve, ""},
		{"a node's serving certificate", serving(t, nodeA), made(300 * time.Hour), decision.Approve, ""},
	})
}

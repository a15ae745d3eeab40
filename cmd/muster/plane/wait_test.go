// SPDX-License-Identifier: Apache-2.0

package plane

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

func TestKeptFrom(t *testing.T) {
	for _, test := range []struct {
		reason, status, want string
	}{
		{"NodeReady", "True", ""},
		{"Joining", "False", ""},
		{"Terminating", "False", ""},
		{"Late", "False", ""},
		{"Refused", "False", "; because"},
		{"Draining", "False", "; because"},
	} {
		m := &v1alpha1.Machine{Status: v1alpha1.MachineStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionStatus(test.status), Reason: test.reason, Message: "because"},
		}}}
		if got := KeptFrom(m); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
	if got := KeptFrom(&v1alpha1.Machine{}); got != "" {
		t.Errorf("of a machine that nothing is known of: %q", got)
	}
}

// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// condition is one of a type, with the message "because".
func condition(kind, status, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: "because"}
}

func TestKeptFrom(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ reason, status, want string }{
		{"NodeReady", "True", ""},
		{"Joining", "False", ""},
		{"NodeNotReady", "False", ""},
		{"Terminating", "False", ""},
		{"Late", "False", ""},
		{"Refused", "False", "because"},
		{"Draining", "False", "because"},
	} {
		m := &v1alpha1.Machine{Status: v1alpha1.MachineStatus{Conditions: []metav1.Condition{condition(v1alpha1.ConditionReady, test.status, test.reason)}}}
		if got := KeptFrom(m); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
	if got := KeptFrom(&v1alpha1.Machine{}); got != "" {
		t.Errorf("of a machine that nothing is known of: %q", got)
	}
}

func TestObstacle(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason   string
		observed int64
		want     string
	}{
		{"Ready", 1, ""},
		{"Scaling", 1, ""},
		{"Joining", 1, ""},
		{"Deleting", 1, ""},
		{"IamNodeRoleNotFound", 1, "because"},
		{"NodeCreationFailure", 1, "because"},
		{"IamNodeRoleNotFound", 0, ""}, // it was said of another spec
	} {
		ready := condition(v1alpha1.ConditionReady, "False", test.reason)
		ready.ObservedGeneration = test.observed
		g := &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Status: v1alpha1.NodeGroupStatus{Conditions: []metav1.Condition{ready}}}
		if got := Obstacle(g); got != test.want {
			t.Errorf("%s, of generation %d: %q, want %q", test.reason, test.observed, got, test.want)
		}
	}
	if got := Obstacle(&v1alpha1.NodeGroup{}); got != "" {
		t.Errorf("of a group that nothing is known of: %q", got)
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	identity := condition(v1alpha1.ConditionIdentity, "False", "NotMapped")
	identity.Message = "not let in"
	unknown := identity
	unknown.Status = metav1.ConditionUnknown
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		want       string
	}{
		"nothing is known":                {nil, ""},
		"it is Ready":                     {[]metav1.Condition{condition(v1alpha1.ConditionReady, "True", "NodeReady")}, ""},
		"it is not Ready":                 {[]metav1.Condition{condition(v1alpha1.ConditionReady, "False", "Late")}, "because"},
		"it is Ready, and not let in":     {[]metav1.Condition{condition(v1alpha1.ConditionReady, "True", "NodeReady"), identity}, "not let in"},
		"it is neither":                   {[]metav1.Condition{condition(v1alpha1.ConditionReady, "False", "Late"), identity}, "not let in"},
		"the disk is full":                {[]metav1.Condition{condition(v1alpha1.ConditionReady, "True", "Available"), condition(v1alpha1.ConditionDiskPressure, "True", "HostHasDiskPressure")}, "because"},
		"the disk is not":                 {[]metav1.Condition{condition(v1alpha1.ConditionReady, "True", "Available"), condition(v1alpha1.ConditionDiskPressure, "False", "HostHasNoDiskPressure")}, ""},
		"whether it is let in, who knows": {[]metav1.Condition{condition(v1alpha1.ConditionReady, "True", "NodeReady"), unknown}, ""},
	} {
		if got := Message(test.conditions); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestWord(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for want, test := range map[string]struct {
		deleted    *metav1.Time
		conditions []metav1.Condition
	}{
		"Pending":  {nil, nil},
		"Ready":    {nil, []metav1.Condition{condition(v1alpha1.ConditionReady, "True", "Healthy")}},
		"Starting": {nil, []metav1.Condition{condition(v1alpha1.ConditionReady, "False", "Starting")}},
		"NotReady": {nil, []metav1.Condition{condition(v1alpha1.ConditionReady, "False", "")}},
		"Deleting": {&now, []metav1.Condition{condition(v1alpha1.ConditionReady, "True", "Healthy")}},
	} {
		if got := Word(&metav1.ObjectMeta{DeletionTimestamp: test.deleted}, test.conditions); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestShorten(t *testing.T) {
	t.Parallel()
	for _, as := range []int{0, 1, 1024 - 3, 1024 - 2, 1024 - 1, 1024, 1025, 4096} {
		message := strings.Repeat("a", as)
		if got := Shorten(message); len(got) > 1024 || as <= 1024 && got != message || as > 1024 && got != message[:1021]+"..." {
			t.Errorf("of %d bytes: %q", as, got)
		}
		if got := Shorten(message + strings.Repeat("€", 1000)); !utf8.ValidString(got) || len(got) > 1024 || len(got) < 1022 || !strings.HasSuffix(got, "...") {
			t.Errorf("of %d bytes and euros: %d bytes, %q", as, len(got), got)
		}
	}
}

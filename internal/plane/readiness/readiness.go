// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/network/clusternetwork"
)

// Reasons of the condition Ready that need nobody's help: they pass by themselves.
const (
	ReasonReady        = "Ready"        // of a node group that has its size
	ReasonScaling      = "Scaling"      // of a node group: machines are launched or removed
	ReasonJoining      = "Joining"      // of a node group or a machine on its way in
	ReasonDeleting     = "Deleting"     // of a node group
	ReasonNodeNotReady = "NodeNotReady" // of a machine: its Node is registered, and not Ready
	ReasonLate         = "Late"         // of a machine that takes long to join
	ReasonQueued       = "Queued"       // of a machine that waits until others have booted
	ReasonTerminating  = "Terminating"  // of a machine
)

// maxMessage is how long a message may be in bytes: the API server takes no more as the note of an Event.
const maxMessage = 1024

// Shorten keeps a message within what conditions and Events hold, without a half of a character at its end.
func Shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage-3], "") + "..."
}

// Message returns why an object is not Ready, is not let in any more though it still is, or has a disk that is nearly
// full; "" if none is so.
func Message(conditions []metav1.Condition) string {
	if identity := meta.FindStatusCondition(conditions, v1alpha1.ConditionIdentity); identity != nil && identity.Status == metav1.ConditionFalse {
		return identity.Message
	}
	if ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
		return ready.Message
	}
	if pressure := meta.FindStatusCondition(conditions, v1alpha1.ConditionDiskPressure); pressure != nil && pressure.Status == metav1.ConditionTrue {
		return pressure.Message
	}
	return ""
}

// Word sums up an object in a word: Ready, Pending, Deleting, or the reason why it is not Ready.
func Word(object metav1.Object, conditions []metav1.Condition) string {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	switch {
	case object.GetDeletionTimestamp() != nil:
		return "Deleting"
	case ready == nil:
		return "Pending"
	case ready.Status == metav1.ConditionTrue:
		return "Ready"
	}
	return cmp.Or(ready.Reason, "NotReady")
}

// Reasons for which the service does not start a cluster at all, beside those of its network (package clusternetwork).
const (
	ReasonWrongName          = "WrongName"
	ReasonInvalidSpec        = "InvalidSpec"
	ReasonInsufficientMemory = "InsufficientMemory"
	ReasonUnsupportedVersion = "UnsupportedVersion"
)

// LastNode is what the condition Drained says of a machine whose pods have nowhere to go.
const LastNode = "it is the last node and no node group wants a machine, so no disruption budget is waited for"

// AboutLastNode says which of some machines is being deleted without waiting for disruption budgets; "" if none is.
func AboutLastNode(machines []v1alpha1.Machine) string {
	for i := range machines {
		drained := meta.FindStatusCondition(machines[i].Status.Conditions, v1alpha1.ConditionDrained)
		if drained != nil && strings.Contains(drained.Message, LastNode) {
			return machines[i].Name + ": " + LastNode
		}
	}
	return ""
}

// Reasons of a cluster that is not Ready, and should be.
const (
	ReasonCreating  = "Creating"  // it starts, and mostly was never Ready
	ReasonUnhealthy = "Unhealthy" // it was Ready before
)

// ReasonChangeRefused is that of a cluster that runs on as it was, since what it was changed to cannot be.
const ReasonChangeRefused = "ChangeRefused"

// refusals are all for which it is not started. Waiting does not help.
func refusals() []string {
	return append(clusternetwork.Reasons(), ReasonWrongName, ReasonInvalidSpec, ReasonInsufficientMemory, ReasonUnsupportedVersion)
}

// Refusal returns why a cluster is not started, or "".
func Refusal(c *v1alpha1.Cluster) string {
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.ObservedGeneration != c.Generation || !slices.Contains(refusals(), ready.Reason) {
		return ""
	}
	return cmp.Or(ready.Message, ready.Reason)
}

// Obstacle returns what keeps a group from its size other than time, such as a missing role or user data that cannot be
// read; or "".
func Obstacle(g *v1alpha1.NodeGroup) string {
	ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
	passes := []string{ReasonReady, ReasonScaling, ReasonJoining, ReasonDeleting}
	if ready == nil || ready.ObservedGeneration != g.Generation || slices.Contains(passes, ready.Reason) {
		return ""
	}
	return ready.Message
}

// KeptFrom returns what keeps a machine from becoming Ready, or from going, other than time, such as a refusal; or "".
func KeptFrom(m *v1alpha1.Machine) string {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	passes := []string{ReasonJoining, ReasonNodeNotReady, ReasonLate, ReasonQueued, ReasonTerminating}
	if ready == nil || ready.Status == metav1.ConditionTrue || slices.Contains(passes, ready.Reason) {
		return ""
	}
	return ready.Message
}

// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
)

// wait is how long a condition has to be bad before its machine is repaired; false if nothing is repaired for it.
func wait(condition string) (time.Duration, bool) {
	switch {
	case condition == v1alpha1.NodeAcceleratedHardwareReady:
		return WaitAccelerated, true
	case slices.Contains(v1alpha1.RepairConditions(), condition):
		return Wait, true
	}
	return 0, false
}

// longestReason is how much of a condition's reason counts, in bytes: that of an override is no longer. A Node may say any number of
// them, and what is kept of it must fit into the status of its group.
const longestReason = 256

// Bad returns the conditions of a Node for which machines are repaired, and which are bad: Ready if it is not True, and
// the monitor's if they are False. A monitor that does not know is no reason to repair. Times are the Node's: it may say
// none, or any.
func Bad(node *corev1.Node) []Condition {
	var bad []Condition
	for _, c := range node.Status.Conditions {
		if _, repaired := wait(string(c.Type)); !repaired || c.Status == corev1.ConditionTrue || c.Status != corev1.ConditionFalse && c.Type != corev1.NodeReady {
			continue
		}
		bad = append(bad, Condition{Type: string(c.Type), Reason: short(c.Reason), Message: c.Message, Since: c.LastTransitionTime.Time})
	}
	return bad
}

// due is when a repair is due whose wait began at a moment.
func (p Policy) due(since time.Time, wait time.Duration) time.Time {
	over := since.Add(wait)
	if least := p.Began.Add(min(wait, BootPatience)); over.Before(least) {
		return least
	}
	return over
}

func short(reason string) string {
	if len(reason) <= longestReason {
		return reason
	}
	return strings.ToValidUTF8(reason[:longestReason], "")
}

// find returns for what a machine is repaired first, and when; false if its Node is healthy, or has only what the node
// group leaves alone.
func (p Policy) find(m Machine, now time.Time) (Finding, bool) {
	conditions := m.Conditions
	if late := m.Launched.Add(JoinPatience); !m.Joined {
		if m.Launched.IsZero() || now.Before(late) {
			return Finding{}, false // it is on its way in
		}
		conditions = []Condition{{Type: v1alpha1.NodeReady, Reason: ReasonNeverJoined, Message: fmt.Sprintf("the machine is not a node %v after its launch", JoinPatience), Since: late}}
	}
	var found []Finding
	for _, c := range conditions {
		after, repaired := wait(c.Type)
		action := v1alpha1.RepairReplace
		if o, ok := p.override(c); ok {
			after, action = time.Duration(o.MinRepairWaitTimeMins)*time.Minute, o.RepairAction
		}
		if repaired && action != v1alpha1.RepairNoAction {
			found = append(found, Finding{Machine: m.Name, Condition: c, Action: action, Due: p.due(c.Since, after)})
		}
	}
	if len(found) == 0 {
		return Finding{}, false
	}
	return slices.MinFunc(found, func(a, b Finding) int {
		return cmp.Or(a.Due.Compare(b.Due), -cmp.Compare(a.Action, b.Action), cmp.Compare(a.Type, b.Type))
	}), true
}

// override returns what the node group says about the reason of a condition.
func (p Policy) override(c Condition) (v1alpha1.NodeRepairOverride, bool) {
	if p.Config == nil {
		return v1alpha1.NodeRepairOverride{}, false
	}
	i := slices.IndexFunc(p.Config.Overrides, func(o v1alpha1.NodeRepairOverride) bool {
		return o.NodeMonitoringCondition == c.Type && o.NodeUnhealthyReason == c.Reason
	})
	if i < 0 {
		return v1alpha1.NodeRepairOverride{}, false
	}
	return p.Config.Overrides[i], true
}

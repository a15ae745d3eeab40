// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
)

// stepsEvery is how often the steps of a machine that joins are written when nothing else is news. A join that takes a
// second has nine of them, which come in three bursts.
const stepsEvery = 2 * time.Second

// reasonNodeReady is that of a machine whose Node is Ready.
const reasonNodeReady = "NodeReady"

// onWay are the reasons of a machine that does what it should, one step after the other.
var onWay = []string{readiness.ReasonJoining, readiness.ReasonNodeNotReady, reasonNodeReady}

// gather is how long news of a machine may wait for more of them, or 0. Nothing waits but the steps of its join, and that
// its token is gone, which a step is the reason for. Nothing follows when a join is whole: that is written at once, since
// `muster up` waits for it.
func (m *memory) gather(before, after *v1alpha1.Machine, now time.Time) time.Duration {
	if !stepsAlone(&before.Status, &after.Status) || joinIsWhole(&after.Status) {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return min(max(m.writtenAt[after.Name].Add(stepsEvery).Sub(now), 0), stepsEvery)
}

// joinIsWhole reports whether a machine has taken the last steps of its join, which come in either order.
func joinIsWhole(s *v1alpha1.MachineStatus) bool {
	return s.Phase == v1alpha1.MachineReady && slices.ContainsFunc(s.Join, func(r v1alpha1.JoinRecord) bool { return r.Step == v1alpha1.StepServingCSRIssued })
}

// stepsAlone reports whether a machine went on with its join, and nothing else is news.
func stepsAlone(before, after *v1alpha1.MachineStatus) bool {
	was, is := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady)
	if was == nil || is == nil || !slices.Contains(onWay, was.Reason) || !slices.Contains(onWay, is.Reason) {
		return false
	}
	rest := after.DeepCopy()
	rest.Join = before.Join
	if rest.BootstrapTokenID == "" {
		rest.BootstrapTokenID = before.BootstrapTokenID
	}
	*meta.FindStatusCondition(rest.Conditions, v1alpha1.ConditionReady) = *was
	return equality.Semantic.DeepEqual(before, rest)
}

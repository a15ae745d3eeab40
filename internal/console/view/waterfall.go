// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
)

// Waterfall is the join of a machine, step by step, beside those of its siblings: the machines of its node group, or of
// its cluster if it is of no group.
type Waterfall struct {
	// Rows in the order of the steps.
	Rows []WaterfallRow `json:"rows"`
	// Scale is the end of the axis in milliseconds, at least 1.
	Scale int64 `json:"scale"`
	// Siblings is the number of other machines that have become Ready.
	Siblings int `json:"siblings"`
}

// WaterfallRow is one step of a join. All times are in milliseconds since the machine was launched.
type WaterfallRow struct {
	Step v1alpha1.JoinStep `json:"step"`
	// Done reports whether the step was seen; From is when the step before it was done, and To when it was.
	Done bool  `json:"done"`
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Next reports whether the machine has still to take the step, and no later step is done.
	Next bool `json:"next,omitempty"`
	// Median, Low and High are the times of the siblings: the middle, and the borders of the middle eight tenths. They are 0
	// if no sibling took the step.
	Median int64 `json:"median"`
	Low    int64 `json:"low"`
	High   int64 `json:"high"`
}

// mostJoin is how long after its launch a step still belongs to a join. Later ones are those of a machine that joined
// anew.
const mostJoin = time.Hour

// NewWaterfall makes the waterfall of a machine among all machines. A step that neither the machine nor any sibling took
// is left out, as a client certificate is of machines that join by a role.
func NewWaterfall(m *v1alpha1.Machine, all []v1alpha1.Machine) Waterfall {
	own := way(m)
	siblings := map[v1alpha1.JoinStep][]int64{}
	w := Waterfall{Rows: []WaterfallRow{}, Scale: 1}
	for i := range all {
		other := &all[i]
		if other.Name == m.Name || other.Spec.ClusterName != m.Spec.ClusterName || other.Spec.NodeGroup != m.Spec.NodeGroup {
			continue
		}
		took := way(other)
		if _, ready := took[v1alpha1.StepReady]; !ready {
			continue
		}
		w.Siblings++
		for step, at := range took {
			siblings[step] = append(siblings[step], at)
		}
	}
	lastDone := -1
	for _, step := range v1alpha1.JoinSteps() {
		at, done := own[step]
		others := siblings[step]
		if !done && len(others) == 0 {
			continue
		}
		row := WaterfallRow{Step: step, Done: done, To: at}
		if len(others) > 0 {
			slices.Sort(others)
			row.Low, row.Median, row.High = others[len(others)/10], others[len(others)/2], others[len(others)*9/10]
		}
		if done {
			lastDone = len(w.Rows)
		}
		w.Scale = max(w.Scale, at, row.High)
		w.Rows = append(w.Rows, row)
	}
	before := int64(0)
	for i := range w.Rows {
		row := &w.Rows[i]
		row.From = min(before, row.To) // two steps may be seen in the reverse order
		if row.Done {
			before = max(before, row.To)
		} else {
			row.From, row.Next = before, i > lastDone
		}
	}
	return w
}

// way is when a machine took each step, in milliseconds since its launch.
func way(m *v1alpha1.Machine) map[v1alpha1.JoinStep]int64 {
	took := map[v1alpha1.JoinStep]int64{}
	launched := m.LaunchedAt()
	for _, record := range m.Status.Join {
		if after := record.Time.Sub(launched); after >= 0 && after <= mostJoin {
			took[record.Step] = after.Milliseconds()
		}
	}
	return took
}

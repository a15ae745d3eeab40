// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/explain/diagnosis"
)

// Changes is the page of updates, those in progress first, then the newest.
type Changes struct {
	At      time.Time          `json:"at"`
	Updates []Change           `json:"updates"`
	Unseen  []diagnosis.Unseen `json:"unseen,omitempty"`
}

// Change is one Update.
type Change struct {
	Name    string   `json:"name"`
	Cluster string   `json:"cluster"`
	Of      string   `json:"of"` // cluster/NAME, nodegroup/NAME or addon/NAME
	Type    string   `json:"type"`
	Phase   string   `json:"phase"`
	Params  []string `json:"params,omitempty"` // TYPE=VALUE
	Done    bool     `json:"done"`
	// Tone is good, wait or bad.
	Tone  string    `json:"tone"`
	Began time.Time `json:"began"`
	// Took is how long it took, rounded to seconds; empty while it is in progress.
	Took  string `json:"took,omitempty"`
	Why   string `json:"why,omitempty"`
	Steps []Step `json:"steps,omitempty"`
}

// Step is a step of an update that has started.
type Step struct {
	Name    string    `json:"name"`
	Done    bool      `json:"done"`
	Began   time.Time `json:"began"`
	Took    string    `json:"took,omitempty"`
	Message string    `json:"message,omitempty"`
}

// NewChanges makes the page of updates.
func NewChanges(f Facts) Changes {
	page := Changes{At: f.At, Updates: []Change{}, Unseen: f.Wrong.Unseen}
	for i := range f.Updates {
		page.Updates = append(page.Updates, change(&f.Updates[i]))
	}
	slices.SortStableFunc(page.Updates, func(a, b Change) int {
		return cmp.Or(sooner(a.Done, b.Done), b.Began.Compare(a.Began), strings.Compare(a.Name, b.Name))
	})
	return page
}

func change(u *v1alpha1.Update) Change {
	c := Change{
		Name: u.Name, Cluster: u.Spec.ClusterName, Of: "cluster/" + u.Spec.ClusterName, Type: string(u.Spec.Type), Phase: string(u.Phase()),
		Done: u.Phase() != v1alpha1.UpdateInProgress, Tone: "wait", Began: u.CreationTimestamp.UTC(), Why: said(u),
	}
	switch {
	case u.Spec.NodeGroup != "":
		c.Of = "nodegroup/" + u.Spec.NodeGroup
	case u.Spec.Addon != "":
		c.Of = "addon/" + u.Spec.Addon
	}
	switch u.Phase() {
	case v1alpha1.UpdateSuccessful:
		c.Tone = "good"
	case v1alpha1.UpdateFailed:
		c.Tone = "bad"
	case v1alpha1.UpdateInProgress, v1alpha1.UpdateCancelled:
	}
	for _, p := range u.Spec.Params {
		c.Params = append(c.Params, p.Type+"="+p.Value)
	}
	if u.Status.FinishedAt != nil {
		c.Took = u.Status.FinishedAt.Sub(u.CreationTimestamp.Time).Round(time.Second).String()
	}
	for _, s := range u.Status.Steps {
		one := Step{Name: string(s.Name), Began: s.StartedAt.UTC(), Message: s.Message}
		if s.FinishedAt != nil {
			one.Done, one.Took = true, s.FinishedAt.Sub(s.StartedAt.Time).Round(time.Second).String()
		}
		c.Steps = append(c.Steps, one)
	}
	return c
}

// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/csrview"
)

// mostLately is how many lines the overview has of what happened.
const mostLately = 12

// together is how far apart equal happenings may be to become one line.
const together = time.Minute

// Happening is something that happened, or the same of several objects shortly one after the other.
type Happening struct {
	// Time of the last one.
	Time time.Time `json:"time"`
	// Kind and Name of the object; Name is empty if there are several, which Count counts.
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	// Of is the node group or cluster that the object is of.
	Of    string `json:"of,omitempty"`
	Count int    `json:"count"`
	What  string `json:"what"`
	// Bad reports whether it is trouble.
	Bad bool   `json:"bad,omitempty"`
	Why string `json:"why,omitempty"`
}

// NewHappenings returns the newest happenings, the newest first, at most so many.
func NewHappenings(f Facts, most int) []Happening {
	var all []Happening
	for i := range f.Machines {
		all = append(all, ofMachine(&f.Machines[i])...)
	}
	for i := range f.Updates {
		all = append(all, ofUpdate(&f.Updates[i])...)
	}
	for _, c := range f.Of {
		for _, r := range c.Reviews {
			if r.State == csrview.Denied || r.State == csrview.Failed {
				all = append(all, Happening{Time: r.Created, Kind: "csr", Name: r.Name, Of: r.Asked.CommonName, Count: 1, What: "was " + strings.ToLower(string(r.State)), Bad: true, Why: r.Why})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Happening) int {
		return cmp.Or(b.Time.Compare(a.Time), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name), strings.Compare(a.What, b.What))
	})
	found := merged(all, most)
	if found == nil {
		found = []Happening{}
	}
	return found
}

// merged makes one happening of equal happenings that are close to each other. Others may be between them.
func merged(all []Happening, most int) []Happening {
	type same struct{ kind, of, what string }
	last, oldest := map[same]int{}, map[same]time.Time{}
	var found []Happening
	for _, h := range all {
		key := same{h.Kind, h.Of, h.What}
		if n, ok := last[key]; ok && h.Why == "" && found[n].Why == "" && oldest[key].Sub(h.Time) <= together {
			found[n].Count++
			found[n].Name, oldest[key] = "", h.Time
			continue
		}
		if len(found) == most {
			break
		}
		last[key], oldest[key] = len(found), h.Time
		found = append(found, h)
	}
	return found
}

func ofMachine(m *v1alpha1.Machine) []Happening {
	of := cmp.Or(m.Spec.NodeGroup, m.Spec.ClusterName)
	happened := []Happening{{Time: m.CreationTimestamp.UTC(), Kind: "machine", Name: m.Name, Of: of, Count: 1, What: "was launched"}}
	for _, record := range m.Status.Join {
		if record.Step == v1alpha1.StepReady {
			happened = append(happened, Happening{Time: record.Time.UTC(), Kind: "machine", Name: m.Name, Of: of, Count: 1, What: "became Ready"})
		}
	}
	if !m.DeletionTimestamp.IsZero() {
		happened = append(happened, Happening{Time: m.DeletionTimestamp.UTC(), Kind: "machine", Name: m.Name, Of: of, Count: 1, What: "is being removed"})
	}
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Status == metav1.ConditionFalse && m.Status.Phase == v1alpha1.MachineNotReady && m.DeletionTimestamp.IsZero() {
		happened = append(happened, Happening{Time: ready.LastTransitionTime.UTC(), Kind: "machine", Name: m.Name, Of: of, Count: 1, What: "is not Ready any more", Bad: true, Why: ready.Message})
	}
	return happened
}

func ofUpdate(u *v1alpha1.Update) []Happening {
	h := Happening{Time: u.CreationTimestamp.UTC(), Kind: "update", Name: u.Name, Of: target(u), Count: 1, What: string(u.Spec.Type) + " began"}
	happened := []Happening{h}
	if u.Status.FinishedAt != nil {
		h.Time, h.What = u.Status.FinishedAt.UTC(), string(u.Spec.Type)+": "+string(u.Phase())
		h.Bad = u.Phase() == v1alpha1.UpdateFailed
		if h.Bad {
			h.Why = said(u)
		}
		happened = append(happened, h)
	}
	return happened
}

// target is the object that an update changes.
func target(u *v1alpha1.Update) string {
	return cmp.Or(u.Spec.NodeGroup, u.Spec.Addon, u.Spec.ClusterName)
}

// said is why an update failed, or what it waits for.
func said(u *v1alpha1.Update) string {
	if len(u.Status.Errors) == 0 {
		return u.Status.Message
	}
	texts := make([]string, 0, len(u.Status.Errors))
	for _, e := range u.Status.Errors {
		texts = append(texts, e.ErrorCode+": "+e.ErrorMessage)
	}
	return strings.Join(texts, "; ")
}

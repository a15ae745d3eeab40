// SPDX-License-Identifier: Apache-2.0

package spotrequest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ec2id"
)

func TestID(t *testing.T) {
	const instance = "i-0123456789abcdef0"
	id := ID(instance)
	if err := ec2id.SpotRequest.Check(id); err != nil || id != "sir-0123456789abcdef0" || InstanceID(id) != instance {
		t.Errorf("%s of %s: %v", id, InstanceID(id), err)
	}
}

// A kept value is read again, and an annotation that cannot be read counts as a missing one.
func TestKept(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	for name, kept := range map[string]Kept{
		"nothing": {}, "tags": {Tags: v1alpha1.Tags{"team": "blue", "empty": ""}}, "cancelled": {CancelledAt: &at}, "all": {Tags: v1alpha1.Tags{"a": "b"}, MaxPrice: "0.041600", CancelledAt: &at},
	} {
		m := &v1alpha1.Machine{}
		m.Annotations = map[string]string{annotation: "of before", "other": "stays"}
		Keep(m, kept)
		got := Of(m)
		if got.CancelledAt != nil {
			got.CancelledAt = new(metav1.NewTime(got.CancelledAt.UTC()))
		}
		if diff := cmp.Diff(kept, got); diff != "" || m.Annotations["other"] != "stays" {
			t.Errorf("%s: %v %s", name, m.Annotations, diff)
		}
		if _, there := m.Annotations[annotation]; there == (name == "nothing") {
			t.Errorf("%s: the annotations are %v", name, m.Annotations)
		}
	}
	for _, text := range []string{"", "{", "[]", `{"tags":{"a":1}}`, `{"tags":{"a":"b"},"cancelledAt":"noon"}`} {
		m := &v1alpha1.Machine{}
		m.Annotations = map[string]string{annotation: text}
		if got := Of(m); len(got.Tags) > 0 || got.CancelledAt != nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestStatusOf(t *testing.T) {
	launched := time.Date(2026, 11, 30, 12, 0, 0, 5000, time.UTC)
	cancelled, notice, down := launched.Add(time.Minute), launched.Add(2*time.Minute), launched.Add(3*time.Minute)
	drill := func(kind v1alpha1.DrillKind) *v1alpha1.MachineDrill {
		return &v1alpha1.MachineDrill{Kind: kind, Began: metav1.NewMicroTime(notice), Ends: metav1.NewTime(notice.Add(2 * time.Minute))}
	}
	noted := func(kind v1alpha1.DrillKind, began time.Time, ended bool) *v1alpha1.MachineDrillStatus {
		s := &v1alpha1.MachineDrillStatus{Kind: kind, Began: metav1.NewMicroTime(began)}
		if ended {
			s.EndedAt = new(metav1.NewTime(down))
		}
		return s
	}
	spot := v1alpha1.DrillSpotInterruption
	for name, c := range map[string]struct {
		instance    string
		since       time.Time
		cancelled   bool
		drill       *v1alpha1.MachineDrill
		noted       *v1alpha1.MachineDrillStatus
		state, code string
		updated     time.Time
	}{
		"that is launched":                     {instance: "pending", state: "active", code: "fulfilled", updated: launched},
		"that runs":                            {instance: "running", state: "active", code: "fulfilled", updated: launched},
		"that runs, cancelled":                 {instance: "running", cancelled: true, state: "cancelled", code: "request-canceled-and-instance-running", updated: cancelled},
		"that stops":                           {instance: "stopping", since: down, state: "active", code: "marked-for-stop", updated: down},
		"that is stopped":                      {instance: "stopped", since: down, state: "disabled", code: "instance-stopped-by-user", updated: down},
		"that is stopped, cancelled":           {instance: "stopped", since: down, cancelled: true, state: "cancelled", code: "instance-stopped-by-user", updated: down},
		"that goes":                            {instance: "shutting-down", since: down, state: "closed", code: "instance-terminated-by-user", updated: down},
		"that is gone":                         {instance: "terminated", since: down, state: "closed", code: "instance-terminated-by-user", updated: down},
		"that is gone, cancelled":              {instance: "terminated", since: down, cancelled: true, state: "cancelled", code: "instance-terminated-by-user", updated: down},
		"with a notice":                        {instance: "running", drill: drill(spot), noted: noted(spot, notice, false), state: "closed", code: "instance-terminated-by-experiment", updated: notice},
		"that was interrupted":                 {instance: "terminated", since: down, drill: drill(spot), noted: noted(spot, notice, true), state: "closed", code: "instance-terminated-by-experiment", updated: notice},
		"that has not heard of its notice":     {instance: "running", drill: drill(spot), state: "active", code: "fulfilled", updated: launched},
		"whose notice was taken back":          {instance: "running", noted: noted(spot, notice, true), state: "active", code: "fulfilled", updated: launched},
		"of a notice before":                   {instance: "running", drill: drill(spot), noted: noted(spot, launched, true), state: "active", code: "fulfilled", updated: launched},
		"with a recommendation":                {instance: "running", drill: drill(v1alpha1.DrillRebalance), noted: noted(v1alpha1.DrillRebalance, notice, false), state: "active", code: "fulfilled", updated: launched},
		"that is gone after a notice was over": {instance: "terminated", since: down, noted: noted(spot, notice, true), state: "closed", code: "instance-terminated-by-user", updated: down},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-0123456789abcdef0"}}
			m.Spec.Drill, m.Status.Drill = c.drill, c.noted
			m.Status.Join = []v1alpha1.JoinRecord{{Step: v1alpha1.StepLaunched, Time: metav1.NewMicroTime(launched)}}
			if c.cancelled {
				Keep(m, Kept{CancelledAt: new(metav1.NewTime(cancelled))})
			}
			got := StatusOf(m, c.instance, c.since)
			if got.State != c.state || got.Code != c.code || !got.UpdateTime.Equal(c.updated.Truncate(time.Second)) || got.UpdateTime.Location() != time.UTC {
				t.Errorf("%+v, want %s, %s at %s", got, c.state, c.code, c.updated)
			}
			if !strings.HasSuffix(got.Message, ".") || strings.Contains(got.Message, m.Name) != (c.code == "request-canceled-and-instance-running") {
				t.Errorf("the message is %q", got.Message)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package drill_test

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/drill"
)

var began = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func of(kind v1alpha1.DrillKind, at time.Time) *v1alpha1.MachineDrill {
	return &v1alpha1.MachineDrill{Kind: kind, Began: metav1.NewMicroTime(at), Ends: metav1.NewTime(at.Add(2 * time.Minute))}
}

func status(d *v1alpha1.MachineDrill, ended bool) *v1alpha1.MachineDrillStatus {
	s := &v1alpha1.MachineDrillStatus{Kind: d.Kind, Began: d.Began}
	if ended {
		s.EndedAt = new(metav1.NewTime(began))
	}
	return s
}

func TestNext(t *testing.T) {
	first, second := of(v1alpha1.DrillStop, began), of(v1alpha1.DrillStop, began.Add(time.Microsecond))
	for name, test := range map[string]struct {
		spec   *v1alpha1.MachineDrill
		status *v1alpha1.MachineDrillStatus
		after  time.Duration
		want   drill.Step
	}{
		"no drill":                      {nil, nil, 0, drill.Nothing},
		"a new one":                     {first, nil, 0, drill.Begin},
		"it goes on":                    {first, status(first, false), time.Minute, drill.Keep},
		"its time is up":                {first, status(first, false), 2 * time.Minute, drill.Happen},
		"it has ended":                  {first, status(first, true), time.Hour, drill.Nothing},
		"somebody ends it":              {nil, status(first, false), time.Minute, drill.End},
		"another comes while it goes":   {second, status(first, false), time.Minute, drill.End},
		"another comes afterwards":      {second, status(first, true), time.Minute, drill.Begin},
		"one that is over before it is": {first, nil, time.Hour, drill.Begin},
	} {
		if got := drill.Next(test.spec, test.status, began.Add(test.after)); got != test.want {
			t.Errorf("%s: step %d, want %d", name, got, test.want)
		}
	}
}

// From any state and with any later wishes, a machine comes to a state without a drill, and what was announced happens
// once for each drill at most, never before its time.
func TestDrillsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spec *v1alpha1.MachineDrill
		var is *v1alpha1.MachineDrillStatus
		now, happened := began, map[time.Time]int{}
		wish := func() {
			if spec = nil; rapid.Bool().Draw(t, "wish") {
				spec = of(rapid.SampledFrom(v1alpha1.DrillKinds()).Draw(t, "kind"), now)
			}
		}
		for turn := range 60 {
			if turn < 30 && rapid.IntRange(0, 5).Draw(t, "change") == 0 {
				wish()
			}
			switch drill.Next(spec, is, now) {
			case drill.Begin:
				is = status(spec, false)
			case drill.Happen:
				if now.Before(spec.Ends.Time) {
					t.Fatalf("it happens at %s, and was announced for %s", now, spec.Ends)
				}
				if happened[spec.Began.Time]++; happened[spec.Began.Time] > 1 {
					t.Fatal("it happens twice")
				}
				is.EndedAt = new(metav1.NewTime(now))
			case drill.End:
				is.EndedAt = new(metav1.NewTime(now))
			case drill.Keep, drill.Nothing:
			}
			now = now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "seconds")) * time.Second)
			if turn >= 30 {
				now = now.Add(time.Minute)
			}
		}
		if step := drill.Next(spec, is, now); step != drill.Nothing {
			t.Fatalf("step %d is left: %+v, %+v", step, spec, is)
		}
	})
}

// A second drill of a machine is another event: AWS's node termination handler ignores an id that it has heeded.
func TestEventsHaveIDs(t *testing.T) {
	leaf := func(machine string, at time.Time) string {
		return drill.Of(v1alpha1.MachineDrill{Kind: v1alpha1.DrillMaintenance, Began: metav1.NewMicroTime(at), Ends: metav1.NewTime(began.Add(time.Hour))}, machine).Leaves["events/maintenance/scheduled"]
	}
	const machine = "i-0123456789abcdef0"
	first := leaf(machine, began)
	if leaf(machine, began) != first {
		t.Error("a drill announces another event each time")
	}
	if leaf(machine, began.Add(time.Microsecond)) == first || leaf("i-0123456789abcdef1", began) == first {
		t.Error("two drills announce the same event")
	}
}

// The leaves are those that EC2 documents, as AWS's node termination handler reads them.
func TestLeaves(t *testing.T) {
	for kind, want := range map[v1alpha1.DrillKind]map[string]string{
		v1alpha1.DrillSpotInterruption: {"spot/instance-action": `{"action":"terminate","time":"2026-11-29T12:02:00Z"}`, "spot/termination-time": "2026-11-29T12:02:00Z"},
		v1alpha1.DrillRebalance:        {"events/recommendations/rebalance": `{"noticeTime":"2026-11-29T12:00:00Z"}`},
		v1alpha1.DrillMaintenance: {
			"events/maintenance/scheduled": `[{"NotBefore":"29 Nov 2026 12:02:00 GMT","Code":"system-reboot","Description":"scheduled reboot","EventId":"instance-event-b7272b9e0e7b98ba6","NotAfter":"29 Nov 2026 12:02:00 GMT","State":"active"}]`,
		},
		v1alpha1.DrillKubelet: {},
	} {
		got := drill.Of(*of(kind, began), "i-0123456789abcdef0").Leaves
		for path, text := range want {
			if got[path] != text {
				t.Errorf("%s has %s, want %s", path, got[path], text)
			}
		}
		for path, text := range got {
			if text[0] != '2' && !json.Valid([]byte(text)) || want[path] == "" {
				t.Errorf("%s: %s has %s", kind, path, text)
			}
		}
	}
}

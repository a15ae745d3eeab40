// SPDX-License-Identifier: Apache-2.0

package experiment_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/experiment"
	"muster.dev/muster/internal/machine/drill"
)

// karpenter is the template of Karpenter's test/pkg/environment/aws (v1.15.0).
func karpenter() experiment.Template {
	return experiment.Template{
		Description: "trigger spot ITN for instances [i-1]", RoleARN: "arn:aws:iam::000000000000:role/FISInterruptionRole", Empty: experiment.EmptyFails,
		Targets: map[string]experiment.Target{"itn0": {ResourceType: experiment.SpotInstance, Mode: "ALL", ARNs: []string{arn("i-1")}}},
		Actions: map[string]experiment.Action{"itn0": {ID: experiment.Interrupt, Parameters: map[string]string{"durationBeforeInterruption": "PT120S"}, Targets: map[string]string{"SpotInstances": "itn0"}}},
	}
}

func arn(id string) string { return "arn:aws:ec2:eu-west-1:000000000000:instance/" + id }

func TestTemplates(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*experiment.Template)
		says   string
	}{
		"Karpenter's":         {func(*experiment.Template) {}, ""},
		"no description":      {func(t *experiment.Template) { t.Description = "" }, "the description has 0 characters"},
		"no action":           {func(t *experiment.Template) { t.Actions = nil }, "there are 0 actions"},
		"an empty mode":       {func(t *experiment.Template) { t.Empty = "wait" }, "must be fail or skip"},
		"another action":      {func(t *experiment.Template) { set(t, func(a *experiment.Action) { a.ID = "aws:ec2:stop-instances" }) }, `the actionId is "aws:ec2:stop-instances": Muster has aws:ec2:send-spot-instance-interruptions only`},
		"a parameter":         {func(t *experiment.Template) { set(t, func(a *experiment.Action) { a.Parameters["x"] = "1" }) }, `it has the parameter "x"`},
		"no duration":         {func(t *experiment.Template) { set(t, func(a *experiment.Action) { a.Parameters = nil }) }, `durationBeforeInterruption is ""`},
		"too little notice":   {func(t *experiment.Template) { before(t, "PT119S") }, "from PT2M to PT15M"},
		"too much notice":     {func(t *experiment.Template) { before(t, "PT15M1S") }, "from PT2M to PT15M"},
		"minutes and seconds": {func(t *experiment.Template) { before(t, "PT2M30S") }, ""},
		"no numbers":          {func(t *experiment.Template) { before(t, "PT") }, "from PT2M to PT15M"},
		"days":                {func(t *experiment.Template) { before(t, "P1D") }, "from PT2M to PT15M"},
		"no target":           {func(t *experiment.Template) { set(t, func(a *experiment.Action) { a.Targets = nil }) }, "it must have one, SpotInstances"},
		"a target that is not": {func(t *experiment.Template) {
			set(t, func(a *experiment.Action) { a.Targets["SpotInstances"] = "itn1" })
		}, `its target "itn1" is not among`},
		"a target of nobody": {func(t *experiment.Template) {
			t.Targets["spare"] = experiment.Target{ResourceType: experiment.SpotInstance, Mode: "ALL", Tags: map[string]string{"a": "b"}}
		}, `target "spare": it is of no action`},
		"another resource": {func(t *experiment.Template) {
			target(t, func(x *experiment.Target) { x.ResourceType = "aws:ec2:instance" })
		}, `the resourceType is "aws:ec2:instance"`},
		"nothing to choose": {func(t *experiment.Template) { target(t, func(x *experiment.Target) { x.ARNs = nil }) }, "resourceArns or resourceTags"},
		"both": {func(t *experiment.Template) {
			target(t, func(x *experiment.Target) { x.Tags = map[string]string{"a": "b"} })
		}, "and not both"},
		"six ARNs":      {func(t *experiment.Template) { target(t, func(x *experiment.Target) { x.ARNs = make([]string, 6) }) }, "it has 6 resourceArns: there may be 5"},
		"a mode":        {func(t *experiment.Template) { target(t, func(x *experiment.Target) { x.Mode = "SOME" }) }, "it must be ALL, COUNT(n) or PERCENT(n)"},
		"no instance":   {func(t *experiment.Template) { target(t, func(x *experiment.Target) { x.Mode = "COUNT(0)" }) }, "at least 1"},
		"more than all": {func(t *experiment.Template) { target(t, func(x *experiment.Target) { x.Mode = "PERCENT(101)" }) }, "from 1 to 100"},
		"a path": {func(t *experiment.Template) {
			target(t, func(x *experiment.Target) {
				x.ARNs, x.Tags, x.Filters = nil, map[string]string{"a": "b"}, []experiment.Filter{{Path: "ImageId", Values: []string{"x"}}}
			})
		}, `the path "ImageId"`},
		"filters of ARNs": {func(t *experiment.Template) {
			target(t, func(x *experiment.Target) {
				x.Filters = []experiment.Filter{{Path: "State.Name", Values: []string{"running"}}}
			})
		}, "filters go with resourceTags"},
	} {
		template := karpenter()
		c.change(&template)
		err := template.Check()
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func set(t *experiment.Template, change func(*experiment.Action)) {
	a := t.Actions["itn0"]
	change(&a)
	t.Actions["itn0"] = a
}

func before(t *experiment.Template, duration string) {
	set(t, func(a *experiment.Action) { a.Parameters["durationBeforeInterruption"] = duration })
}

func target(t *experiment.Template, change func(*experiment.Target)) {
	x := t.Targets["itn0"]
	change(&x)
	t.Targets["itn0"] = x
}

func TestChoose(t *testing.T) {
	var all []experiment.Instance
	for n := range 4 {
		id := fmt.Sprintf("i-%d", n)
		all = append(all, experiment.Instance{ID: id, ARN: arn(id), State: "running", Zone: fmt.Sprintf("eu-west-1%c", 'a'+n%2), Type: "t3.small", Tags: map[string]string{"team": "a"}})
	}
	all[3].Tags = map[string]string{"team": "b"}
	tagged := func(mode string, filters ...experiment.Filter) experiment.Target {
		return experiment.Target{ResourceType: experiment.SpotInstance, Mode: mode, Tags: map[string]string{"team": "a"}, Filters: filters}
	}
	for name, c := range map[string]struct {
		target experiment.Target
		want   []string
		says   string
	}{
		"by ARN":           {experiment.Target{Mode: "ALL", ARNs: []string{arn("i-3")}}, []string{"i-3"}, ""},
		"an ARN of nobody": {experiment.Target{Mode: "ALL", ARNs: []string{arn("i-9")}}, nil, "there is no spot instance " + arn("i-9")},
		"by tag":           {tagged("ALL"), []string{"i-0", "i-1", "i-2"}, ""},
		"in a zone":        {tagged("ALL", experiment.Filter{Path: "Placement.AvailabilityZone", Values: []string{"eu-west-1b", "eu-west-1c"}}), []string{"i-1"}, ""},
		"in a state":       {tagged("ALL", experiment.Filter{Path: "State.Name", Values: []string{"stopped"}}), []string{}, ""},
	} {
		got, err := c.target.Choose("EXP1", all)
		if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) || c.says == "" && (err != nil || !slices.Equal(got, c.want)) {
			t.Errorf("%s: %v, %v, want %v %q", name, got, err, c.want, c.says)
		}
	}
	one := map[string]bool{}
	for n := range 64 {
		got, err := tagged("COUNT(1)").Choose(fmt.Sprint(n), all)
		again, _ := tagged("COUNT(1)").Choose(fmt.Sprint(n), all)
		if err != nil || len(got) != 1 || !slices.Equal(got, again) {
			t.Fatalf("%v, %v, and %v again", got, err, again)
		}
		one[got[0]] = true
	}
	if len(one) != 3 {
		t.Errorf("chance chooses among %v", one)
	}
	if got, err := tagged("PERCENT(67)").Choose("EXP1", all); err != nil || len(got) != 2 {
		t.Errorf("two thirds of three are %v, %v", got, err)
	}
	all[0].Cannot = "it is of no cluster"
	if _, err := tagged("ALL").Choose("EXP1", all); err == nil || !strings.Contains(err.Error(), "i-0 cannot be interrupted: it is of no cluster") {
		t.Errorf("an instance that cannot: %v", err)
	}
	for n := range 6 {
		id := fmt.Sprintf("i-1%d", n)
		all = append(all, experiment.Instance{ID: id, ARN: arn(id), Tags: map[string]string{"team": "c"}})
	}
	many := experiment.Target{Mode: "ALL", Tags: map[string]string{"team": "c"}}
	if _, err := many.Choose("EXP1", all); err == nil || !strings.Contains(err.Error(), "6 instances: there may be 5") {
		t.Errorf("six instances: %v", err)
	}
}

var began = time.Date(2026, 11, 29, 12, 0, 0, 123_000, time.UTC)

// An instance whose controller does what package drill says has a recommendation, a notice of two minutes at least, and
// an end, in this order and once each, whenever the experiment is looked at, and outages of the service between two looks.
func TestDrillsOfAnInstance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lasts := time.Duration(rapid.IntRange(120, 900).Draw(t, "seconds")) * time.Second
		var spec *v1alpha1.MachineDrill
		var status *v1alpha1.MachineDrillStatus
		var kinds []v1alpha1.DrillKind
		now := began
		for range 2000 {
			wanted, over := experiment.Drill(spec, status, began, lasts, now)
			if over {
				break
			}
			if wanted != nil {
				if wanted.Ends.Time.Before(wanted.Began.Time) || !experiment.Own(wanted, began) {
					t.Fatalf("drill %+v", wanted)
				}
				spec, kinds = wanted, append(kinds, wanted.Kind)
			}
			switch drill.Next(spec, status, now) {
			case drill.Begin:
				status = &v1alpha1.MachineDrillStatus{Kind: spec.Kind, Began: spec.Began}
			case drill.Happen, drill.End:
				if spec.Kind == v1alpha1.DrillSpotInterruption && status.Began.Equal(&spec.Began) {
					if now.Before(began.Add(lasts)) || now.Sub(spec.Began.Time) < 2*time.Minute {
						t.Fatalf("interrupted %s after the notice, %s after the beginning, of %s", now.Sub(spec.Began.Time), now.Sub(began), lasts)
					}
				}
				status.EndedAt = new(metav1.NewTime(now))
			case drill.Nothing, drill.Keep:
			}
			now = now.Add(time.Duration(rapid.IntRange(1, 3).Draw(t, "look")) * time.Second)
			if rapid.IntRange(0, 200).Draw(t, "outage") == 0 {
				now = now.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "minutes")) * time.Minute)
			}
		}
		want := []v1alpha1.DrillKind{v1alpha1.DrillRebalance, v1alpha1.DrillSpotInterruption}
		if lasts == 2*time.Minute {
			want = want[1:]
		}
		if status == nil || status.EndedAt == nil || !slices.Equal(kinds, want) {
			t.Fatalf("drills %v of %s, status %+v", kinds, lasts, status)
		}
	})
}

// A drill of somebody else, or its end, ends the experiment's part.
func TestDrillsOfOthers(t *testing.T) {
	at := func(kind v1alpha1.DrillKind, when time.Time) *v1alpha1.MachineDrill {
		return &v1alpha1.MachineDrill{Kind: kind, Began: metav1.NewMicroTime(when), Ends: metav1.NewTime(when.Add(time.Hour))}
	}
	after := began.Add(time.Second)
	for name, c := range map[string]struct {
		spec   *v1alpha1.MachineDrill
		status *v1alpha1.MachineDrillStatus
		over   bool
	}{
		"a drill of before":       {at(v1alpha1.DrillStop, began.Add(-time.Hour)), nil, false},
		"an older interruption":   {at(v1alpha1.DrillSpotInterruption, began.Add(-time.Hour)), nil, false},
		"a drill in its place":    {at(v1alpha1.DrillStop, after), nil, true},
		"somebody ended it":       {nil, &v1alpha1.MachineDrillStatus{Kind: v1alpha1.DrillRebalance, Began: metav1.NewMicroTime(after)}, true},
		"somebody ended another":  {nil, &v1alpha1.MachineDrillStatus{Kind: v1alpha1.DrillStop, Began: metav1.NewMicroTime(began.Add(-time.Hour))}, false},
		"another's interruption ": {at(v1alpha1.DrillSpotInterruption, after), nil, false},
	} {
		wanted, over := experiment.Drill(c.spec, c.status, began, 10*time.Minute, began.Add(time.Minute))
		if over != c.over || over && wanted != nil {
			t.Errorf("%s: over %t, drill %+v", name, over, wanted)
		}
	}
}

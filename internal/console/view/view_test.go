// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/console/pageserver/pageservertest"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/diagnosis"
)

var noon = pageservertest.Noon

func TestStatesOfMachines(t *testing.T) {
	o := view.NewOverview(pageservertest.World(), "")
	want := map[view.State]int{view.Wrong: 1, view.Joining: 1, view.Leaving: 1, view.Idle: 1, view.Ready: 19}
	if diff := cmp.Diff(want, o.Counts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	silent := view.Facts{Machines: []v1alpha1.Machine{{Status: v1alpha1.MachineStatus{Phase: v1alpha1.MachineNotReady}}, {}}}
	if got := view.NewOverview(silent, "").Counts; got[view.Wrong] != 1 || got[view.Joining] != 1 {
		t.Errorf("a machine that is not Ready any more and one without a phase: %v", got)
	}
}

func TestFilter(t *testing.T) {
	for filter, want := range map[string]int{
		"": 19, "GPU\t": 3, "us-east-1a": 6, "wrong": 1, "m-iam-01": 1, "172.31.0.24": 1, "ip-172-31-0-24": 1, "i-0aaaa": 1, "ready": 15, "nothing": 0,
	} {
		o := view.NewOverview(pageservertest.World(), filter)
		for _, c := range o.Clusters {
			if c.Name != "home" {
				continue
			}
			shown := 0
			for _, z := range c.Zones {
				shown += len(z.Machines)
			}
			if c.Matching != want || shown != want || c.Machines != 19 {
				t.Errorf("%q: %d of %d machines, %d are shown; want %d", filter, c.Matching, c.Machines, shown, want)
			}
		}
		if o.Counts[view.Ready] != 19 {
			t.Errorf("%q changes the counts: %v", filter, o.Counts)
		}
	}
}

// machine is a machine of a group with steps, each so many milliseconds after the launch.
func machine(name, group string, steps map[v1alpha1.JoinStep]int) v1alpha1.Machine {
	m := v1alpha1.Machine{}
	m.Name, m.Spec.NodeGroup = name, group
	for _, step := range v1alpha1.JoinSteps() {
		if after, ok := steps[step]; ok {
			m.Status.Join = append(m.Status.Join, v1alpha1.JoinRecord{Step: step, Time: metav1.NewMicroTime(noon.Add(time.Duration(after) * time.Millisecond))})
		}
	}
	return m
}

func TestWaterfall(t *testing.T) {
	const launched, known, registered, ready = v1alpha1.StepLaunched, v1alpha1.StepAPIReached, v1alpha1.StepNodeRegistered, v1alpha1.StepReady
	all := []v1alpha1.Machine{
		machine("a", "g", map[v1alpha1.JoinStep]int{launched: 0, known: 100, registered: 250, ready: 1000}),
		machine("b", "g", map[v1alpha1.JoinStep]int{launched: 0, known: 200, registered: 300, ready: 1200}),
		machine("c", "g", map[v1alpha1.JoinStep]int{launched: 0, known: 300}),
		machine("d", "g", map[v1alpha1.JoinStep]int{launched: 0, registered: 50, known: 60, ready: 70}),
		machine("e", "other", map[v1alpha1.JoinStep]int{launched: 0, ready: 9000}),
		machine("f", "g", map[v1alpha1.JoinStep]int{launched: 0, known: 90, ready: 2 * 3600 * 1000}),
	}
	for name, want := range map[string]string{
		"a": "1200 2: Launched 0-0 (0) APIReached 0-100 (200) NodeRegistered 100-250 (300) Ready 250-1000 (1200)",
		"c": "1200 3: Launched 0-0 (0) APIReached 0-300 (100) NodeRegistered next (250) Ready next (1000)",
		"d": "1200 2: Launched 0-0 (0) APIReached 0-60 (200) NodeRegistered 50-50 (300) Ready 60-70 (1200)", // seen in the reverse order
		"e": "9000 0: Launched 0-0 (0) Ready 0-9000 (0)",
		"f": "1200 3: Launched 0-0 (0) APIReached 0-90 (100) NodeRegistered next (250) Ready next (1000)", // it joined anew, hours later
	} {
		for i := range all {
			if all[i].Name != name {
				continue
			}
			w := view.NewWaterfall(&all[i], all)
			got := fmt.Sprintf("%d %d:", w.Scale, w.Siblings)
			for _, row := range w.Rows {
				switch {
				case row.Done:
					got += fmt.Sprintf(" %s %d-%d (%d)", row.Step, row.From, row.To, row.Median)
				case row.Next:
					got += fmt.Sprintf(" %s next (%d)", row.Step, row.Median)
				default:
					got += fmt.Sprintf(" %s missed (%d)", row.Step, row.Median)
				}
			}
			if got != want {
				t.Errorf("%s:\n got %s\nwant %s", name, got, want)
			}
		}
	}
	missed := machine("g", "g", map[v1alpha1.JoinStep]int{launched: 0, ready: 500})
	for _, row := range view.NewWaterfall(&missed, all).Rows {
		if row.Step == registered && (row.Done || row.Next) {
			t.Errorf("a step that nobody saw before a later one: %+v", row)
		}
	}
}

func TestLately(t *testing.T) {
	f := pageservertest.World()
	got := ""
	for _, h := range view.NewHappenings(f, 6) {
		got += fmt.Sprintf("%s %d %s %s of %s %s %v\n", h.Time.Format(time.TimeOnly), h.Count, h.Kind, h.Name, h.Of, h.What, h.Bad)
	}
	const want = `11:59:56 1 machine i-0bbbbbbbbbbbbbbbb of default was launched false
11:59:30 1 machine i-0cccccccccccccccc of default is being removed false
11:58:30 1 update 7c1e2f00-0000-4000-8000-000000000001 of staging VersionUpdate began false
11:55:00 1 csr csr-denied of system:node:ip-172-31-0-24.ec2.internal was denied true
11:51:00 1 machine i-0aaaaaaaaaaaaaaaa of default was launched false
11:25:00 1 update 7c1e2f00-0000-4000-8000-000000000002 of gpu ConfigUpdate: Failed true
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	many := view.NewHappenings(pageservertest.Many(1000), 12)
	if len(many) != 2 || many[0].Count != 1000 || many[1].Count != 1000 {
		t.Errorf("a thousand machines that came together are %+v", many)
	}
}

func TestCalendar(t *testing.T) {
	f := view.Facts{At: noon, Of: map[string]view.Cluster{"home": {}}}
	of := f.Of["home"]
	for _, left := range []time.Duration{-time.Hour, 0, time.Minute, time.Hour, 5 * time.Hour, 23 * time.Hour, 6 * 24 * time.Hour, 29 * 24 * time.Hour, 89 * 24 * time.Hour, 365 * 24 * time.Hour, 10 * 365 * 24 * time.Hour} {
		of.Certificates = append(of.Certificates, view.Certificate{Request: "csr", NotAfter: noon.Add(left)})
	}
	of.Certificates = append(of.Certificates, view.Certificate{NotAfter: noon.Add(time.Hour)})
	f.Of["home"] = of
	got := ""
	page := view.NewCertificates(f, "")
	for _, b := range page.Calendar {
		got += fmt.Sprintf("%s:%d+%d ", b.Name, b.Nodes, b.Planes)
	}
	const want = "over:2+0 1 hour:2+1 6 hours:1+0 1 day:1+0 1 week:1+0 30 days:1+0 90 days:1+0 1 year:1+0 later:1+0 "
	if got != want || page.Nodes != 11 {
		t.Errorf("%d certificates: %s\nwant %s", page.Nodes, got, want)
	}
	long := view.Certificate{NotBefore: noon, NotAfter: noon.Add(100 * 365 * 24 * time.Hour)}
	for after, want := range map[time.Duration]int{-time.Hour: 0, 0: 0, 50 * 365 * 24 * time.Hour: 500, 200 * 365 * 24 * time.Hour: 1000} {
		if got := long.Spent(noon.Add(after)); got != want {
			t.Errorf("after %s, %d thousandths of a life are over; want %d", after, got, want)
		}
	}
}

func TestListsAreBounded(t *testing.T) {
	page := view.NewCertificates(pageservertest.Many(1000), "")
	if len(page.Requests) != 200 || page.More != 800 {
		t.Errorf("%d requests and %d more", len(page.Requests), page.More)
	}
	if page := view.NewCertificates(pageservertest.World(), "names-assigned"); len(page.Requests) != 1 || page.Requests[0].Review.Name != "csr-denied" {
		t.Errorf("by a rule: %+v", page.Requests)
	}
}

func TestMachineOfAnotherCluster(t *testing.T) {
	f := pageservertest.World()
	id, ok := view.FindMachine(f, "ip-172-31-0-5.ec2.internal")
	if !ok || id != pageservertest.FirstOne {
		t.Fatalf("by its node: %s %v", id, ok)
	}
	if _, ok := view.FindMachine(f, ""); ok {
		t.Error("no name is a machine")
	}
	page, _ := view.NewMachinePage(f, id, diagnosis.Report{})
	if len(page.Certificates) != 2 || len(page.Requests) != 1 || len(page.Conditions) != 4 {
		t.Errorf("%d certificates, %d requests, %d conditions", len(page.Certificates), len(page.Requests), len(page.Conditions))
	}
	// A node of the same name in another cluster is another node.
	f.Machines[0].Spec.ClusterName = "staging"
	if page, _ = view.NewMachinePage(f, id, diagnosis.Report{}); len(page.Certificates) != 0 || len(page.Requests) != 0 || len(page.Conditions) != 1 {
		t.Errorf("of another cluster: %d certificates, %d requests, %d conditions", len(page.Certificates), len(page.Requests), len(page.Conditions))
	}
	if _, ok := view.NewMachinePage(f, "i-0", diagnosis.Report{}); ok {
		t.Error("a machine that is not there has a page")
	}
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A report as ginkgo writes it, of a dry run and of a run.
const (
	dryReport = `[{"SuiteDescription":"Drift","SpecReports":[
		{"LeafNodeType":"BeforeSuite","State":"passed"},
		{"ContainerHierarchyTexts":["Drift"],"LeafNodeType":"It","LeafNodeText":"disrupts (a)","State":"passed","RunTime":0},
		{"ContainerHierarchyTexts":["Drift","Capacity Reservations"],"LeafNodeType":"It","LeafNodeText":"is demoted","State":"passed"},
		{"ContainerHierarchyTexts":["Drift"],"LeafNodeType":"It","LeafNodeText":"disrupts (a) again","State":"pending"}]}]`
	runReport = `[{"SpecReports":[
		{"ContainerHierarchyTexts":["Drift"],"LeafNodeType":"It","LeafNodeText":"disrupts (a)","State":"failed","RunTime":1500000000,"Failure":{"Message":"Timed out\n  after 960s","FailureNodeType":"It"}},
		{"ContainerHierarchyTexts":["Drift"],"LeafNodeType":"It","LeafNodeText":"cut off","State":"interrupted","RunTime":9,"Failure":{"Message":"Interrupted by User","FailureNodeType":"It"}},
		{"ContainerHierarchyTexts":["Drift"],"LeafNodeType":"It","LeafNodeText":"out of time","State":"timedout","RunTime":9,"Failure":{"Message":"A suite timeout occurred","FailureNodeType":"It"}},
		{"ContainerHierarchyTexts":["Drift"],"LeafNodeType":"It","LeafNodeText":"the last","State":"failed","RunTime":9,"Failure":{"Message":"a label is not tried","FailureNodeType":"AfterAll"}},
		{"ContainerHierarchyTexts":["Drift","Capacity Reservations"],"LeafNodeType":"It","LeafNodeText":"is demoted","State":"skipped","RunTime":0},
		{"ContainerHierarchyTexts":["Drift"],"LeafNodeType":"It","LeafNodeText":"disrupts (a) again","State":"skipped","RunTime":7,"Failure":{"Message":"no driver"}}]}]`
)

func TestReports(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report.json")
	read := func(text string) ([]string, map[string]result, error) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return readReports(path)
	}
	specs, _, err := read(dryReport)
	if want := []string{"Drift disrupts (a)", "Drift Capacity Reservations is demoted", "Drift disrupts (a) again"}; err != nil || !slices.Equal(specs, want) {
		t.Errorf("specs %q, %v", specs, err)
	}
	_, ended, err := read(runReport)
	if err != nil || len(ended) != 3 || ended["Drift disrupts (a)"] != (result{State: "failed", Message: "Timed out after 960s", Seconds: 1.5}) || ended["Drift the last"].State != "passed" || ended["Drift disrupts (a) again"].Message != "no driver" {
		t.Errorf("results %v, %v", ended, err)
	}
	if rest := left([]string{"Drift disrupts (a)", "Drift b", "Drift disrupts (a) again", "Drift a"}, ended); !slices.Equal(rest, []string{"Drift b", "Drift a"}) {
		t.Errorf("left are %q", rest)
	}
	if long := (specReport{Failure: struct{ Message, FailureNodeType string }{Message: strings.Repeat("é", 300)}}).message(); len(long) > maxMessage+4 || !strings.HasSuffix(long, "é ...") {
		t.Errorf("a long message is %q", long)
	}
	for _, text := range []string{"", "{}", "[]", `[{"SpecReports":[]}]`} {
		if _, _, err := read(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// Every spec is counted once: in the sum, and in one of the four ways.
func TestCountsAddUp(t *testing.T) {
	t.Parallel()
	suites := []suite{
		{"provider-drift", []string{"Drift a", "Drift b", "Drift c", "Drift d", "Drift f", "Drift Capacity Reservations e"}},
		{"provider-ipv6", []string{"IPv6 a"}},
	}
	results := map[string]map[string]result{"provider-drift": {
		"Drift a": {State: "passed"}, "Drift b": {State: "timedout", Message: "late"}, "Drift c": {State: "skipped", Message: "no driver"},
		"Drift of an earlier version": {State: "passed"},
	}}
	got := count(suites, limits(), results)
	if got.All != 7 || got.Passed != 1 || got.Failed != 1 || got.NotApplicable != 3 || got.NotRun != 2 || got.Passed+got.Failed+got.NotApplicable+got.NotRun != got.All {
		t.Errorf("%+v", got)
	}
	var said strings.Builder
	got.print(&said)
	for _, line := range []string{
		"failed: provider-drift: Drift b: timedout: late\n", "not applicable:   1, as clusters have IPv4 addresses alone\n", "not applicable:   1, as it skips itself: no driver\n",
		"7 specs: 1 passed, 1 failed, 3 not applicable, 2 not run yet\n",
	} {
		if !strings.Contains(said.String(), line) {
			t.Errorf("%q is not in\n%s", line, &said)
		}
	}
}

// Each spec belongs to one part, and parts are of about one size.
func TestParts(t *testing.T) {
	t.Parallel()
	suites := []suite{{"a", []string{"1", "2", "3", "4", "5"}}, {"b", []string{"1"}}, {"c", []string{"1", "2", "3", "4"}}}
	for of := 1; of <= 4; of++ {
		var seen []string
		for number := 1; number <= of; number++ {
			n := 0
			for _, s := range part(suites, number, of) {
				for _, spec := range s.specs {
					seen = append(seen, s.name+spec)
					n++
				}
			}
			if n < 10/of || n > 10/of+1 {
				t.Errorf("part %d of %d has %d specs", number, of, n)
			}
		}
		if slices.Sort(seen); len(seen) != 10 || len(slices.Compact(seen)) != 10 {
			t.Errorf("in %d parts: %v", of, seen)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		suite, spec string
		why         string
	}{
		{"provider-ami", "AMI AMIFamily should provision a node using the AMI family AL2023 (latest)", ""},
		{"provider-ami", "AMI AMIFamily should provision a node using the AMI family AL2 (latest)", "Amazon Linux 2023"},
		{"provider-ami", "AMI UserData should merge UserData contents for Windows AMIFamily", "Amazon Linux 2023"},
		{"provider-scale", "Provisioning should scale", "hundreds of machines"},
		{"core-regression", "Performance Provisioning should do simple provisioning", "hundreds of machines"},
		{"core-regression", "Integration Utilization should provision one pod per node", "hundreds of machines"},
		{"core-regression", "Integration CRD Hash should have NodePool hash", ""},
		{"provider-integration", "Extended Resources with efa", "no EFA"},
		{"provider-repair", "Reboot should reboot the same EC2 instance in place for a reboot-clearable GPU fault", ""}, // the fault is a condition that it writes
		{"provider-scheduling-strict", "Scheduling should provision EFAs according to NodeClass configuration", "no EFA"},
		{"provider-scheduling-strict", "Scheduling Labels should support well-known labels for windows-build version", "Amazon Linux 2023"},
		{"provider-scheduling-strict", "Scheduling Interruptible Capacity Resverations should prioritize ODCR over IODCR if price is equal", "no capacity reservations"}, // sic
		{"provider-interruption", "Interruption should terminate the node when receiving an instance status failure", "the host's"},
		{"provider-storage", "Persistent Volumes Dynamic should run a pod", "no EBS volumes"},
	} {
		if got := whyNot(limits(), c.suite, c.spec); (got == "") != (c.why == "") || !strings.Contains(got, c.why) {
			t.Errorf("%s: %s: %q", c.suite, c.spec, got)
		}
	}
}

// A spec whose machines the host has no memory for is not chosen, and a larger host runs it.
func TestNeeds(t *testing.T) {
	t.Parallel()
	large, small := "StaticCapacity Drift should replace drifted nodes", "StaticCapacity Provisioning should respect node limits when provisioning"
	for memory, want := range map[int]int{20: 1, 43: 1, 44: 2} {
		o, err := readOptions([]string{"-bin", "b", "-report", "r", "-table", "t", "-memory", strconv.Itoa(memory)})
		if err != nil {
			t.Fatal(err)
		}
		if got := o.chosen([]suite{{"core-regression", []string{large, small}}}); len(got[0].specs) != want {
			t.Errorf("with %d GiB: %v", memory, got)
		}
	}
	if got := string(table([]suite{{"core-regression", []string{large, small}}}, nil, nil)); !strings.Contains(got, large+"\tnot run\t\t\t\tits machines have 44 GiB at once\n") || !strings.Contains(got, small+"\tnot run\t\t\t\t\n") {
		t.Errorf("the table says\n%s", got)
	}
}

// The focus matches the specs that were chosen, and none whose text begins or ends likewise.
func TestFocus(t *testing.T) {
	t.Parallel()
	focus := regexp.MustCompile(exactly([]string{"Drift disrupts (a)", "Drift b|c"}))
	for text, want := range map[string]bool{
		"Suite Drift disrupts (a)": true, "Suite Drift b|c": true, "Suite Drift disrupts (a) again": false, "Suite Drift b": false, "Suite NodeDrift b|c": false,
	} {
		if focus.MatchString(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"-bin b -report r -table t -part 2/5": "", "-bin b -report r -table t": "",
		"-bin b -report r -table t -part 6/5": "invalid -part", "-bin b -report r -table t -part x": "invalid -part", "-bin b -report r -table t -part 1/5x": "invalid -part", "-bin b": "-bin, -report and -table are needed", "-bin b -report r -table t -focus (": "reading -focus",
	} {
		if _, err := readOptions(strings.Fields(args)); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// The specs of a suite are asked for once, and again when it was built again.
func TestListed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o, program := options{reports: dir}, filepath.Join(dir, "provider-drift.test")
	write := func(path, text string, at time.Time) {
		t.Helper()
		err := os.WriteFile(path, []byte(text), 0o600)
		if err == nil {
			err = os.Chtimes(path, at, at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	write(program, "", now)
	if _, err := o.listed(program, "provider-drift"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before a dry run: %v", err)
	}
	for after, want := range map[time.Duration]bool{time.Second: true, -time.Second: false} {
		write(filepath.Join(dir, "provider-drift.list.json"), dryReport, now.Add(after))
		if specs, err := o.listed(program, "provider-drift"); (err == nil) != want || (len(specs) == 3) != want {
			t.Errorf("a report made %v after the program: %q, %v", after, specs, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package joinlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
)

// testdata/audit.log is what a kube-apiserver v1.36.3 wrote while one machine joined: a look at the CSRs, a client CSR
// created, approved and issued, the Node, a serving CSR; and then what is no step of the join: a serving CSR that is
// denied, a renewal of either certificate, and the Node once more, which fails.
const joined = "i-0123456789abcdef0"

func sample(t testing.TB) [][]byte {
	t.Helper()
	data, err := os.ReadFile("testdata/audit.log")
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(data), []byte("\n"))
}

func say(records []v1alpha1.JoinRecord) []string {
	var out []string
	for _, record := range records {
		out = append(out, fmt.Sprintf("%s %s", record.Step, record.Time.UTC().Format("05.000000")))
	}
	return out
}

// moment returns the seconds of a time of the n-th line of the sample.
func moment(t *testing.T, lines [][]byte, n int, key string) string {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(lines[n], &fields); err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, fields[key].(string))
	if err != nil {
		t.Fatal(err)
	}
	return at.UTC().Format("05.000000")
}

func TestTrackerOnRealLog(t *testing.T) {
	lines := sample(t)
	want := []string{
		"APIReached " + moment(t, lines, 0, "requestReceivedTimestamp"),
		"ClientCSRCreated " + moment(t, lines, 3, "stageTimestamp"),
		"ClientCSRApproved " + moment(t, lines, 4, "stageTimestamp"),
		"ClientCSRIssued " + moment(t, lines, 5, "stageTimestamp"),
		"NodeRegistered " + moment(t, lines, 6, "stageTimestamp"),
		"ServingCSRCreated " + moment(t, lines, 7, "stageTimestamp"),
		"ServingCSRApproved " + moment(t, lines, 8, "stageTimestamp"),
		"ServingCSRIssued " + moment(t, lines, 9, "stageTimestamp"),
	}
	tracker := NewTracker()
	var changed []int
	for i, line := range lines {
		if machine := tracker.Line(line); machine == joined {
			changed = append(changed, i)
		} else if machine != "" {
			t.Errorf("line %d is about machine %q", i, machine)
		}
	}
	if diff := cmp.Diff(want, say(tracker.Records(joined))); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{0, 3, 4, 5, 6, 7, 8, 9}, changed); diff != "" {
		t.Errorf("lines that add a step (-want +got):\n%s", diff)
	}
	// The same log read again, as after a restart of the follower, changes nothing.
	for i, line := range lines {
		if machine := tracker.Line(line); machine != "" {
			t.Errorf("line %d, read again, adds a step of %s", i, machine)
		}
	}
	if len(tracker.requests.entries) > 1 { // the denied one
		t.Errorf("CSRs remembered: %v", tracker.requests.entries)
	}
	tracker.Forget(joined)
	if got := tracker.Records(joined); got != nil {
		t.Errorf("after Forget: %v", got)
	}
	if len(tracker.requests.entries)+len(tracker.nodes.entries)+len(tracker.machines.entries) != 0 {
		t.Error("Forget left something behind")
	}
}

func TestTrackerIgnores(t *testing.T) {
	lines := sample(t)
	replaced := func(n int, old, with string) [][]byte {
		if !bytes.Contains(lines[n], []byte(old)) {
			t.Fatalf("line %d lacks %s", n, old)
		}
		return [][]byte{bytes.ReplaceAll(lines[n], []byte(old), []byte(with))}
	}
	tests := []struct {
		name  string
		lines [][]byte
	}{
		{"nothing", [][]byte{nil, []byte("{}"), []byte("null"), []byte("[]"), []byte("not JSON, certificatesigningrequests")}},
		{"another kind", replaced(3, `"kind":"Event"`, `"kind":"EventList"`)},
		{"a request that is not done", replaced(6, `"ResponseComplete"`, `"RequestReceived"`)},
		{"a token of no machine", replaced(3, "system:bootstrappers:muster:", "system:bootstrappers:other:certificatesigningrequests")},
		{"a machine's group without a bootstrap token", replaced(3, `"system:bootstrap:abcdef"`, `"eve"`)},
		{"a node's name without the group", replaced(6, `"system:nodes"`, `"others"`)},
		{"an approval of an unknown CSR", lines[4:5]},
		{"an issue of an unknown CSR", lines[5:6]},
		{"a Node of an unknown machine", lines[6:7]},
		{"a serving CSR of an unknown machine", lines[7:8]},
		{"no time", replaced(3, `"stageTimestamp"`, `"x"`)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tracker := NewTracker()
			for _, line := range test.lines {
				if machine := tracker.Line(line); machine != "" {
					t.Errorf("a step of %s: %v", machine, say(tracker.Records(machine)))
				}
			}
		})
	}
}

// A Node's name goes to another machine when the first is gone: the second machine's steps are its own.
func TestTrackerAddressReuse(t *testing.T) {
	const second = "i-fffffffffffffffff"
	lines := sample(t)
	tracker := NewTracker()
	for _, line := range lines {
		tracker.Line(line)
	}
	first := tracker.Records(joined)
	for _, line := range lines {
		text := strings.ReplaceAll(string(line), joined, second)
		text = strings.ReplaceAll(text, `"2026-`, `"2027-`)
		tracker.Line([]byte(text))
	}
	if diff := cmp.Diff(first, tracker.Records(joined)); diff != "" {
		t.Errorf("the first machine's steps changed (-before +after):\n%s", diff)
	}
	records := tracker.Records(second)
	if len(records) != len(first) {
		t.Errorf("the second machine's steps: %v", say(records))
	}
	for _, record := range records {
		if record.Time.Year() != 2027 {
			t.Errorf("%s is the first machine's", record.Step)
		}
	}
}

func TestTableIsBounded(t *testing.T) {
	var table table[int]
	for i := range 5 * maxTracked {
		table.put(fmt.Sprint(i), i)
		if i%2 == 0 {
			table.drop(fmt.Sprint(i))
		}
	}
	if len(table.entries) > maxTracked || len(table.order) > 2*maxTracked {
		t.Errorf("%d entries, %d keys", len(table.entries), len(table.order))
	}
	if _, ok := table.get(fmt.Sprint(5*maxTracked - 1)); !ok {
		t.Error("the newest entry is gone")
	}
}

func FuzzLine(f *testing.F) {
	for _, line := range sample(f) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		tracker := NewTracker()
		machine := tracker.Line(line)
		if machine != "" && len(tracker.Records(machine)) == 0 {
			t.Errorf("%q took a step and has none", machine)
		}
		if again := tracker.Line(line); again != "" {
			t.Errorf("the same line adds a step of %q twice", again)
		}
	})
}

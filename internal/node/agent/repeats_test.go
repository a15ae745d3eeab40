// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// A kubelet whose Node is not registered, as one wrote it for a minute: what it says besides can be found.
func TestRepeats(t *testing.T) {
	var in, out bytes.Buffer
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	r := &repeats{out: &out, said: map[string]*repeat{}, now: func() time.Time { return now }}
	line := func(text string) string {
		return fmt.Sprintf("E1122 %s   12345 %s\n", now.Format("15:04:05.000000"), text)
	}
	const mirror = `kubelet.go:3516] "Unable to register mirror pod because node is not registered yet" err="node \"a\" not found" node="a"`
	for tenth := range 600 {
		now = now.Add(100 * time.Millisecond)
		in.WriteString(line(mirror))
		if tenth%100 == 0 {
			in.WriteString(line(fmt.Sprintf("kubelet_node_status.go:74] attempt %d", tenth)))
			in.WriteString("\tno header\n")
		}
		if err := r.copyLines(&in); err != nil {
			t.Fatal(err)
		}
	}
	text := out.String()
	if n := strings.Count(text, "mirror pod"); n != 2 {
		t.Errorf("the line is there %d times:\n%s", n, text)
	}
	if !strings.Contains(text, "   12345 (299 lines like the next one were left out)\n") {
		t.Errorf("nothing is said of those that were left out:\n%s", text)
	}
	if strings.Count(text, "attempt") != 6 || strings.Count(text, "\tno header\n") != 6 {
		t.Errorf("other lines are missing:\n%s", text)
	}
}

// Lines that are not klog's, longer than any, or of ever new kinds, come through, in bounded memory.
func TestRepeatsAreBounded(t *testing.T) {
	var out bytes.Buffer
	r := &repeats{out: &out, said: map[string]*repeat{}, now: time.Now}
	long := strings.Repeat("x", 3*longestLine) + "\nend"
	if err := r.copyLines(strings.NewReader(long)); err != nil || out.String() != long {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
	for n := range 10 * repeatKinds {
		if r.written(fmt.Appendf(nil, "I1122 10:00:00.000000 1 x.go:1] %d\n", n)) == nil {
			t.Fatalf("line %d is left out", n)
		}
	}
	if len(r.said) > repeatKinds {
		t.Errorf("%d lines are remembered", len(r.said))
	}
}

// The kubelet's log goes that way, to its end.
func TestProgramRepeatsItself(t *testing.T) {
	a := newAgent(t)
	script(t, a, "kubelet", `i=0; while [ $i -lt 50 ]; do echo 'E1122 10:00:00.000000 1 kubelet.go:3516] "again"'; i=$((i+1)); done; echo bye`)
	p := &program{name: "kubelet", args: func() []string { return nil }, repeats: true}
	if err := a.once(t.Context(), p); err == nil || err.Error() != "exit status 0" {
		t.Errorf("it ended with %v", err)
	}
	raw, err := os.ReadFile(p.log(a))
	if err != nil || strings.Count(string(raw), "again") != 1 || !strings.HasSuffix(string(raw), "bye\n") {
		t.Errorf("the log is %q, %v", raw, err)
	}
}

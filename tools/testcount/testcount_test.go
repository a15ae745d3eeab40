// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	for name, tc := range map[string]struct {
		events                  string
		passed, failed, skipped int
		out                     string
	}{
		"nothing": {},
		"one of each": {
			events: `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"A","Output":"quiet\n"}
{"Action":"pass","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"B/b","Output":"why\n"}
{"Action":"fail","Package":"p","Test":"B/b"}
{"Action":"skip","Package":"p","Test":"C"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p","Elapsed":1.25}`,
			passed: 1, failed: 1, skipped: 1,
			out: "why\nFAIL  p  1.2 s, 1 of 3 failed\n",
		},
		"two packages at once": {
			events: `{"Action":"pass","Package":"p","Test":"A"}
{"Action":"pass","Package":"q","Test":"A"}
{"Action":"pass","Package":"p","Test":"B"}
{"Action":"pass","Package":"p","Elapsed":2}
{"Action":"pass","Package":"q","Elapsed":0.1}`,
			passed: 3,
			out:    "ok    p  2.0 s, 2 tests\nok    q  0.1 s, 1 tests\n",
		},
		"no test files": {events: `{"Action":"output","Package":"p","Output":"?   p\t[no test files]\n"}
{"Action":"skip","Package":"p"}`},
		"build fails": {
			events: `{"ImportPath":"p","Action":"build-output","Output":"x.go:1: broken\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p"}`,
			failed: 1,
			out:    "x.go:1: broken\nFAIL\tp [build failed]\nFAIL  p  0.0 s, 1 of 1 failed\n",
		},
		"ends in a test": {
			events: `{"Action":"pass","Package":"p","Test":"A"}
{"Action":"output","Package":"p","Test":"B","Output":"os.Exit called\n"}
{"Action":"fail","Package":"p"}`,
			passed: 1, failed: 1,
			out: "os.Exit called\nFAIL  p  0.0 s, 1 of 2 failed\n",
		},
		"other lines": {events: "# p\n{not json}\nlast", out: "# p\n{not json}\nlast\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, log bytes.Buffer
			r := newReport(&out, &log)
			for chunk := range slices.Chunk([]byte(tc.events), 7) { // lines come in pieces
				if _, err := r.Write(chunk); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.flush(); err != nil {
				t.Fatal(err)
			}
			if r.passed != tc.passed || r.failed != tc.failed || r.skipped != tc.skipped {
				t.Errorf("%d passed, %d failed, %d skipped; want %d, %d, %d", r.passed, r.failed, r.skipped, tc.passed, tc.failed, tc.skipped)
			}
			if out.String() != tc.out {
				t.Errorf("printed\n%s\nwant\n%s", out.String(), tc.out)
			}
		})
	}
}

func TestRun(t *testing.T) {
	const pass = `echo {"Action":"pass","Package":"p","Test":"A"}
echo {"Action":"output","Package":"p","Output":"detail\n"}
echo {"Action":"pass","Package":"p"}`
	const skip = pass + `
echo {"Action":"output","Package":"p","Test":"B","Output":"    b_test.go:7: there is no such program\\n"}
echo {"Action":"skip","Package":"p","Test":"B"}
echo {"Action":"skip","Package":"p","Test":"C"}
echo {"Action":"pass","Package":"p"}`
	// A second run of the same command would pass.
	const fail = `if [ -e "$0.ran" ]; then
` + pass + `
exit; fi; touch "$0.ran"
echo {"Action":"pass","Package":"p","Test":"B"}
echo {"Action":"fail","Package":"p","Test":"A"}
echo {"Action":"output","Package":"p","Output":"detail\n"}
echo {"Action":"fail","Package":"p"}
exit 1`
	script := func(lines string) string {
		path := filepath.Join(t.TempDir(), "script")
		quoted := strings.ReplaceAll(strings.ReplaceAll(lines, "echo ", "echo '"), "}", "}'")
		if err := os.WriteFile(path, []byte(quoted), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, tc := range map[string]struct {
		args []string
		last string
		says string
		err  error
	}{
		"passes":         {args: []string{"sh", script(pass)}, last: "1 passed, 0 failed, 0 skipped"},
		"two commands":   {args: []string{"sh", script(pass), "--", "sh", script(pass)}, last: "2 passed, 0 failed, 0 skipped"},
		"fails once":     {args: []string{"sh", script(fail)}, last: "1 passed, 1 failed, 0 skipped", says: "FAIL  p  0.0 s, 1 of 2 failed\n", err: errFailed},
		"command fails":  {args: []string{"false", "--", "sh", script(pass)}, last: "1 passed, 1 failed, 0 skipped", err: errFailed},
		"no such":        {args: []string{"/nonexistent"}, last: "0 passed, 1 failed, 0 skipped", err: errFailed},
		"skipped":        {args: []string{"sh", script(skip)}, last: "1 passed, 0 failed, 2 skipped", says: "NOT RUN p B: there is no such program\nNOT RUN p C: it does not say why\n"},
		"no test at all": {args: []string{"true"}, last: "0 passed, 0 failed, 0 skipped", err: errFailed},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log := filepath.Join(t.TempDir(), "logs", "test.log")
			err := run(t.Context(), append([]string{"-log", log, "--"}, tc.args...), &out)
			if !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if last := lines[len(lines)-1]; last != tc.last {
				t.Errorf("the last line is %q, want %q", last, tc.last)
			}
			if !strings.Contains(out.String(), tc.says) {
				t.Errorf("it says %q, not %q", out.String(), tc.says)
			}
			kept, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			if passes := strings.Contains(strings.Join(tc.args, " "), "script"); passes != strings.Contains(string(kept), "detail\n") {
				t.Errorf("the log holds %q", kept)
			}
		})
	}
}

// Earlier log lines of a test are not taken for the complaint that it failed for.
func TestExplainsByTheLastComplaints(t *testing.T) {
	var output strings.Builder
	for n := range 9 {
		fmt.Fprintf(&output, "    a_test.go:%d: step\n", n)
	}
	output.WriteString("    a_test.go:10: answers are wrong:\n        after 3 s: 503\n--- FAIL: A (1.00s)\n")
	r := newReport(io.Discard, io.Discard)
	r.output[test{"p", "A"}] = &output
	r.explain(test{"p", "A"})
	want := "  p A\n      a_test.go:5: step\n      a_test.go:6: step\n      a_test.go:7: step\n      a_test.go:8: step\n      a_test.go:10: answers are wrong: after 3 s: 503"
	if !slices.Equal(r.reasons, []string{want}) {
		t.Errorf("%q, not %q", r.reasons, want)
	}
}

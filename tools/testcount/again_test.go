// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// fails is what `go test -json` prints of a package with some tests that fail, at the end of a program.
func fails(status int, tests ...string) string {
	var b strings.Builder
	for _, name := range tests {
		fmt.Fprintf(&b, `{"Action":"output","Package":"p","Test":"%[1]s/sub","Output":"    x_test.go:7: why %[1]s\n"}
{"Action":"fail","Package":"p","Test":"%[1]s/sub"}
{"Action":"fail","Package":"p","Test":"%[1]s"}
`, name)
	}
	if status == 1 {
		b.WriteString(`{"Action":"output","Package":"p","Output":"FAIL\n"}` + "\n")
	}
	b.WriteString(`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}
{"Action":"fail","Package":"p"}
`)
	return b.String()
}

func TestAgain(t *testing.T) {
	const pass = `{"Action":"pass","Package":"p","Test":"A"}
{"Action":"pass","Package":"p"}
`
	for name, tc := range map[string]struct {
		first, second string
		arguments     string // of what is run again
		out           string
		err           error
	}{
		"passes the second time": {
			first: fails(1, "A"), second: pass, arguments: "test -json -p=1 -count=1 -run=^(A)$ p",
			out: "FLAKY p A: it failed, and passed when it was run again alone; the log has both\n2 passed, 0 failed, 0 skipped\n",
		},
		"four of them": {
			first: fails(1, "B", "A", "D", "C"), second: pass, arguments: "test -json -p=1 -count=1 -run=^(A|B|C|D)$ p",
			out: "8 passed, 0 failed, 0 skipped\n",
		},
		"fails again":           {first: fails(1, "A"), second: fails(1, "A"), arguments: "test -json -p=1 -count=1 -run=^(A)$ p", out: "2 failed, 0 skipped\n", err: errFailed},
		"is not there":          {first: fails(1, "A"), second: `{"Action":"pass","Package":"p"}`, arguments: "test -json -p=1 -count=1 -run=^(A)$ p", out: "2 failed, 0 skipped\n", err: errFailed},
		"five fail":             {first: fails(1, "A", "B", "C", "D", "E"), second: pass, out: "10 failed, 0 skipped\n", err: errFailed},
		"a panic":               {first: fails(2, "A"), second: pass, out: "2 failed, 0 skipped\n", err: errFailed},
		"a race":                {first: strings.Replace(fails(1, "A"), "why A", "why A\\n    testing.go:1: race detected during execution of test", 1), second: pass, out: "2 failed, 0 skipped\n", err: errFailed},
		"another package broke": {first: fails(1, "A") + `{"Action":"fail","Package":"q"}`, second: pass, out: "3 failed, 0 skipped\n", err: errFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			for file, text := range map[string]string{"first": tc.first, "second": tc.second, "script": `
if [ -e ran ]; then echo "$@" >again; cat second; ! grep -q '"fail"' second; exit; fi
touch ran; cat first; exit 1`} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			if err := run(t.Context(), []string{"-log", "log", "--", "sh", "script", "test", "-json", "-p=1", "./..."}, &out); !errors.Is(err, tc.err) {
				t.Errorf("error %v, want %v", err, tc.err)
			}
			if !strings.HasSuffix(out.String(), tc.out) || !strings.Contains(out.String(), "What failed, in short:\n  p ") || !strings.Contains(out.String(), "\n  p A/sub\n      x_test.go:7: why A\n") {
				t.Errorf("printed\n%s", &out)
			}
			if ran, err := os.ReadFile("again"); strings.TrimSpace(string(ran)) != tc.arguments || tc.arguments != "" && err != nil {
				t.Errorf("run again with %q (%v), want %q", ran, err, tc.arguments)
			}
		})
	}
}

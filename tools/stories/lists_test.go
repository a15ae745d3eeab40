// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var some = []story{{name: "TestA"}, {name: "TestB"}, {name: "TestSoak", soak: true}, {name: "TestNeeds", needs: "addons"}}

func TestReadCore(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"# a list\nTestB  # the path\nTestA\n": "",
		"TestC\n":                              "core.txt: there is no story TestC",
		"TestSoak\n":                           "core.txt: TestSoak needs more than `make build`, or is one of `make soak`",
		"TestNeeds\n":                          "core.txt: TestNeeds needs more than `make build`, or is one of `make soak`",
		"TestA\nTestB\nTestA\n":                "core.txt: TestA is listed twice",
	} {
		core, err := readCore(text, some)
		if got := message(err); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if want == "" && strings.Join(core, " ") != "TestB TestA" {
			t.Errorf("%q: %v", text, core)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestReadUnsteady(t *testing.T) {
	t.Parallel()
	commit := time.Date(2026, 12, 1, 23, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"TestA 2026-12-01 the kernel's timers drift\n": "",
		"TestA 2026-11-30 a cause\n":                   "unsteady.txt: TestA was to be mended by 2026-11-30, and this commit is of 2026-12-01: mend it or say why it takes longer",
		"TestA 2026-12-01\n":                           `unsteady.txt: "TestA 2026-12-01": want NAME YYYY-MM-DD CAUSE`,
		"TestA soon a cause\n":                         `unsteady.txt: TestA: "soon" is not a day: want YYYY-MM-DD`,
		"TestC 2026-12-24 a cause\n":                   "unsteady.txt: there is no story TestC",
		"TestB 2026-12-24 a cause\n":                   "unsteady.txt: TestB is a core story, which must be steady",
	} {
		list, err := readUnsteady(text, some, []string{"TestB"}, commit)
		if got := message(err); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if want == "" && (len(list) != 1 || list[0].cause != "the kernel's timers drift") {
			t.Errorf("%q: %+v", text, list)
		}
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "times.txt")
	if err := (times{"TestB": 12, "TestA": 7, "TestGone": 3}).write(path, some); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || string(raw) != timesHeader+"TestA 7\nTestB 12\n" {
		t.Errorf("written: %q (%v)", raw, err)
	}
	read, err := readTimes(string(raw))
	if err != nil || read.of("TestB") != 12*time.Second || read.of("TestNew") != unknownTime*time.Second {
		t.Errorf("read: %v (%v)", read, err)
	}
	for text, want := range map[string]string{"TestA\n": "want NAME SECONDS", "TestA -1\n": `"-1" is not a number of seconds`, "TestA x\n": `"x" is not`} {
		if _, err := readTimes(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

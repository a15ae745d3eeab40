// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/test/escape/places"
	"muster.dev/muster/test/escape/verdict"
)

func TestAttacksHaveStableNames(t *testing.T) {
	seen := map[string]bool{}
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	for _, a := range attacks() {
		if !kebab.MatchString(a.name) || seen[a.name] {
			t.Errorf("name %q is not a kebab-case name of its own", a.name)
		}
		seen[a.name] = true
		if a.tries == "" || a.prize == "" || a.run == nil {
			t.Errorf("%s does not say what it tries for which prize, or does nothing", a.name)
		}
		if strings.Contains(a.tries+a.prize, "\n") {
			t.Errorf("%s is told in more than a line", a.name)
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d attacks", len(seen))
	}
}

func TestRights(t *testing.T) {
	const mknod, admin = 1 << unix.CAP_MKNOD, 1 << unix.CAP_SYS_ADMIN
	for _, c := range []struct {
		names string
		have  capabilities
		want  string // names, or what the error says
	}{
		{"all", 0, "all"},
		{"plain,nested,all", 0, "plain nested all"},
		{"cap_mknod", mknod, "cap_mknod"},
		{"cap_mknod", admin, "without cap_mknod"},
		{"each", mknod | admin, "plain cap_sys_admin cap_mknod nested all"},
		{"each", 0, "plain nested all"},
		{"mknod", mknod, `"mknod" is not one of`},
		{"", mknod, `"" is not one of`},
	} {
		all, err := parseRights(c.names, c.have)
		var names []string
		for _, r := range all {
			names = append(names, r.name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != c.want || !strings.Contains(got, c.want) {
			t.Errorf("%q of %#x: %s, want %s", c.names, c.have, got, c.want)
		}
	}
	if n := len(capabilityNames()); n != unix.CAP_LAST_CAP+1 {
		t.Errorf("%d capabilities have names, the kernel's headers have %d", n, unix.CAP_LAST_CAP+1)
	}
	if name := capabilityNames()[unix.CAP_CHECKPOINT_RESTORE]; name != "cap_checkpoint_restore" {
		t.Errorf("capability %d is called %s", unix.CAP_CHECKPOINT_RESTORE, name)
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"-list", allHeld, "core-pattern "},
		{"-list -only=clock", allHeld, "clock "},
		{"-only=nothing", usageExit, `no attack "nothing"`},
		{"-rights=cap_none", usageExit, `"cap_none" is not one of`},
		{"-o=yaml", usageExit, `-o "yaml"`},
		{"clock", usageExit, `unexpected argument "clock"`},
		{"-nothing", usageExit, "-nothing"},
		{"-h", allHeld, "host-file"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(strings.Fields(c.args), &stdout, &stderr)
		if text := stdout.String() + stderr.String(); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("escape %s: exit status %d and %q, want %d and %q", c.args, code, text, c.code, c.want)
		}
	}
}

// The exit status follows the worst verdict.
func TestExitStatus(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		code int
		want string
	}{
		"nothing to try": {"-only=shared-secret -rights=plain", allHeld, `"not here"`},
		"out":            {"-only=io-uring -rights=plain", gotOut, `"out"`},
	} {
		var stdout, stderr bytes.Buffer
		code := run(append(strings.Fields(c.args), "-o=json"), &stdout, &stderr)
		if strings.Contains(stdout.String(), `"not here"`) && c.code == gotOut {
			continue // a kernel without it
		}
		if code != c.code || !strings.Contains(stdout.String(), c.want) {
			t.Errorf("%s: exit status %d and %s%s", name, code, stdout.String(), stderr.String())
		}
	}
}

// An attack that hangs, and one that ends without a word, are not held.
func TestAttacksWithoutVerdict(t *testing.T) {
	shared := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(shared, "token"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, where := range map[string]places.Map{"shared-secret": {Shared: shared}, "no-such-attack": {}} {
		v := try(attack{name: name}, right{name: "all", unchanged: true}, where, time.Second)
		if v.Outcome != verdict.Unclear || v.Why == "" {
			t.Errorf("%s: %q, %s", name, v.Outcome, v.Why)
		}
		t.Log(v.Why)
	}
	if left := children(); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// Processes that an attack leaves are ended, even if they left its process group.
func TestReap(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", "setsid sleep 600 >/dev/null 2>&1 &").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(children()) == 0 {
		t.Fatal("nothing was left")
	}
	reap()
	if left := children(); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestWays(t *testing.T) {
	missing, denied := unix.ENOSYS, os.ErrPermission
	for _, c := range []struct {
		errs []error
		want verdict.Outcome
	}{
		{nil, verdict.NotHere},
		{[]error{missing}, verdict.NotHere},
		{[]error{denied}, verdict.Held},
		{[]error{missing, denied, missing}, verdict.Held},
	} {
		var w ways
		for _, err := range c.errs {
			w.add("step", err)
		}
		if f := w.finding(); f.outcome != c.want || f.why == "" {
			t.Errorf("%v: %q (%s), want %q", c.errs, f.outcome, f.why, c.want)
		}
	}
	var w ways
	for _, step := range []string{"a", "b", "c", "d", "e", "f", "f"} {
		w.add(step, denied)
	}
	if got := w.summary(); !strings.HasSuffix(got, "; and 2 more refusals") {
		t.Errorf("the summary is %q", got)
	}
}

func TestTable(t *testing.T) {
	var text bytes.Buffer
	printTable(&text, []verdict.Verdict{
		{Attack: "a", Rights: "plain", Outcome: verdict.Held, Why: "no\nway"},
		{Attack: "a", Rights: "cap_x", Outcome: verdict.Held, Why: "no way"},
		{Attack: "a", Rights: "all", Outcome: verdict.Out, Why: "read it"},
		{Attack: "b", Rights: "plain", Outcome: verdict.NotHere, Why: "none"},
	})
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	want := [][]string{
		{"ATTACK", "OUTCOME", "RIGHTS", "WHY"},
		{"a", "held", "plain,cap_x", "no", "way"},
		{"a", "out", "all", "read", "it"},
		{"b", "not", "here", "plain", "none"},
		{"out:", "1,", "unclear:", "0,", "held:", "2,", "not", "here:", "1"},
	}
	for i, line := range lines {
		if i >= len(want) || !slices.Equal(strings.Fields(line), want[i]) {
			t.Errorf("line %d is %q", i+1, line)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d lines, want %d", len(lines), len(want))
	}
}

func TestMissing(t *testing.T) {
	for _, err := range []error{unix.ENOSYS, unix.ENODEV, errors.Join(os.ErrExist, unix.EAFNOSUPPORT)} {
		if !missing(err) {
			t.Errorf("%v is not missing", err)
		}
	}
	for _, err := range []error{unix.EPERM, unix.EACCES, unix.ENOENT, unix.EINVAL} {
		if missing(err) {
			t.Errorf("%v is missing", err)
		}
	}
}

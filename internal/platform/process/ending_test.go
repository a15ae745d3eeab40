// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"slices"
	"testing"
)

func TestThreads(t *testing.T) {
	t.Parallel()
	root := started(t, exec.Command("/usr/bin/sleep", "60"))
	if ending, users, err := Threads(root); ending || !slices.Equal(users, []uint32{uint32(os.Geteuid())}) || err != nil {
		t.Errorf("a process that runs: ending %t, users %v, %v", ending, users, err)
	}
	root = started(t, exec.Command("/usr/bin/true"))
	eventually(t, "its end", func() bool { stat, err := ReadStat(root); return err == nil && stat.State == 'Z' })
	if ending, users, err := Threads(root); !ending || len(users) > 0 || err != nil {
		t.Errorf("a process that has ended: ending %t, users %v, %v", ending, users, err)
	}
	if _, _, err := Threads(t.TempDir()); !os.IsNotExist(err) {
		t.Errorf("no process: %v", err)
	}
}

func TestParseStatus(t *testing.T) {
	t.Parallel()
	const user = "Uid:\t0\t1000\t0\t0\n"
	for raw, want := range map[string]status{
		"Name:\tx\nState:\tS (sleeping)\n" + user:                       {user: 1000},
		"State:\tZ (zombie)\n" + user:                                   {user: 1000, dead: true},
		"State:\tX (dead)\n" + user:                                     {user: 1000, dead: true},
		"State:\tD (disk sleep)\n" + user + "SigPnd:\t0000000000000100": {user: 1000, killed: true},
		"State:\tD (disk sleep)\n" + user + "ShdPnd:\t0000000000000100": {user: 1000, killed: true},
		user + "SigPnd:\t0000000000004000\nShdPnd:\t0000000000000001":   {user: 1000},
	} {
		if got, err := parseStatus(raw); got != want || err != nil {
			t.Errorf("%q: %+v, %v; want %+v", raw, got, err, want)
		}
	}
	for _, raw := range []string{"", "State:\tS (sleeping)\n", "Uid:\t0\tx\n", user + "SigPnd:\tx\n"} {
		if got, err := parseStatus(raw); err == nil {
			t.Errorf("%q: %+v", raw, got)
		}
	}
}

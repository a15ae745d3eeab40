// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strconv"
	"testing"
)

func TestIsInit(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		want   bool
	}{
		"a machine":              {"Name:\tmuster\nState:\tS (sleeping)\nNSpid:\t4711\t1\n", true},
		"of this namespace":      {"State:\tS (sleeping)\nNSpid:\t4711\n", false},
		"on a machine":           {"State:\tS (sleeping)\nNSpid:\t4711\t17\n", false},
		"a container's first":    {"State:\tS (sleeping)\nNSpid:\t4711\t17\t1\n", false},
		"a kernel without NSpid": {"State:\tS (sleeping)\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isInit(test.status); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestFacts(t *testing.T) {
	if memory, err := Memory(); err != nil || memory < 64<<20 {
		t.Errorf("memory: %d, %v", memory, err)
	}
	if kernel, err := Kernel(); err != nil || kernel == "" {
		t.Errorf("kernel: %q, %v", kernel, err)
	}
	if _, err := Capable(24); err != nil {
		t.Errorf("capability: %v", err)
	}
	if pids, err := PIDs(); err != nil || pids < 300 {
		t.Errorf("processes: %d, %v", pids, err)
	}
	if files, err := strconv.ParseUint(FileTable(), 10, 64); err != nil || files < 1000 {
		t.Errorf("open files: %q", FileTable())
	}
	if CPUs() < 1 {
		t.Errorf("%d processors", CPUs())
	}
}

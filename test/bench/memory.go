// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/internal/cluster/supervise"
	"muster.dev/muster/internal/platform/statedir"
)

// memory is the resident memory of processes, by name.
type memory struct {
	names []string
	kib   map[string][]int
}

// measureMemory reads VmRSS of every process of a state directory, those inside machines by the name of their program.
func measureMemory(dir statedir.Dir) (*memory, error) {
	m := &memory{kib: map[string][]int{}}
	found, err := supervise.Find(dir)
	if err != nil {
		return m, err
	}
	for _, p := range found {
		if !strings.HasPrefix(p.Name, "machine/") {
			m.add(p.Name, p.PID)
			continue
		}
		inside, err := machineProcesses(p.PID)
		if err != nil {
			return m, err
		}
		for pid, program := range inside {
			m.add("machine: "+program, pid)
		}
	}
	slices.Sort(m.names)
	return m, nil
}

func (m *memory) add(name string, pid int) {
	kib, err := resident(pid)
	if err != nil {
		return // it has ended meanwhile
	}
	if m.kib[name] == nil {
		m.names = append(m.names, name)
	}
	m.kib[name] = append(m.kib[name], kib)
}

// machineProcesses are the programs that run in the PID namespace of a machine's first process, containers not counted: they
// have namespaces of their own.
func machineProcesses(first int) (map[int]string, error) {
	namespace, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(first), "ns/pid"))
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	found := map[int]string{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if other, err := os.Readlink(filepath.Join("/proc", entry.Name(), "ns/pid")); err != nil || other != namespace {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil {
			continue
		}
		called, _, _ := bytes.Cut(raw, []byte{0})
		found[pid] = filepath.Base(string(called))
	}
	return found, nil
}

func resident(pid int) (int, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
		}
	}
	return 0, fmt.Errorf("process %d has no memory of its own", pid)
}

func (m *memory) print() error {
	w := newTable()
	_, _ = fmt.Fprintln(w, "memory (RSS)\tprocesses\tMiB each\tMiB\t")
	total := 0
	for _, name := range m.names {
		sum := 0
		for _, kib := range m.kib[name] {
			sum += kib
		}
		total += sum
		n := len(m.kib[name])
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", name, n, sum/n/1024, sum/1024)
	}
	_, _ = fmt.Fprintf(w, "total\t\t\t%d\t\n", total/1024)
	return w.Flush()
}

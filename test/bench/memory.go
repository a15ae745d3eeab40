// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/internal/cluster/guard"
	"muster.dev/muster/internal/platform/statedir"
)

// benchMemory measures the processes of an account with a cluster of three local machines and a load balancer.
func benchMemory(ctx context.Context, bin string) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up"); err != nil {
		return err
	}
	t.kubectl(ctx, "muster", "create", "service", "loadbalancer", "web", "--tcp=80:8080") // which the balancer is started for
	if err := pause(ctx, settleTime); err != nil {
		return err
	}
	m, err := measureMemory(t.state())
	if err != nil {
		return err
	}
	return m.print()
}

// held is the memory of a process in KiB: what is resident, how much of that is its own and of no file, and its share
// of all that is resident, with pages of programs divided among those that run them (proc_pid_smaps_rollup(5)).
type held struct{ resident, anonymous, proportional int }

// memory is the memory of processes, by name.
type memory struct {
	names []string
	kib   map[string][]held
}

// measureMemory reads the memory of every process of a state directory, those inside machines by the name of their
// program.
func measureMemory(dir statedir.Dir) (*memory, error) {
	m := &memory{kib: map[string][]held{}}
	found, err := guard.Running(dir)
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
	kib, err := memoryOf(pid)
	if err != nil {
		return // it has ended meanwhile
	}
	if m.kib[name] == nil {
		m.names = append(m.names, name)
	}
	m.kib[name] = append(m.kib[name], kib)
}

// machineProcesses are the programs that run in the PID namespace of a machine's first process, containers not counted:
// they have namespaces of their own.
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

func memoryOf(pid int) (held, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return held{}, err
	}
	var h held
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		into, ok := map[string]*int{"Rss": &h.resident, "Anonymous": &h.anonymous, "Pss": &h.proportional}[name]
		if !ok {
			continue
		}
		if *into, err = strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB"))); err != nil {
			return held{}, fmt.Errorf("%s of process %d: %w", name, pid, err)
		}
	}
	if h.resident == 0 {
		return held{}, fmt.Errorf("process %d has no memory of its own", pid)
	}
	return h, nil
}

func (m *memory) print() error {
	w := newTable()
	_, _ = fmt.Fprintln(w, "memory, MiB\tprocesses\tresident\tanonymous\tproportional\t")
	var total held
	for _, name := range m.names {
		var sum held
		for _, kib := range m.kib[name] {
			sum.resident, sum.anonymous, sum.proportional = sum.resident+kib.resident, sum.anonymous+kib.anonymous, sum.proportional+kib.proportional
		}
		total.resident, total.anonymous, total.proportional = total.resident+sum.resident, total.anonymous+sum.anonymous, total.proportional+sum.proportional
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t\n", name, len(m.kib[name]), sum.resident/1024, sum.anonymous/1024, sum.proportional/1024)
	}
	_, _ = fmt.Fprintf(w, "total\t\t%d\t%d\t%d\t\n", total.resident/1024, total.anonymous/1024, total.proportional/1024)
	return w.Flush()
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Limits bound what the processes of a control group have together. Zero is no bound.
type Limits struct {
	// CPUs is how many processors they run on at a time.
	CPUs int
	// Memory is in bytes. There is no swap beside it.
	Memory int64
}

// Limit bounds a control group that has been made and has no groups of its own yet. Processors are chosen and not shared out as time: version 1
// refuses a group more time than its parent has, so pods with a higher limit than their node could not start; and programs count the processors
// that they may run on. Chosen are those that the fewest neighbours have been given. A bound that the host does not reach is none.
func (c Cgroups) Limit(name string, l Limits) error {
	for _, h := range c.Hierarchies {
		if err := h.limit(name, c.Version(), l); err != nil {
			return fmt.Errorf("limiting control group: %w", err)
		}
	}
	return nil
}

func (h Hierarchy) limit(name string, version int, l Limits) error {
	dir := filepath.Join(h.MountPoint, name)
	unified := h.Unified && version == 2
	if l.CPUs > 0 && (unified || slices.Contains(h.Options, "cpuset")) {
		if err := chooseCPUs(dir, unified, l.CPUs); err != nil {
			return err
		}
	}
	if l.Memory <= 0 {
		return nil
	}
	bytes := strconv.FormatInt(l.Memory, 10)
	switch {
	case unified:
		return errors.Join(write(filepath.Join(dir, "memory.max"), bytes), unlessMissing(write(filepath.Join(dir, "memory.swap.max"), "0")))
	case slices.Contains(h.Options, "memory"):
		// The bound of memory and swap together cannot be below that of memory alone, at any moment. A kernel that does not count swap has none.
		return errors.Join(
			write(filepath.Join(dir, "memory.limit_in_bytes"), bytes),
			unlessMissing(write(filepath.Join(dir, "memory.memsw.limit_in_bytes"), bytes)),
		)
	}
	return nil
}

func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// chooseCPUs gives a group some of its parent's processors.
func chooseCPUs(dir string, unified bool, count int) error {
	parent := filepath.Dir(dir)
	file := "cpuset.cpus"
	if unified {
		file = "cpuset.cpus.effective"
	}
	offered, err := readCPUs(filepath.Join(parent, file))
	if err != nil {
		return err
	}
	if len(offered) <= count {
		return nil
	}
	taken := map[int]int{}
	neighbours, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, neighbour := range neighbours {
		if !neighbour.IsDir() || neighbour.Name() == filepath.Base(dir) {
			continue
		}
		cpus, err := readCPUs(filepath.Join(parent, neighbour.Name(), "cpuset.cpus")) // empty in version 2 where nobody chose
		if err != nil {
			continue // it goes at this moment
		}
		for _, cpu := range cpus {
			taken[cpu]++
		}
	}
	slices.SortStableFunc(offered, func(a, b int) int { return taken[a] - taken[b] })
	return write(filepath.Join(dir, "cpuset.cpus"), formatCPUs(offered[:count]))
}

// readCPUs reads a file with a list of processors, such as 0-3,8 (cpuset(7), "List format").
func readCPUs(path string) ([]int, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	cpus, err := ParseCPUs(strings.TrimSpace(string(raw)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cpus, nil
}

// maxCPU is beyond what a kernel can be built for.
const maxCPU = 1 << 16

// ParseCPUs reads a list of processors, such as 0-3,8, in the order of their numbers.
func ParseCPUs(list string) ([]int, error) {
	var cpus []int
	if list == "" {
		return cpus, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		from, to, ranged := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 16)
		last := first
		if ranged && err == nil {
			last, err = strconv.ParseUint(to, 10, 16)
		}
		if err != nil || last < first || last >= maxCPU {
			return nil, fmt.Errorf("invalid list of processors %.100q: want one like 0-3,8", list)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

func formatCPUs(cpus []int) string {
	cpus = slices.Sorted(slices.Values(cpus))
	words := make([]string, len(cpus))
	for i, cpu := range cpus {
		words[i] = strconv.Itoa(cpu)
	}
	return strings.Join(words, ",")
}

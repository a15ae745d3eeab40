// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits bound what the processes of a control group have together. Zero is no bound.
type Limits struct {
	// CPUs is how many processors they run on at a time.
	CPUs int
	// Memory is in bytes. There is no swap beside it.
	Memory int64
	// PIDs is how many processes there are at a time, each thread counted.
	PIDs int64
}

// ErrInUse says that a control group uses more than it may have. The group keeps its former bound: no process is ended
// for a new bound.
var ErrInUse = errors.New("more is in use")

// Limit bounds a control group. Processors are for one that has been made and has no groups of its own yet; they are
// chosen and not shared out as time: version 1 refuses a group more time than its parent has, so pods with a higher
// limit than their node could not start; and programs count the processors that they may run on. Chosen are those that
// the fewest neighbours have been given. A bound that the host does not reach is none.
//
// Memory and processes may be bounded anew while processes run. A bound below what they use is not set, and the error
// is [ErrInUse]; the others are.
func (c Cgroups) Limit(name string, l Limits) error {
	var errs []error
	for _, h := range c.Hierarchies {
		if err := h.limit(name, c.Version(), l); err != nil {
			errs = append(errs, fmt.Errorf("limiting control group %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

func (h Hierarchy) limit(name string, version int, l Limits) error {
	dir := filepath.Join(h.MountPoint, name)
	unified := h.Unified && version == 2
	var errs []error
	if l.CPUs > 0 && (unified || slices.Contains(h.Options, "cpuset")) {
		errs = append(errs, chooseCPUs(dir, unified, l.CPUs))
	}
	if l.PIDs > 0 && (unified || slices.Contains(h.Options, "pids")) {
		errs = append(errs, limitPIDs(dir, l.PIDs))
	}
	switch {
	case l.Memory <= 0:
	case unified:
		errs = append(errs, limitMemory2(dir, l.Memory))
	case slices.Contains(h.Options, "memory"):
		errs = append(errs, limitMemory1(dir, l.Memory))
	}
	return errors.Join(errs...)
}

// limitPIDs bounds processes. The kernel would let a group with more processes than a new bound run on, but start no
// further process: such a bound is refused.
func limitPIDs(dir string, most int64) error {
	used, err := readCount(filepath.Join(dir, "pids.current"))
	if err != nil {
		return err
	}
	if used > most {
		return fmt.Errorf("%w: %d processes with their threads, and %d are allowed", ErrInUse, used, most)
	}
	return write(filepath.Join(dir, "pids.max"), strconv.FormatInt(most, 10))
}

// limitMemory1 bounds memory on version 1, where the kernel refuses a bound that it cannot get the use of memory below.
func limitMemory1(dir string, most int64) error {
	bytes := strconv.FormatInt(most, 10)
	memory, both := filepath.Join(dir, "memory.limit_in_bytes"), filepath.Join(dir, "memory.memsw.limit_in_bytes")
	// The bound of memory and swap together cannot be below that of memory alone, at any moment: it is first where both
	// grow, and last where they shrink. A kernel that does not count swap has none.
	_ = write(both, bytes)
	before, err := readCount(memory)
	if err != nil {
		return err
	}
	err = write(memory, bytes)
	if err == nil {
		if err = unlessMissing(write(both, bytes)); err != nil { // pages that were swapped out for the bound of memory count on
			err = errors.Join(err, write(memory, strconv.FormatInt(before, 10)))
		}
	}
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("%w: memory that cannot be taken back, and %d bytes are allowed", ErrInUse, most)
	}
	return err
}

// limitMemory2 bounds memory on version 2, where the kernel ends processes until their memory is below the bound
// (cgroup-v2.rst, "memory.max"). Copies of files are given up before that.
func limitMemory2(dir string, most int64) error {
	used, err := readCount(filepath.Join(dir, "memory.current"))
	if err != nil {
		return err
	}
	if used > most {
		stat, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
		if err != nil {
			return err
		}
		if kept := used - copiesOfFiles(string(stat), ""); kept > most {
			return fmt.Errorf("%w: %d bytes of memory, and %d are allowed", ErrInUse, kept, most)
		}
	}
	return errors.Join(write(filepath.Join(dir, "memory.max"), strconv.FormatInt(most, 10)), unlessMissing(write(filepath.Join(dir, "memory.swap.max"), "0")))
}

// copiesOfFiles is how many bytes of a group's memory the kernel can take back: pages of files. Pages of tmpfs are not
// on the lists of such pages. The prefix is "total_" for a group of version 1 with all groups in it.
func copiesOfFiles(stat, prefix string) (bytes int64) {
	for line := range strings.Lines(stat) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != prefix+"active_file" && name != prefix+"inactive_file" {
			continue
		}
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			bytes += n
		}
	}
	return bytes
}

// Within is what the host, or the container that this process is in, lets all control groups have together. Zero is no
// bound: where there is no container, that is memory and processes of the host.
func (c Cgroups) Within() Limits {
	var l Limits
	for _, h := range c.Hierarchies {
		for file, bound := range map[string]*int64{"memory.max": &l.Memory, "memory.limit_in_bytes": &l.Memory, "pids.max": &l.PIDs} {
			// Version 1 says of memory without a bound a number beyond all memory.
			if n, err := readCount(filepath.Join(h.MountPoint, file)); err == nil && n < math.MaxInt64/2 {
				*bound = n
			}
		}
	}
	return l
}

// MemoryRoom is how many bytes of memory new programs can have: what the machine has available, or what the container
// that this process is in has left, if that is less.
func MemoryRoom() (int64, error) {
	room, err := MemoryAvailable()
	if err != nil {
		return 0, err
	}
	groups, err := ReadCgroups()
	if err != nil {
		return 0, err
	}
	if left, bounded := groups.memoryLeft(); bounded {
		room = min(room, left)
	}
	return room, nil
}

// memoryLeft is how many bytes of memory all control groups together may have beside what they use, without the copies of
// files that the kernel can take back; not bounded where Within has no bound.
func (c Cgroups) memoryLeft() (left int64, bounded bool) {
	bound := c.Within().Memory
	for _, h := range c.Hierarchies {
		for file, prefix := range map[string]string{"memory.current": "", "memory.usage_in_bytes": "total_"} {
			used, err := readCount(filepath.Join(h.MountPoint, file))
			if err != nil || bound == 0 {
				continue
			}
			stat, err := os.ReadFile(filepath.Join(h.MountPoint, "memory.stat"))
			if err == nil {
				used -= copiesOfFiles(string(stat), prefix)
			}
			return max(bound-used, 0), true
		}
	}
	return 0, false
}

// readCount reads a file with one number. The word max, for a group without a bound, is an error.
func readCount(path string) (int64, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
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

// CPUs returns the processors that a control group may run on, in the order of their numbers; nil where no hierarchy has
// processors.
func (c Cgroups) CPUs(name string) ([]int, error) {
	for _, h := range c.Hierarchies {
		switch {
		case h.Unified && c.Version() == 2:
			return readCPUs(filepath.Join(h.MountPoint, name, "cpuset.cpus.effective"))
		case slices.Contains(h.Options, "cpuset"):
			return readCPUs(filepath.Join(h.MountPoint, name, "cpuset.cpus"))
		}
	}
	return nil, nil
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

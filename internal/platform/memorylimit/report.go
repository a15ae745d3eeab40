// SPDX-License-Identifier: Apache-2.0

package memorylimit

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Report is what the kernel says of a group. Memory is in bytes, and includes the contents of files that the kernel
// keeps for the group.
type Report struct {
	Limit int64
	Used  int64
	// Peak is the most that was used at a time since the group was made. Where the kernel does not keep it (version 2
	// before Linux 5.19) it is the limit if that was reached, and what is used now if not.
	Peak int64
	// Ended counts the processes that the kernel ended since the group was made, and reached its limit.
	Ended int
}

// Report reads what the kernel says of the group. It is empty for a group that does not exist.
func (g Group) Report() (Report, error) {
	read := g.version1
	if g.unified {
		read = g.version2
	}
	report, err := read()
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, nil
	}
	if err != nil {
		return Report{}, fmt.Errorf("reading the memory of control group %s: %w", g.name, err)
	}
	return report, nil
}

// closeToLimit is how far below its limit a version 1 group may be, in bytes, when the kernel ends one of its
// processes: less is left than it wants at once, which is several pages.
const closeToLimit = 1 << 20

// version1 reads a group of version 1. Its counter of ended processes (Linux 4.13) also counts processes that were
// ended because the whole host ran out of memory. Ends at the limit are recognized by the memory that the group has
// used: failcnt, made for that, stays 0 with Linux 6.18.
func (g Group) version1() (Report, error) {
	var r Report
	for name, into := range map[string]*int64{"memory.limit_in_bytes": &r.Limit, "memory.usage_in_bytes": &r.Used, "memory.max_usage_in_bytes": &r.Peak} {
		var err error
		if *into, err = g.number(name); err != nil {
			return r, err
		}
	}
	if both, err := g.number("memory.memsw.max_usage_in_bytes"); err == nil { // a kernel that counts swap
		r.Peak = max(r.Peak, both)
	}
	ended, err := g.entries("memory.oom_control")
	if err != nil {
		return r, err
	}
	if r.Peak > r.Limit-closeToLimit {
		r.Ended = int(ended["oom_kill"])
	}
	return r, nil
}

func (g Group) version2() (Report, error) {
	var r Report
	for name, into := range map[string]*int64{"memory.max": &r.Limit, "memory.current": &r.Used} {
		var err error
		if *into, err = g.number(name); err != nil {
			return r, err
		}
	}
	events, err := g.entries("memory.events")
	if err != nil {
		return r, err
	}
	if events["oom"] > 0 {
		r.Ended = int(events["oom_kill"])
	}
	switch r.Peak, err = g.number("memory.peak"); {
	case err == nil || !errors.Is(err, fs.ErrNotExist):
	case events["oom"] > 0:
		r.Peak, err = r.Limit, nil
	default:
		r.Peak, err = r.Used, nil
	}
	return r, err
}

// number reads a file with one figure; "max" is the largest one.
func (g Group) number(name string) (int64, error) {
	raw, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		return 0, err
	}
	text := strings.TrimSpace(string(raw))
	if text == "max" {
		return math.MaxInt64, nil
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

// entries reads a file with a name and a figure on each line.
func (g Group) entries(name string) (map[string]int64, error) {
	raw, err := os.ReadFile(filepath.Join(g.dir, name))
	if err != nil {
		return nil, err
	}
	entries := map[string]int64{}
	for line := range strings.Lines(string(raw)) {
		key, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s has the line %q: want a name and a number", name, strings.TrimSpace(line))
		}
		entries[key] = value
	}
	return entries, nil
}

// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory is how many bytes of memory the machine has.
func Memory() (int64, error) { return readMemory("MemTotal") }

// MemoryAvailable is how many bytes of memory new programs can have before the machine would have to swap: the kernel's estimate, which
// counts memory that holds copies of files.
func MemoryAvailable() (int64, error) { return readMemory("MemAvailable") }

func readMemory(name string) (int64, error) {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("reading %s of this machine: %w", name, err)
	}
	bytes, err := memory(string(raw), name)
	if err != nil {
		return 0, fmt.Errorf("reading %s of this machine: /proc/meminfo %w", name, err)
	}
	return bytes, nil
}

// memory is one figure of /proc/meminfo (proc_meminfo(5)) in bytes.
func memory(meminfo, name string) (int64, error) {
	for line := range strings.Lines(meminfo) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != name+":" {
			continue
		}
		if len(fields) != 3 || fields[2] != "kB" {
			return 0, fmt.Errorf("has the line %q: want a number of kB", strings.TrimSpace(line))
		}
		kibibytes, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("has the line %q: %w", strings.TrimSpace(line), err)
		}
		return kibibytes << 10, nil
	}
	return 0, errors.New("has no such line")
}

// CPUs is how many processors this process may use.
func CPUs() int { return runtime.NumCPU() }

// Kernel is the kernel's release, as uname -r prints it.
func Kernel() (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", fmt.Errorf("asking for the kernel's release: %w", err)
	}
	return string(bytes.TrimRight(name.Release[:], "\x00")), nil
}

// Capable reports whether this process has a capability (unix.CAP_…), in effect.
func Capable(capability int) (bool, error) {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false, fmt.Errorf("reading capabilities: %w", err)
	}
	for line := range strings.Lines(string(raw)) {
		value, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return false, fmt.Errorf("reading capabilities: %w", err)
		}
		return mask>>uint(capability)&1 == 1, nil
	}
	return false, fmt.Errorf("reading capabilities: /proc/self/status has no CapEff")
}

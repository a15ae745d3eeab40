// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory is how many bytes of memory the machine has.
func Memory() (int64, error) {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("reading size of memory: %w", err)
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading size of memory: %w", err)
		}
		return kilobytes << 10, nil
	}
	return 0, fmt.Errorf("reading size of memory: /proc/meminfo has no MemTotal")
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

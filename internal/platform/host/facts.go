// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Memory is how many bytes of memory the machine has.
func Memory() (int64, error) { return readMemory("MemTotal") }

// MemoryAvailable is how many bytes of memory new programs can have before the machine would have to swap: the kernel's
// estimate, which counts memory that holds copies of files.
func MemoryAvailable() (int64, error) { return readMemory("MemAvailable") }

// MemoryDirty is how many bytes programs have written to files that are not on a disk yet.
func MemoryDirty() (int64, error) { return readMemory("Dirty") }

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

// PIDs is how many processes this host, or machine, may have at a time, each thread counted: kernel.pid_max or
// kernel.threads-max, whichever is less, as kubelets count them (pkg/kubelet/stats/pidlimit).
func PIDs() (int64, error) {
	var least int64
	for _, name := range []string{"pid_max", "threads-max"} {
		n, err := readCount("/proc/sys/kernel/" + name)
		if err != nil {
			return 0, fmt.Errorf("reading how many processes this machine may have: %w", err)
		}
		if least == 0 || n < least {
			least = n
		}
	}
	return least, nil
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

// InUserNamespace reports whether the ids of this process are not the host's: it has no rights there, whatever it has
// in its namespace.
func InUserNamespace() (bool, error) {
	raw, err := os.ReadFile("/proc/self/uid_map")
	if errors.Is(err, fs.ErrNotExist) { // a kernel without them
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the ids of this process: %w", err)
	}
	return !slices.Equal(strings.Fields(string(raw)), []string{"0", "0", "4294967295"}), nil
}

// Capable reports whether this process has a capability (unix.CAP_…), in effect, on the host.
func Capable(capability int) (bool, error) {
	if inside, err := InUserNamespace(); err != nil || inside {
		return false, err
	}
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

// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/machine/instancetype"
)

// shape is what a machine says it has. The zero shape is that of the host: a machine of no instance type, or one that
// nobody knows, says what the host has.
type shape struct {
	CPUs   int   `json:"cpus,omitempty"`
	Memory int64 `json:"memory,omitempty"` // in bytes
	// RunsOn are the numbers of the processors that its control group may run on, if they are known. The machine's own have
	// the same numbers: a program that binds itself to a processor, as a kubelet with the static CPU manager policy does
	// with containers, or that has an entry for each, takes them from there.
	RunsOn []int `json:"runsOn,omitempty"`
}

// shapeOf is the shape of an instance type.
func shapeOf(name string) shape {
	kind, err := instancetype.OfMachine(name)
	if err != nil {
		return shape{}
	}
	return shape{CPUs: kind.VCPUs, Memory: kind.MemoryBytes()}
}

// shapeDir holds the files of the kernel's that a machine of a shape has instead.
const shapeDir = "/run/muster/shape"

// mountShape lays files over those in which a kubelet finds the capacity of its node (cadvisor's machine.Info:
// processors are counted below /sys/devices/system/node, or cpu, by their topology; memory is MemTotal of
// /proc/meminfo). The host's are the kernel's, whatever control groups allow. A container has a /proc and a /sys of its
// own, where the host's figures are, as in containers on EC2 those of the instance.
func mountShape(order bootOrder) error {
	if order.Shape.CPUs == 0 {
		return nil
	}
	cpuinfo, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return err
	}
	for path, content := range order.Shape.files(string(cpuinfo)) {
		target := filepath.Join(shapeDir, path)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // G301: as the kernel's own
			return err
		}
		if err := os.WriteFile(target, []byte(content), 0o444); err != nil { //nolint:gosec // G306: as the kernel's own
			return err
		}
	}
	for _, path := range []string{"/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu", "/sys/devices/system/node"} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) { // a kernel without memory nodes
			continue
		}
		if err := unix.Mount(filepath.Join(shapeDir, path), path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s: %w", path, err)
		}
		if err := remount(path, unix.MS_RDONLY); err != nil {
			return err
		}
	}
	// A pod in a user namespace may mount sysfs only where one is seen that nothing covers, as with proc (mountRun).
	const whole = "/run/muster/sys"
	if err := os.Mkdir(whole, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("sysfs", whole, "sysfs", kernelFlags, ""); err != nil {
		return err
	}
	return remount(whole, unix.MS_RDONLY)
}

// files are the files of a machine of the shape, by their paths: one memory node with processors of two threads each.
// Memory is all free, as when the machine boots.
func (s shape) files(cpuinfo string) map[string]string {
	kibibytes := s.Memory >> 10
	own := s.own()
	all := ranges(own)
	files := map[string]string{
		"proc/cpuinfo": s.cpuinfo(cpuinfo),
		"proc/meminfo": fmt.Sprintf("MemTotal:       %8d kB\nMemFree:        %8[1]d kB\nMemAvailable:   %8[1]d kB\nSwapTotal:      %8d kB\nSwapFree:       %8[2]d kB\n", kibibytes, 0),

		"sys/devices/system/cpu/online": all + "\n", "sys/devices/system/cpu/possible": all + "\n", "sys/devices/system/cpu/present": all + "\n",
		"sys/devices/system/cpu/offline": "\n",

		"sys/devices/system/node/online": "0\n", "sys/devices/system/node/possible": "0\n",
		"sys/devices/system/node/node0/cpulist": all + "\n", "sys/devices/system/node/node0/distance": "10\n",
		"sys/devices/system/node/node0/meminfo": fmt.Sprintf("Node 0 MemTotal:       %8d kB\nNode 0 MemFree:        %8[1]d kB\n", kibibytes),
	}
	for i := range s.CPUs {
		for _, parent := range []string{"sys/devices/system/cpu", "sys/devices/system/node/node0"} {
			topology := filepath.Join(parent, directory(own, i), "topology")
			files[filepath.Join(topology, "core_id")] = strconv.Itoa(core(len(own), i)) + "\n"
			files[filepath.Join(topology, "physical_package_id")] = "0\n"
		}
	}
	return files
}

// directory is the name of the directory of a processor, by its place. A kubelet writes the numbers of all that it finds into a
// control group (getCgroupConfig of its container manager), and the kernel refuses a number that the host does not have:
// processors beyond the host's are the same again with zeros before their numbers, which cadvisor counts as processors of their own.
func directory(own []int, place int) string {
	return "cpu" + strings.Repeat("0", place/len(own)) + strconv.Itoa(own[place%len(own)])
}

// core is the core of one of a machine's processors, by its place, where the machine has so many of the host's. No core has a number
// twice, which a kubelet refuses.
func core(own, place int) int {
	cores := (own + instancetype.ThreadsPerCore - 1) / instancetype.ThreadsPerCore
	return place/own*cores + place%own/instancetype.ThreadsPerCore
}

// own are the numbers of the host's processors that it runs on, sorted, at most as many as it has; if they are not known, the
// lowest numbers.
func (s shape) own() []int {
	if len(s.RunsOn) == 0 {
		return s.numbers()
	}
	return slices.Sorted(slices.Values(s.RunsOn[:min(len(s.RunsOn), s.CPUs)]))
}

// numbers are the numbers in /proc/cpuinfo, sorted: of the processors that it runs on, and the lowest others where it has more.
func (s shape) numbers() []int {
	numbers := slices.Clone(s.RunsOn[:min(len(s.RunsOn), s.CPUs)])
	for cpu := 0; len(numbers) < s.CPUs; cpu++ {
		if !slices.Contains(numbers, cpu) {
			numbers = append(numbers, cpu)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// ranges is a list of processors as the kernel writes it, such as 0-3,8.
func ranges(sorted []int) string {
	var parts []string
	for from := 0; from < len(sorted); {
		to := from
		for to+1 < len(sorted) && sorted[to+1] == sorted[to]+1 {
			to++
		}
		part := strconv.Itoa(sorted[from])
		if to > from {
			part += "-" + strconv.Itoa(sorted[to])
		}
		parts, from = append(parts, part), to+1
	}
	return strings.Join(parts, ",")
}

// cpuinfo is the kernel's description of the first processor, once for each of the machine's.
func (s shape) cpuinfo(kernel string) string {
	first, _, _ := strings.Cut(kernel, "\n\n")
	var text strings.Builder
	for i, cpu := range s.numbers() {
		for line := range strings.SplitSeq(strings.TrimSuffix(first, "\n"), "\n") {
			key, _, _ := strings.Cut(line, ":")
			var value string
			switch strings.TrimSpace(key) {
			case "processor", "apicid", "initial apicid":
				value = strconv.Itoa(cpu)
			case "core id":
				value = strconv.Itoa(i / instancetype.ThreadsPerCore)
			case "physical id":
				value = "0"
			case "siblings":
				value = strconv.Itoa(s.CPUs)
			case "cpu cores":
				value = strconv.Itoa((s.CPUs-1)/instancetype.ThreadsPerCore + 1)
			default:
				text.WriteString(line + "\n")
				continue
			}
			text.WriteString(key + ": " + value + "\n")
		}
		text.WriteString("\n")
	}
	return text.String()
}

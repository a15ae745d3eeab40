// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Hierarchy is one tree of control groups: a version 1 tree with its controllers, or the version 2 tree.
type Hierarchy struct {
	// MountPoint is where the tree is mounted.
	MountPoint string `json:"mountPoint"`
	// Options that mount this tree again: its version 1 controllers, or its name. Empty for version 2.
	Options []string `json:"options,omitempty"`
	// Unified means a version 2 tree.
	Unified bool `json:"unified,omitempty"`
}

// Cgroups are all hierarchies of a host. On a hybrid host both versions are mounted, and version 1 has the controllers.
type Cgroups struct {
	Hierarchies []Hierarchy `json:"hierarchies"`
}

// required lists the controllers without which a kubelet does not start
// (k8s.io/kubernetes/pkg/kubelet/cm/container_manager_linux.go, validateSystemRequirements), and pids, which it limits.
func required(version int) []string {
	if version == 2 {
		return []string{"cpu", "cpuset", "memory", "pids"}
	}
	return []string{"cpu", "cpuacct", "cpuset", "memory", "pids"}
}

// delegated lists the version 2 controllers that are handed down to machines where the host has them. Memory is first:
// a group with processes refuses it at once, but takes cpu, cpuset and pids, and is a threaded domain from then on
// (cgroup-v2.rst, "Threads").
func delegated() []string {
	return []string{"memory", "cpu", "cpuset", "hugetlb", "io", "pids", "rdma"}
}

// ReadCgroups finds the hierarchies that are mounted in the caller's mount namespace.
func ReadCgroups() (Cgroups, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return Cgroups{}, fmt.Errorf("finding control groups: %w", err)
	}
	defer func() { _ = file.Close() }()
	return ParseCgroups(file)
}

// ParseCgroups finds the hierarchies in the text of a mountinfo file (proc_pid_mountinfo(5)).
func ParseCgroups(mountinfo io.Reader) (Cgroups, error) {
	var found Cgroups
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		mount, source := strings.Fields(before), strings.Fields(after)
		if !ok || len(mount) < 5 || len(source) < 3 {
			continue
		}
		h := Hierarchy{MountPoint: unescape(mount[4])}
		switch source[0] {
		case "cgroup2":
			h.Unified = true
		case "cgroup":
			for option := range strings.SplitSeq(source[2], ",") {
				if isController(option) {
					h.Options = append(h.Options, option)
				}
			}
			if len(h.Options) == 0 {
				continue
			}
			slices.Sort(h.Options)
		default:
			continue
		}
		// The same tree may be mounted twice; the first mount is the one everybody uses.
		same := func(other Hierarchy) bool {
			return other.Unified == h.Unified && slices.Equal(other.Options, h.Options)
		}
		if !slices.ContainsFunc(found.Hierarchies, same) {
			found.Hierarchies = append(found.Hierarchies, h)
		}
	}
	if err := lines.Err(); err != nil {
		return Cgroups{}, fmt.Errorf("finding control groups: %w", err)
	}
	return found, nil
}

// isController tells a controller (or a tree's name) from the other super options of a version 1 mount.
func isController(option string) bool {
	switch option {
	case "rw", "ro", "xattr", "noprefix", "clone_children", "cpuset_v2_mode", "favordynmods":
		return false
	}
	return !strings.HasPrefix(option, "release_agent=")
}

// unescape undoes the octal escapes of white space in mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// Version is 2 where version 2 has the controllers, and 1 on version 1 and hybrid hosts.
func (c Cgroups) Version() int {
	for _, h := range c.Hierarchies {
		if !h.Unified && !strings.HasPrefix(h.Options[0], "name=") {
			return 1
		}
	}
	return 2
}

// Missing lists the controllers that a node needs and the host does not offer.
func (c Cgroups) Missing() ([]string, error) {
	var have []string
	for _, h := range c.Hierarchies {
		if !h.Unified {
			have = append(have, h.Options...)
			continue
		}
		if c.Version() == 2 {
			available, err := h.available()
			if err != nil {
				return nil, err
			}
			have = append(have, available...)
		}
	}
	return slices.DeleteFunc(required(c.Version()), func(name string) bool { return slices.Contains(have, name) }), nil
}

// With is the one hierarchy that has a controller; it has none if this host does not.
func (c Cgroups) With(controller string) (Cgroups, error) {
	for _, h := range c.Hierarchies {
		if slices.Contains(h.Options, controller) {
			return Cgroups{Hierarchies: []Hierarchy{h}}, nil
		}
	}
	for _, h := range c.Hierarchies {
		if !h.Unified {
			continue
		}
		available, err := h.available()
		if err != nil {
			return Cgroups{}, err
		}
		if slices.Contains(available, controller) {
			return Cgroups{Hierarchies: []Hierarchy{h}}, nil
		}
	}
	return Cgroups{}, nil
}

// available lists the controllers that the version 2 tree has.
func (h Hierarchy) available() ([]string, error) {
	raw, err := os.ReadFile(filepath.Join(h.MountPoint, "cgroup.controllers"))
	if err != nil {
		return nil, fmt.Errorf("reading controllers of %s: %w", h.MountPoint, err)
	}
	return strings.Fields(string(raw)), nil
}

// Create makes the control group at name ("/a/b") in every hierarchy, ready for processes and for groups of its own.
func (c Cgroups) Create(name string) error {
	for _, h := range c.Hierarchies {
		err := h.create(name, c.Version())
		// A process that removes a neighbour of the group at the same moment takes the parent away while it is still
		// empty.
		for range 100 {
			if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENODEV) {
				break
			}
			err = h.create(name, c.Version())
		}
		if err != nil {
			return fmt.Errorf("making control group: %w", err)
		}
	}
	return nil
}

func (h Hierarchy) create(name string, version int) error {
	dir := h.MountPoint
	for part := range strings.SplitSeq(strings.Trim(path.Clean(name), "/"), "/") {
		if h.Unified && version == 2 {
			if err := h.enable(dir); err != nil {
				return err
			}
		}
		parent := dir
		dir = filepath.Join(dir, part)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // G301: modes of control groups are shown to everybody
			return err
		}
		if slices.Contains(h.Options, "memory") { // before Linux 5.11 a group counts those below it only if it is told to
			_ = write(filepath.Join(dir, "memory.use_hierarchy"), "1")
		}
		if slices.Contains(h.Options, "cpuset") {
			if err := inheritCpuset(parent, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// enable hands a group's controllers down to its children. A version 2 group other than the root may not have both
// processes and controllers for its children (cgroup-v2.rst, "No Internal Process Constraint").
func (h Hierarchy) enable(dir string) error {
	available, err := h.available()
	if err != nil {
		return err
	}
	for _, controller := range delegated() {
		if !slices.Contains(available, controller) {
			continue
		}
		err := write(filepath.Join(dir, "cgroup.subtree_control"), "+"+controller)
		if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EOPNOTSUPP) { // it has processes, or is a threaded domain by them
			return fmt.Errorf("%w: processes run in %s itself, so its controllers cannot be handed down; "+
				"give muster's caller a control group of its own (in a container: start it with an init that does)", err, dir)
		}
		if err != nil && slices.Contains(required(2), controller) {
			return err
		}
	}
	return nil
}

// inheritCpuset fills in what a new version 1 cpuset lacks: no process may enter one without processors and memory
// nodes.
func inheritCpuset(parent, dir string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if strings.TrimSpace(string(own)) != "" {
			continue
		}
		inherited, err := os.ReadFile(filepath.Join(parent, name))
		if err != nil {
			return err
		}
		if err := write(filepath.Join(dir, name), strings.TrimSpace(string(inherited))); err != nil {
			return err
		}
	}
	return nil
}

// leaf is the group below a machine's own that its processes outside pods are in, on version 2 only.
const leaf = "init.scope"

// Enter moves a process into the control group at name in every hierarchy.
func (c Cgroups) Enter(name string, pid int) error {
	for _, h := range c.Hierarchies {
		if err := write(filepath.Join(h.MountPoint, name, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("moving process %d into control group: %w", pid, err)
		}
	}
	return nil
}

// Give lets a user of the host make groups below the one at name in every hierarchy, and move processes into it and
// them (cgroup-v2.rst, "Model of Delegation"). The bounds of the group itself stay the caller's.
func (c Cgroups) Give(name string, uid int) error {
	for _, h := range c.Hierarchies {
		dir := filepath.Join(h.MountPoint, name)
		for _, file := range []string{".", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads", "tasks"} {
			if err := os.Lchown(filepath.Join(dir, file), uid, uid); err != nil && (file == "." || !errors.Is(err, fs.ErrNotExist)) {
				return fmt.Errorf("giving control group away: %w", err)
			}
		}
	}
	return nil
}

// Delegate turns the version 2 group at dir, whose processes the caller owns, into one that can have groups with
// controllers below it: its processes move into the leaf.
func Delegate(dir string) error {
	h := Hierarchy{MountPoint: dir, Unified: true}
	inner := filepath.Join(dir, leaf)
	if err := os.Mkdir(inner, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // G301: modes of control groups are shown to everybody
		return fmt.Errorf("making control group: %w", err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return fmt.Errorf("listing processes of control group: %w", err)
	}
	for pid := range strings.FieldsSeq(string(raw)) {
		if err := write(filepath.Join(inner, "cgroup.procs"), pid); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("moving process %s into control group: %w", pid, err)
		}
	}
	if err := h.enable(dir); err != nil {
		return fmt.Errorf("handing down controllers: %w", err)
	}
	return nil
}

// Remove removes the control group at name and all below it from every hierarchy, and empty parents. Groups stay busy
// for a moment after their last process has gone, so it tries until the time given is over.
func (c Cgroups) Remove(name string, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for _, h := range c.Hierarchies {
		dir := filepath.Join(h.MountPoint, name)
		for {
			err := removeGroup(dir)
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("removing control group: %w", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		for parent := path.Dir(path.Clean(name)); parent != "/" && parent != "."; parent = path.Dir(parent) {
			if os.Remove(filepath.Join(h.MountPoint, parent)) != nil { // another machine is in it
				break
			}
		}
	}
	return nil
}

// removeGroup removes a directory of a cgroup file system: its files cannot be removed, and go with it.
func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeGroup(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

// write writes one value to a file of the kernel's, in one write.
func write(name, value string) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

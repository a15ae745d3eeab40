// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

func settingAttacks() []attack {
	var all []attack
	for _, one := range []struct{ name, path, prize string }{
		{"core-pattern", "sys/kernel/core_pattern", "a program that the host's root runs when anything crashes"},
		{"modprobe-path", "sys/kernel/modprobe", "a program that the host's root runs when a module is missing"},
		{"hotplug-path", "sys/kernel/hotplug", "a program that the host's root runs when a device comes"},
		{"power-off-command", "sys/kernel/poweroff_cmd", "a program that the host's root runs when it is switched off"},
		{"key-request-limits", "sys/kernel/keys/root_maxkeys", "how many keys the host's root may have"},
		{"inotify-limit", "sys/fs/inotify/max_user_instances", "how many inotify instances each user of the host may have"},
		{"overcommit", "sys/vm/overcommit_memory", "when the host's programs get no memory"},
		{"panic", "sys/kernel/panic", "what the host does when its kernel panics"},
	} {
		all = append(all, attack{
			one.name, "opens /proc/" + one.path + " (as mounted, remounted, cloned, in a proc of its own) and writes what it says", one.prize,
			func(w *world) finding { return writeSetting(w, one.path) },
		})
	}
	return append(all, []attack{
		{
			"kernel-settings", "opens every setting below /proc/sys that is the whole kernel's for writing, and writes nothing",
			"the host's settings", kernelSettings,
		},
		{
			"kernel-files-written", "opens sysrq-trigger, irq and other files of /proc for writing, and writes nothing",
			"reboots, interrupts and memory ranges of the host", kernelFilesWritten,
		},
		{
			"kernel-files-read", "reads files of /proc that are for root alone (kcore, kpagecount, slabinfo, …)",
			"memory of the host", kernelFilesRead,
		},
		{
			"kernel-objects", "opens every file of /sys for writing that is not its network's, and writes nothing",
			"the host's devices and drivers", kernelObjects,
		},
		{
			"uevent-helper", "opens /sys/kernel/uevent_helper for writing",
			"a program that the host's root runs when a device comes", ueventHelper,
		},
		{
			"program-formats", "opens the register of binfmt_misc for writing",
			"an interpreter that programs of the host are run by", programFormats,
		},
	}...)
}

// views opens the root of a file system of the kernel in every way there is: as it is mounted, mounted anew, cloned
// without its flags and without what lies over it, and remounted writable. Each is made when its turn comes, since the
// last one changes what the first one sees.
func (w *world) views(kind, at string) iter.Seq2[string, viewRoot] {
	return func(yield func(string, viewRoot) bool) {
		for _, way := range []struct {
			how  string
			open func(kind, at string) (int, error)
		}{
			{"as it is mounted", func(_, at string) (int, error) { return unix.Open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) }},
			{"a " + kind + " of its own", func(kind, _ string) (int, error) { return detached(kind) }},
			{"a clone of the mount", clonedWritable},
			{"remounted", w.remounted},
		} {
			fd, err := way.open(kind, at)
			if !yield(way.how, viewRoot{fd, err}) {
				return
			}
		}
	}
}

// viewRoot is a root, or why there is none.
type viewRoot struct {
	fd  int
	err error
}

func clonedWritable(_, at string) (int, error) {
	clone, err := unix.OpenTree(unix.AT_FDCWD, at, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, err
	}
	return clone, clearedFlags(clone, "", unix.AT_EMPTY_PATH)
}

func (w *world) remounted(kind, at string) (int, error) {
	paths := []string{at}
	if kind == "proc" {
		paths = append(paths, at+"/sys")
	}
	for _, path := range paths {
		if err := w.mount("", path, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return -1, err
		}
	}
	return unix.Open(at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

// through opens a path below each view until a function is satisfied with it.
func (w *world) through(kind, at, path string, flags int, look func(how string, fd int) (finding, error)) finding {
	var tried ways
	for how, root := range w.views(kind, at) {
		if root.err != nil {
			tried.add(how, root.err)
			continue
		}
		fd, err := unix.Openat(root.fd, path, flags|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			err = unix.ENODEV // this kernel has no such file
		}
		if err != nil {
			tried.add(how, err)
			continue
		}
		f, err := look(how, fd)
		_ = unix.Close(fd)
		if err == nil {
			return f
		}
		tried.add(how, err)
	}
	return tried.finding()
}

// isOf reports whether an open file is one of a kernel's file system, and not one that lies over it.
func isOf(fd int, magic int64) bool {
	var stat unix.Statfs_t
	return unix.Fstatfs(fd, &stat) == nil && stat.Type == magic
}

// writeSetting writes to a setting what it says already.
func writeSetting(w *world, path string) finding {
	return w.through("proc", "/proc", path, unix.O_RDWR, func(how string, fd int) (finding, error) {
		value := readFD(fd)
		if !isOf(fd, unix.PROC_SUPER_MAGIC) {
			return finding{}, fmt.Errorf("a file of the machine lies over it: %w", unix.EPERM)
		}
		if value == nil {
			return out("%s: opened /proc/%s for writing", how, path), nil
		}
		if _, err := unix.Pwrite(fd, value, 0); err != nil {
			return finding{}, fmt.Errorf("writing what it says: %w", err)
		}
		return out("%s: wrote %q to /proc/%s, which said so", how, bytes.TrimSpace(value), path), nil
	})
}

// ofNamespace are settings below /proc/sys that belong to a namespace of the machine's own.
var ofNamespace = []string{
	"net/", "user/", "fs/mqueue/", "kernel/hostname", "kernel/domainname", "kernel/ns_last_pid", "kernel/pid_max", "kernel/sem", "kernel/shm", "kernel/msg",
	"kernel/auto_msgmni", "kernel/sem_next_id", "fs/binfmt_misc/",
}

// search looks for files that can be opened.
type search struct {
	flags int
	skip  func(name string) bool

	names []string // that were opened, the first of them
	tried ways
}

// enough is how many files that can be opened show that others can be, too.
const enough = 5

// below looks through a directory that is open. Files are opened where they lie, since a kernel's file system has tens
// of thousands.
func (s *search) below(root int, path, name string) {
	fd, err := unix.Openat(root, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		s.tried.add("opening directories", err)
		return
	}
	dir := os.NewFile(uintptr(fd), name)
	defer func() { _ = dir.Close() }()
	entries, _ := dir.ReadDir(-1) // entries that go meanwhile are missing
	for _, entry := range entries {
		at := filepath.Join(name, entry.Name())
		switch {
		case len(s.names) == enough:
			return
		case s.skip(at) || s.skip(at+"/"):
		case entry.IsDir():
			s.below(fd, entry.Name(), at)
		case entry.Type().IsRegular():
			s.open(fd, entry.Name(), at)
		}
	}
}

func (s *search) open(dir int, file, name string) {
	fd, err := unix.Openat(dir, file, s.flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		s.tried.add("opening files", err)
		return
	}
	defer func() { _ = unix.Close(fd) }()
	if isOf(fd, unix.PROC_SUPER_MAGIC) || isOf(fd, unix.SYSFS_MAGIC) {
		s.names = append(s.names, name)
	}
}

func begins(prefixes []string) func(string) bool {
	return func(name string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	}
}

// sweep looks for files that can be opened for writing in every view of a kernel's file system.
func (w *world) sweep(kind, at, below string, skip []string) finding {
	var tried ways
	for how, root := range w.views(kind, at) {
		if root.err != nil {
			tried.add(how, root.err)
			continue
		}
		s := search{flags: unix.O_WRONLY, skip: begins(skip)}
		s.below(root.fd, below, "")
		if len(s.names) > 0 {
			return out("%s: opened files of the whole kernel: %s", how, strings.Join(s.names, ", "))
		}
		for _, refusal := range s.tried.refusals {
			tried.add(how, errors.New(refusal))
		}
	}
	return tried.finding()
}

func kernelSettings(w *world) finding {
	return w.sweep("proc", "/proc", "sys", ofNamespace)
}

func kernelObjects(w *world) finding {
	// Network devices are the machine's own. Files of other file systems below /sys are other attacks'.
	return w.sweep("sysfs", "/sys", ".", []string{"class/net", "devices/virtual/net", "fs/", "kernel/debug", "kernel/tracing", "kernel/security"})
}

// oneOf opens files of /proc by their paths.
func (w *world) oneOf(flags int, what string, paths ...string) finding {
	var tried ways
	for how, root := range w.views("proc", "/proc") {
		if root.err != nil {
			tried.add(how, root.err)
			continue
		}
		for _, pattern := range paths {
			found, _ := filepath.Glob(fmt.Sprintf("/proc/self/fd/%d/%s", root.fd, pattern)) // the pattern is good
			for _, path := range found {
				if err := usable(path, flags); err != nil {
					tried.add(how+": "+pattern, err)
					continue
				}
				return out("%s: %s %s", how, what, pattern)
			}
		}
	}
	return tried.finding()
}

// usable opens a file of /proc, and reads it if it is opened for reading.
func usable(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if !isOf(fd, unix.PROC_SUPER_MAGIC) {
		return fmt.Errorf("a file of the machine lies over it: %w", unix.EPERM)
	}
	if flags == unix.O_RDONLY && len(readFD(fd)) == 0 {
		return fmt.Errorf("reading it: %w", unix.EACCES)
	}
	return nil
}

func kernelFilesWritten(w *world) finding {
	return w.oneOf(unix.O_WRONLY, "opened for writing", "sysrq-trigger", "irq/default_smp_affinity", "irq/*/smp_affinity", "mtrr", "bus/pci/*/*", "acpi/wakeup", "slabinfo", "timer_stats")
}

func kernelFilesRead(w *world) finding {
	return w.oneOf(unix.O_RDONLY, "read", "kcore", "kpagecount", "kpageflags", "slabinfo", "vmallocinfo", "timer_list", "pagetypeinfo")
}

func ueventHelper(w *world) finding {
	return w.through("sysfs", "/sys", "kernel/uevent_helper", unix.O_WRONLY, func(how string, _ int) (finding, error) {
		return out("%s: opened kernel/uevent_helper for writing", how), nil
	})
}

func programFormats(w *world) finding {
	root, err := detached("binfmt_misc")
	if err != nil {
		return refused("mounting binfmt_misc", err)
	}
	fd, err := unix.Openat(root, "register", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening its register", err)
	}
	_ = unix.Close(fd)
	own, err := unix.Open("/proc/self/ns/user", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening its own user namespace", err)
	}
	if !initialUser(own) { // which has formats of its own since Linux 6.7, and could not mount them before
		return held("the formats are those of the machine's own user namespace")
	}
	return out("opened the register of the host's formats for writing")
}

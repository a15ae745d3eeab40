// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

func cgroupAttacks() []attack {
	return []attack{
		{
			"release-agent", "opens release_agent of every version 1 tree of control groups for writing, or sets it by a remount",
			"a program that the host's root runs when a group is empty", releaseAgent,
		},
		{
			"release-agent-of-its-own", "makes a version 1 tree of its own with a release_agent",
			"a program that the host's root runs when a group is empty", releaseAgentOfItsOwn,
		},
		{
			"devices-allowed", "opens devices.allow of its version 1 group for writing",
			"every device of the host", devicesAllowed,
		},
		{
			"unified-root", "opens the switches of the version 2 root group (cgroup.subtree_control, cgroup.freeze) for writing",
			"the controllers of all groups of the host", unifiedRoot,
		},
	}
}

// groupTree is a mounted tree of control groups.
type groupTree struct {
	name    string
	unified bool
	fd      int
}

// mountGroups mounts all trees that this process is in, at no place. A tree that cannot be mounted but is mounted
// already is taken from there.
func mountGroups(*world) ([]groupTree, error) {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var all []groupTree
	var last error
	for line := range strings.Lines(string(raw)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		tree := groupTree{name: fields[1]}
		if fields[1] == "" {
			tree.name, tree.unified = "cgroup2", true
			tree.fd, err = detached("cgroup2")
		} else {
			tree.fd, err = detachedGroup(strings.Split(fields[1], ","))
		}
		if err == nil {
			tree.fd, err = unix.Openat(tree.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		if err != nil {
			last = err
			tree.fd, err = unix.Open("/sys/fs/cgroup/"+strings.TrimPrefix(fields[1], "name="), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		}
		if err == nil {
			all = append(all, tree)
		}
	}
	if len(all) == 0 {
		return nil, last
	}
	return all, nil
}

// detachedGroup mounts a version 1 tree at no place.
func detachedGroup(controllers []string, options ...string) (int, error) {
	config, err := unix.Fsopen("cgroup", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(config) }()
	for _, controller := range controllers {
		if name, ok := strings.CutPrefix(controller, "name="); ok {
			err = unix.FsconfigSetString(config, "name", name)
		} else {
			err = unix.FsconfigSetFlag(config, controller)
		}
		if err != nil {
			return -1, err
		}
	}
	for _, option := range options {
		key, value, _ := strings.Cut(option, "=")
		if err := unix.FsconfigSetString(config, key, value); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(config); err != nil {
		return -1, err
	}
	return unix.Fsmount(config, unix.FSMOUNT_CLOEXEC, 0)
}

func releaseAgent(w *world) finding {
	groups, err := mountGroups(w)
	if err != nil {
		return refused("mounting control groups", err)
	}
	var tried ways
	for _, g := range groups {
		if g.unified {
			continue
		}
		agent, err := unix.Openat(g.fd, "release_agent", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err == nil {
			value := strings.TrimSpace(string(readFD(agent)))
			if value != "" {
				if _, err := unix.Pwrite(agent, []byte(value), 0); err != nil {
					tried.add("writing release_agent", err)
					continue
				}
			}
			return out("opened release_agent of %s for writing, which is %q", g.name, value)
		}
		tried.add("opening release_agent", err)
		if err := reconfigured(g.fd); err != nil {
			tried.add("setting release_agent by a remount", err)
			continue
		}
		return out("the kernel would have taken a release_agent of %s in a remount", g.name)
	}
	return tried.finding()
}

// reconfigured sets the release agent of a mounted tree to none, which it is where the file is not seen.
func reconfigured(fd int) error {
	config, err := unix.Fspick(fd, "", unix.FSPICK_EMPTY_PATH|unix.FSPICK_CLOEXEC)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(config) }()
	// The kernel looks at who asks before it keeps the value. It is never put into force here
	// (FSCONFIG_CMD_RECONFIGURE): what it was is unknown.
	return unix.FsconfigSetString(config, "release_agent", "/nonexistent/muster-escape")
}

func releaseAgentOfItsOwn(w *world) finding {
	tree, err := detachedGroup([]string{"none", "name=escape-" + strings.ReplaceAll(w.mark, ".", "-")}, "release_agent=/nonexistent/muster-escape")
	if err != nil {
		return refused("making a tree with a release_agent", err)
	}
	defer func() { _ = unix.Close(tree) }() // the tree ends with its only mount
	fd, err := unix.Openat(tree, "release_agent", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return refused("opening its release_agent", err)
	}
	defer func() { _ = unix.Close(fd) }()
	return out("made a tree of control groups with release_agent %q, and gave it up", strings.TrimSpace(string(readFD(fd))))
}

func devicesAllowed(w *world) finding {
	groups, err := mountGroups(w)
	if err != nil {
		return refused("mounting control groups", err)
	}
	for _, g := range groups {
		if !strings.Contains(","+g.name+",", ",devices,") {
			continue
		}
		fd, err := unix.Openat(g.fd, "devices.allow", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return refused("opening devices.allow", err)
		}
		_ = unix.Close(fd)
		return out("opened devices.allow of its own group for writing")
	}
	return notHere("no tree of version 1 has the controller devices")
}

func unifiedRoot(w *world) finding {
	groups, err := mountGroups(w)
	if err != nil {
		return refused("mounting control groups", err)
	}
	var tried ways
	for _, g := range groups {
		if !g.unified {
			continue
		}
		// The root group alone has no cgroup.type.
		if err := unix.Faccessat(g.fd, "cgroup.type", unix.F_OK, 0); err == nil {
			return held("the root that it sees is a group of the machine's own")
		}
		fd, err := unix.Openat(g.fd, "cgroup.subtree_control", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			tried.add("opening cgroup.subtree_control", err)
			continue
		}
		_ = unix.Close(fd)
		return out("opened cgroup.subtree_control of the host's root group for writing")
	}
	return tried.finding()
}

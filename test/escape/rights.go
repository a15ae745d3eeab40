// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// capabilityNames are the kernel's capabilities by their numbers (linux/capability.h).
func capabilityNames() []string {
	return []string{
		"cap_chown", "cap_dac_override", "cap_dac_read_search", "cap_fowner", "cap_fsetid", "cap_kill", "cap_setgid", "cap_setuid", "cap_setpcap",
		"cap_linux_immutable", "cap_net_bind_service", "cap_net_broadcast", "cap_net_admin", "cap_net_raw", "cap_ipc_lock", "cap_ipc_owner", "cap_sys_module",
		"cap_sys_rawio", "cap_sys_chroot", "cap_sys_ptrace", "cap_sys_pacct", "cap_sys_admin", "cap_sys_boot", "cap_sys_nice", "cap_sys_resource", "cap_sys_time",
		"cap_sys_tty_config", "cap_mknod", "cap_lease", "cap_audit_write", "cap_audit_control", "cap_setfcap", "cap_mac_override", "cap_mac_admin", "cap_syslog",
		"cap_wake_alarm", "cap_block_suspend", "cap_audit_read", "cap_perfmon", "cap_bpf", "cap_checkpoint_restore",
	}
}

// capabilities is a set of them, by their numbers.
type capabilities uint64

func (c capabilities) has(number int) bool { return c>>uint(number)&1 == 1 }

// startedWith are the capabilities that this process may use.
func startedWith() (capabilities, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("reading capabilities: %w", err)
	}
	return capabilities(data[0].Permitted) | capabilities(data[1].Permitted)<<32, nil
}

// right is a set of rights that attacks are tried with.
type right struct {
	name string
	// keep are the capabilities that are kept; unchanged means all as they are.
	keep      capabilities
	unchanged bool
	// nested are all rights in one more user namespace, which anybody may make: its root is nobody else than whoever
	// made it.
	nested bool
}

// parseRights reads names of rights. A right that the program was not started with is an error: an attack would be held
// for the wrong reason.
func parseRights(names string, have capabilities) ([]right, error) {
	var all []right
	for name := range strings.SplitSeq(names, ",") {
		if name == "each" {
			all = append(all, each(have)...)
			continue
		}
		one, err := parseRight(name)
		if err != nil {
			return nil, err
		}
		if one.keep&^have != 0 {
			return nil, fmt.Errorf("invalid -rights: the program was started without %s: start it with that capability, or use -rights each", name)
		}
		all = append(all, one)
	}
	return all, nil
}

func parseRight(name string) (right, error) {
	switch name {
	case "all":
		return right{name: name, unchanged: true}, nil
	case "plain":
		return right{name: name}, nil
	case "nested":
		return right{name: name, unchanged: true, nested: true}, nil
	}
	number := slices.Index(capabilityNames(), name)
	if number < 0 {
		return right{}, fmt.Errorf("invalid -rights: %q is not one of plain, nested, all, each and the names of capabilities, such as cap_sys_admin", name)
	}
	return right{name: name, keep: 1 << uint(number)}, nil
}

// each is the whole matrix: no right, each one alone, all of one more user namespace, and all.
func each(have capabilities) []right {
	all := []right{{name: "plain"}}
	for number, name := range capabilityNames() {
		if have.has(number) {
			all = append(all, right{name: name, keep: 1 << uint(number)})
		}
	}
	return append(all, right{name: "nested", unchanged: true, nested: true}, right{name: "all", unchanged: true})
}

// take gives the calling thread these rights and no others, for the program that it is about to become: what it was
// bound by before is not loosened.
func (r right) take() error {
	if r.unchanged {
		return nil
	}
	// As in a pod with "drop: [ALL]", nothing can be had again by running a program. Without CAP_SETPCAP the bounding
	// set stays, and no_new_privs keeps programs from using it.
	if !r.dropBounding() {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("forbidding new privileges: %w", err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	set := func(part uint32) unix.CapUserData {
		return unix.CapUserData{Effective: part, Permitted: part, Inheritable: part}
	}
	data := [2]unix.CapUserData{set(uint32(r.keep)), set(uint32(r.keep >> 32))} //nolint:gosec // G115: the two halves
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("setting capabilities: %w", err)
	}
	if os.Geteuid() == 0 { // the kernel gives root's programs the rest
		return nil
	}
	for number := range capabilityNames() {
		if r.keep.has(number) {
			if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(number), 0, 0); err != nil {
				return fmt.Errorf("raising an ambient capability: %w", err)
			}
		}
	}
	return nil
}

// dropBounding takes capabilities out of the bounding set and reports whether it could.
func (r right) dropBounding() bool {
	for number := range capabilityNames() {
		if r.keep.has(number) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(number), 0, 0, 0); err != nil {
			return false
		}
	}
	return true
}

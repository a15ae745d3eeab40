// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// Overlay reads proc_filesystems(5), whose lines may begin with nodev.
func (system) Overlay() (bool, error) {
	raw, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return false, err
	}
	if slices.Contains(strings.Fields(string(raw)), "overlay") {
		return true, nil
	}
	return loadable("overlay")
}

func (system) Conntrack() (bool, error) {
	there, err := exists("/proc/sys/net/netfilter/nf_conntrack_max")
	if there || err != nil {
		return there, err
	}
	return loadable("nf_conntrack")
}

// Nftables asks the kernel where no list of modules settles it.
func (system) Nftables() (bool, error) {
	can, unsettled := loadable("nf_tables")
	if can {
		return true, nil
	}
	answers, err := nftablesAnswers()
	if answers {
		return true, nil
	}
	return false, errors.Join(unsettled, err)
}

// loadable reports whether the kernel has a module, or can load it.
func loadable(module string) (bool, error) {
	release, err := host.Kernel()
	if err != nil {
		return false, err
	}
	return modules{root: "/", release: release}.has(module)
}

// modules are those of a kernel, below a root.
type modules struct{ root, release string }

// has reports whether a module is loaded, built in, or on the disk (modprobe.d(5), kernel's
// Documentation/kbuild/kbuild.rst). A module on the disk is loaded, when something needs it, by the program that
// kernel.modprobe names: without that program nobody knows whether it will be loaded.
func (m modules) has(module string) (bool, error) {
	if loaded, err := exists(filepath.Join(m.root, "/sys/module", module)); loaded || err != nil {
		return loaded, err
	}
	for _, list := range []string{"modules.builtin", "modules.dep"} {
		raw, err := os.ReadFile(filepath.Join(m.root, "/lib/modules", m.release, list))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		if !lists(string(raw), module) {
			continue
		}
		if list == "modules.dep" {
			return m.loads(module)
		}
		return true, nil
	}
	return false, nil
}

func (m modules) loads(module string) (bool, error) {
	raw, err := os.ReadFile(filepath.Join(m.root, "/proc/sys/kernel/modprobe"))
	if err != nil {
		return false, err
	}
	program := strings.TrimSpace(string(raw))
	if info, err := os.Stat(filepath.Join(m.root, program)); err != nil || info.IsDir() { //nolint:gosec // G703: the kernel says which
		return false, fmt.Errorf("module %s is on the disk and not loaded, and the program that loads it (%s) is missing: install the package kmod", module, program)
	}
	return true, nil
}

// lists reports whether a list of modules' files, each perhaps with those it depends on, has a module.
func lists(list, module string) bool {
	for line := range strings.Lines(list) {
		file, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		name, _, _ := strings.Cut(path.Base(file), ".ko")
		if strings.ReplaceAll(name, "-", "_") == module {
			return true
		}
	}
	return false
}

// nftablesAnswers asks nf_tables for the number of its generation (linux/netfilter/nf_tables.h, NFT_MSG_GETGEN).
func nftablesAnswers() (bool, error) {
	socket, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("opening a netlink socket for nf_tables: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return false, fmt.Errorf("bounding the wait for nf_tables: %w", err)
	}
	const length, kind = unix.SizeofNlMsghdr + 4, unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN
	question := make([]byte, length) // with an empty nfgenmsg at its end
	binary.NativeEndian.PutUint32(question, length)
	binary.NativeEndian.PutUint16(question[4:], kind)
	binary.NativeEndian.PutUint16(question[6:], unix.NLM_F_REQUEST)
	if err := unix.Sendto(socket, question, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, fmt.Errorf("asking nf_tables for its generation: %w", err)
	}
	answer := make([]byte, 4<<10)
	n, _, err := unix.Recvfrom(socket, answer, 0)
	if err != nil {
		return false, fmt.Errorf("reading the answer of nf_tables: %w", err)
	}
	return understood(answer[:n])
}

// understood tells an answer from the error that a kernel without nf_tables sends.
func understood(answer []byte) (bool, error) {
	if len(answer) < unix.SizeofNlMsghdr+4 {
		return false, errors.New("the answer of nf_tables is cut short")
	}
	if binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return true, nil
	}
	// The kernel sends it negated.
	switch number := unix.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:]))); number { //nolint:gosec // G115: as the kernel means it
	case unix.EINVAL, unix.EOPNOTSUPP: // no such subsystem
		return false, nil
	default:
		return false, fmt.Errorf("nf_tables refuses to name its generation: %w", number)
	}
}

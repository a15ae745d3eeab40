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

	"muster.dev/muster/internal/host"
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

// Nftables asks the kernel where no list of modules names it.
func (system) Nftables() (bool, error) {
	if can, err := loadable("nf_tables"); can || err != nil {
		return can, err
	}
	return nftablesAnswers()
}

// loadable tells whether the kernel's modules, built in or not, include one (modprobe.d(5), kernel's Documentation/kbuild/kbuild.rst).
func loadable(module string) (bool, error) {
	release, err := host.Kernel()
	if err != nil {
		return false, err
	}
	dir := filepath.Join("/lib/modules", release)
	for _, list := range []string{"modules.builtin", "modules.dep"} {
		raw, err := os.ReadFile(filepath.Join(dir, list))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		if lists(string(raw), module) {
			return true, nil
		}
	}
	return false, nil
}

// lists tells whether a list of modules' files, each perhaps with those it depends on, has a module.
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
		return false, fmt.Errorf("asking the kernel: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	if err := unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return false, fmt.Errorf("asking the kernel: %w", err)
	}
	const length, kind = unix.SizeofNlMsghdr + 4, unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETGEN
	question := make([]byte, length) // with an empty nfgenmsg at its end
	binary.NativeEndian.PutUint32(question, length)
	binary.NativeEndian.PutUint16(question[4:], kind)
	binary.NativeEndian.PutUint16(question[6:], unix.NLM_F_REQUEST)
	if err := unix.Sendto(socket, question, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, fmt.Errorf("asking the kernel: %w", err)
	}
	answer := make([]byte, 4<<10)
	n, _, err := unix.Recvfrom(socket, answer, 0)
	if err != nil {
		return false, fmt.Errorf("asking the kernel: %w", err)
	}
	return understood(answer[:n])
}

// understood tells an answer from the error that a kernel without nf_tables sends.
func understood(answer []byte) (bool, error) {
	if len(answer) < unix.SizeofNlMsghdr+4 {
		return false, errors.New("asking the kernel: its answer is cut short")
	}
	if binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return true, nil
	}
	// The kernel sends it negated.
	switch number := unix.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:]))); number { //nolint:gosec // G115: as the kernel means it
	case unix.EINVAL, unix.EOPNOTSUPP: // no such subsystem
		return false, nil
	default:
		return false, fmt.Errorf("asking the kernel: %w", number)
	}
}

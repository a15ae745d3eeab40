// SPDX-License-Identifier: Apache-2.0

package healthprobe

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"muster.dev/muster/internal/node/nodehealth"
)

// Interface is what is looked at of a network interface.
type Interface struct {
	Name      string
	Flags     net.Flags
	Addresses []netip.Addr
}

// Interfaces lists those of the machine.
func Interfaces() ([]Interface, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("listing network interfaces: %w", err)
	}
	var found []Interface
	for _, i := range list {
		is := Interface{Name: i.Name, Flags: i.Flags}
		addresses, err := i.Addrs()
		if err != nil {
			return nil, fmt.Errorf("listing the addresses of interface %s: %w", i.Name, err)
		}
		for _, a := range addresses {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				is.Addresses = append(is.Addresses, prefix.Addr().Unmap())
			}
		}
		found = append(found, is)
	}
	return found, nil
}

// Network finds what is wrong with the loopback interface and with the interface that has the node's address. Interfaces
// of pods and of pods' programs come and go, and are not looked at. If no interface has the address, nothing is known of
// it, and nothing is found.
func Network(interfaces []Interface, node netip.Addr) map[nodehealth.Reason]string {
	found := map[nodehealth.Reason]string{nodehealth.LoopbackMissing: "the machine has no loopback interface"}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 {
			delete(found, nodehealth.LoopbackMissing)
		}
		for _, a := range i.Addresses {
			switch {
			case a != node:
			case i.Flags&net.FlagUp == 0:
				found[nodehealth.InterfaceNotUp] = fmt.Sprintf("interface %s, which has the node's address %s, is not up", i.Name, node)
			case i.Flags&net.FlagRunning == 0:
				found[nodehealth.InterfaceNotRunning] = fmt.Sprintf("interface %s, which has the node's address %s, is up and not running", i.Name, node)
			}
		}
	}
	return found
}

// Disk writes a file of a few bytes, and has it on the disk before it returns if it is to. It finds a disk that does not
// take it: for a fault of its own, or since the kernel has made it read-only after one. A full disk is another matter,
// which the kubelet sees to.
func Disk(path string, through bool) (found string, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err == nil {
		_, err = file.WriteString("ok\n")
		if err == nil && through {
			err = file.Sync()
		}
		err = errors.Join(err, file.Close())
	}
	return diskFault(err)
}

// diskFault tells faults of a disk from other errors.
func diskFault(err error) (found string, other error) {
	if errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EROFS) {
		return fmt.Sprintf("the machine's disk takes no files: %v", err), nil
	}
	return "", err
}

// Processes counts the threads and the zombies of a machine, whose processes are below a directory like /proc.
func Processes(proc string) (threads, zombies int, err error) {
	stats, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "stat"))
	if err != nil {
		return 0, 0, fmt.Errorf("listing processes: %w", err)
	}
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return 0, 0, fmt.Errorf("reading a process: %w", err)
		}
		state, n, err := stat(raw)
		if err != nil {
			return 0, 0, fmt.Errorf("reading %s: %w", path, err)
		}
		if threads += n; state == "Z" {
			zombies++
		}
	}
	return threads, zombies, nil
}

// stat reads the state and the number of threads of a process: fields 3 and 20 of proc(5), after a name that may hold
// anything.
func stat(raw []byte) (state string, threads int, err error) {
	const threadsAfterName = 17
	_, rest, ok := bytes.Cut(raw[max(bytes.LastIndexByte(raw, ')'), 0):], []byte(") "))
	fields := strings.Fields(string(rest))
	if !ok || len(fields) <= threadsAfterName {
		return "", 0, fmt.Errorf("%d bytes are not the state of a process", len(raw))
	}
	if threads, err = strconv.Atoi(fields[threadsAfterName]); err != nil {
		return "", 0, fmt.Errorf("reading the number of threads: %w", err)
	}
	return fields[0], threads, nil
}

// Number reads a file that holds a number, such as the most threads of the machine.
func Number(path string) (int, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("reading a limit: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("reading a limit: %s holds %.40q, which is not a number above 0", path, raw)
	}
	return n, nil
}

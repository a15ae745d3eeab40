// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

func kernelAttacks() []attack {
	return []attack{
		{
			"module-load", "gives the kernel a module that is none (init_module)",
			"code in the kernel", moduleLoad,
		},
		{
			"kernel-load", "asks for another kernel with flags that no kernel knows (kexec_load)",
			"another kernel for the host", kernelLoad,
		},
		{
			"io-ports", "asks for I/O ports (ioperm)",
			"the host's devices", ioPorts,
		},
		{
			"swap", "swaps to a file that is not there (swapon)",
			"memory of the host in a file of the machine", swapOn,
		},
		{
			"accounting", "has processes accounted in a file that is not there (acct)",
			"what runs on the host, and its disk", accounting,
		},
		{
			"clock", "sets the frequency of the clock to what it is (clock_adjtime)",
			"the host's time, and all certificates that end by it", clock,
		},
		{
			"kernel-log", "reads the kernel's log (syslog, /dev/kmsg)",
			"what the kernel says about the host and other machines", kernelLog,
		},
		{
			"perf", "counts what all processes do (perf_event_open on a processor)",
			"what the host's processes do, and their secrets by side channels", perf,
		},
		{
			"userfaultfd", "has the kernel wait for it on page faults of its own (userfaultfd)",
			"races in the kernel that are won every time", userFault,
		},
		{
			"io-uring", "sets up an io_uring, by which system calls are made that no seccomp filter sees",
			"what the machine's filter closes", ioUring,
		},
		{
			"console", "opens the terminal that is in front of the host (tty0) and asks which one it is",
			"the host's terminals", console,
		},
	}
}

func moduleLoad(*world) finding {
	err := unix.InitModule([]byte("muster"), "")
	if errors.Is(err, unix.ENOEXEC) {
		return out("the kernel looked whether it is a module: %v", err)
	}
	return refused("loading a module", err)
}

func kernelLoad(*world) finding {
	const unknown = 0xf000 // flags that are refused after the rights have been looked at
	_, _, errno := unix.Syscall6(unix.SYS_KEXEC_LOAD, 0, 0, 0, unknown, 0, 0)
	if errno == unix.EINVAL {
		return out("the kernel minded the flags only: %v", errno)
	}
	return refused("loading a kernel", errno)
}

const nowhere = "/nonexistent/muster-escape"

func swapOn(*world) finding {
	path, err := unix.BytePtrFromString(nowhere)
	if err != nil {
		return refused("naming a file", err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SWAPON, uintptr(unsafe.Pointer(path)), 0, 0) //nolint:gosec // G103: that is how it is called
	if errno == unix.ENOENT {
		return out("the kernel minded the missing file only: %v", errno)
	}
	return refused("swapping", errno)
}

func accounting(*world) finding {
	err := unix.Acct(nowhere)
	if errors.Is(err, unix.ENOENT) {
		return out("the kernel minded the missing file only: %v", err)
	}
	return refused("accounting", err)
}

func clock(*world) finding {
	var now unix.Timex
	if _, err := unix.ClockAdjtime(unix.CLOCK_REALTIME, &now); err != nil {
		return refused("reading the clock's state", err)
	}
	const frequency = 2 // ADJ_FREQUENCY
	same := unix.Timex{Modes: frequency, Freq: now.Freq}
	if _, err := unix.ClockAdjtime(unix.CLOCK_REALTIME, &same); err != nil {
		return refused("setting the clock's frequency", err)
	}
	return out("set the frequency of the host's clock, to %d as it was", now.Freq)
}

func kernelLog(w *world) finding {
	var tried ways
	buffer := make([]byte, 4096)
	const readAll = 3 // SYSLOG_ACTION_READ_ALL
	n, err := unix.Klogctl(readAll, buffer)
	if err == nil && n > 0 {
		return out("read %d bytes of the kernel's log", n)
	}
	if err != nil {
		tried.add("reading it by syslog", err)
	}
	fd, err := w.anyNode(unix.S_IFCHR, int(unix.Mkdev(1, 11)), unix.O_RDONLY|unix.O_NONBLOCK) //nolint:gosec // G115: a small number
	if err == nil {
		n, err = unix.Read(fd, buffer)
	}
	if err != nil {
		tried.add("reading /dev/kmsg", err)
		return tried.finding()
	}
	return out("read %d bytes of the kernel's log from /dev/kmsg", n)
}

func perf(*world) finding {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CONTEXT_SWITCHES, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
	fd, err := unix.PerfEventOpen(&attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return refused("counting all processes of a processor", err)
	}
	_ = unix.Close(fd)
	return out("could count what every process of the host does")
}

func userFault(w *world) finding {
	var tried ways
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno == 0 {
		_ = unix.Close(int(fd))
		return out("the kernel's own page faults would wait for it")
	}
	tried.add("asking for page faults of the kernel", errno)
	const makeOne = 0xaa00 // USERFAULTFD_IOC_NEW
	node, err := w.userFaultNode()
	if err == nil {
		fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(node), makeOne, unix.O_CLOEXEC)
		if errno == 0 {
			_ = unix.Close(int(fd))
			return out("the kernel's own page faults would wait for it, by /dev/userfaultfd")
		}
		err = errno
	}
	tried.add("asking by /dev/userfaultfd", err)
	return tried.finding()
}

// userFaultNode opens /dev/userfaultfd, whose number differs from host to host.
func (w *world) userFaultNode() (int, error) {
	return unix.Open("/dev/userfaultfd", unix.O_RDWR|unix.O_CLOEXEC, 0)
}

func ioUring(*world) finding {
	var parameters [120]byte                                                                          // struct io_uring_params
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters)), 0) //nolint:gosec // G103: that is how it is called
	if errno != 0 {
		return refused("setting up an io_uring", errno)
	}
	_ = unix.Close(int(fd))
	return out("had an io_uring: what it makes of sockets and files passes by the machine's seccomp filter")
}

func console(w *world) finding {
	fd, err := w.anyNode(unix.S_IFCHR, int(unix.Mkdev(4, 0)), unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK) //nolint:gosec // G115: a small number
	if err != nil {
		return refused("opening the host's terminal in front", err)
	}
	const getState = 0x5603 // VT_GETSTATE
	var state [3]uint16
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), getState, uintptr(unsafe.Pointer(&state))); errno != 0 { //nolint:gosec // G103: that is how it is called
		return refused("asking which terminal is in front", errno)
	}
	return out("terminal %d of the host is in front", state[0])
}

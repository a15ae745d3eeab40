// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/process"
)

// maxText is how long the text of a message may be.
const maxText = 4 << 10

// send sends a text and the descriptor of something open as one message.
func send(to *net.UnixConn, text string, open syscall.Conn) error {
	if text == "" || len(text) > maxText {
		return fmt.Errorf("a message of %d bytes cannot be sent", len(text))
	}
	raw, err := open.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Control(func(fd uintptr) {
		_, _, sent = to.WriteMsgUnix([]byte(text), unix.UnixRights(int(fd)), nil)
	})
	return errors.Join(err, sent)
}

// receive receives the next message: of send, or a text alone. The kernel ends a read after a descriptor, so a
// message with one is not read together with the next. The file is nil for a message without. The error is io.EOF if
// the other end was closed.
func receive(from *net.UnixConn) (text string, file *os.File, err error) {
	heard, rights := make([]byte, maxText), make([]byte, unix.CmsgSpace(4))
	n, m, flags, _, err := from.ReadMsgUnix(heard, rights)
	if err != nil {
		return "", nil, err
	}
	var fds []int
	if messages, err := unix.ParseSocketControlMessage(rights[:m]); err == nil && len(messages) == 1 {
		fds, _ = unix.ParseUnixRights(&messages[0])
	}
	text = string(heard[:n])
	if len(fds) > 1 || flags&unix.MSG_CTRUNC != 0 {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return "", nil, fmt.Errorf("the message %.20q has other descriptors than one", text)
	}
	if len(fds) == 1 {
		file = os.NewFile(uintptr(fds[0]), "handed over")
	}
	if n == 0 {
		return "", nil, io.EOF
	}
	return text, file, nil
}

// peer is the process at the other end of a connection: of a listener's, the process that listens.
func peer(c *net.UnixConn) (pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		credentials, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, fmt.Errorf("asking who is at the other end: %w", err)
	}
	return int(credentials.Pid), nil
}

// older reports whether a process was started before this one, in the order that the supervisor has them in (package
// supervise).
func older(pid int) bool {
	other, err := process.ReadStat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		return false
	}
	own, err := process.ReadStat("/proc/self")
	return err == nil && (other.Ticks < own.Ticks || other.Ticks == own.Ticks && pid < os.Getpid())
}
